"""Two sessions, two paths, one virtual clock: a whole stream in a unit test.

    path = OneWay(delay=0.02, loss=0.01, rng=random.Random(1))
    controller = FixedController(FixedConfig(rate_bps=2e6), ecn=ECT1)
    pair = Pair(new_sender(controller), new_receiver(), uplink=path, downlink=OneWay(delay=0.02))
    pair.at(5.0, lambda: path.cut(5.0, 7.0))
    pair.run(10.0)
    pair.finish()
    assert pair.receiver.stats.frames_lost == 0

Theory of operation. Everything that is to happen stands in a heap of (when,
number), or is the deadline of a session; the clock jumps to the earliest of
them. So a run takes as long as its work, not as long as its time, and the same
arguments give the same run. The source makes synthetic frames of the size the
sender asks for; the decoder checks every byte of them.

The paths are as simple as will do: for a real bottleneck with a queue
discipline take `streamd.link`.
"""

import heapq
import random
from collections import deque
from collections.abc import Callable
from math import inf

from streamd.cc.api import Controller, Limits
from streamd.datagram import Address, Datagram, Transmit
from streamd.ecn import CE, NOT_ECT
from streamd.errors import LocalMisuse, MediaError
from streamd.media.model import EncodedFrame, VideoDecoder, VideoEncoder
from streamd.media.synthetic import SyntheticDecoder, SyntheticEncoder
from streamd.session.events import Event, FrameReady
from streamd.session.packetize import PAYLOAD_TYPES, StreamIdentity
from streamd.session.receiver import ReceiverOptions, ReceiverSession
from streamd.session.rtx import RtxIdentity
from streamd.session.sender import SenderSession
from streamd.session.sender_options import SenderOptions

SENDER: Address = ("192.0.2.1", 5000)
RECEIVER: Address = ("192.0.2.2", 6000)
UNIX_OFFSET = 1_700_000_000.0
"""Unix time of session time 0 at both ends."""
IP_UDP_BYTES = 28
EVENTS_KEPT = 10_000


class OneWay:
    """One direction of a path. Its settings may be changed while it runs."""

    def __init__(
        self,
        *,
        delay: float = 0.01,
        jitter: float = 0.0,
        loss: float = 0.0,
        rate_bps: float | None = None,
        max_queue: float = 1.0,
        mark_above: float | None = None,
        mark_ratio: float = 0.0,
        source: Address | None = None,
        rng: random.Random | None = None,
    ) -> None:
        """Seconds, shares of packets and bit/s of IP packets.

        `max_queue` and `mark_above` are queue delays before the rate: above the
        first a packet is dropped, above the second an ECN-capable one is marked.
        `jitter` adds up to so much to each delay, so that packets overtake each other.
        `source` is the address the far end sees. LocalMisuse where chance plays a
        part and `rng` is missing.
        """
        if (loss or jitter or mark_ratio) and rng is None:
            raise LocalMisuse("random loss, jitter and marks need a random generator")
        self.delay = delay
        self.jitter = jitter
        self.loss = loss
        self.rate_bps = rate_bps
        self.max_queue = max_queue
        self.mark_above = mark_above
        self.mark_ratio = mark_ratio
        self.source = source
        self._rng = rng or random.Random(0)
        self._cuts: list[tuple[float, float]] = []
        self._free_at = 0.0
        self.offered = 0
        self.dropped = 0
        self.marked = 0
        self.undeliverable = 0
        """Sent to an address where nobody is."""

    def cut(self, start: float, end: float) -> None:
        """Drop everything sent in [start, end)."""
        self._cuts.append((start, end))

    def carry(self, size: int, ecn: int, now: float) -> tuple[float, int] | None:
        """Arrival time and codepoint of a UDP payload of `size` bytes; None: dropped."""
        self.offered += 1
        if any(start <= now < end for start, end in self._cuts) or self._chance(self.loss):
            self.dropped += 1
            return None
        queued = 0.0
        if self.rate_bps is not None:
            queued = max(0.0, self._free_at - now)
            if queued > self.max_queue:
                self.dropped += 1
                return None
            self._free_at = now + queued + (size + IP_UDP_BYTES) * 8 / self.rate_bps
        over = self.mark_above is not None and queued > self.mark_above
        if ecn != NOT_ECT and (over or self._chance(self.mark_ratio)):
            self.marked += 1
            ecn = CE
        delay = self.delay + (self._rng.uniform(0.0, self.jitter) if self.jitter else 0.0)
        return max(now, self._free_at) + delay, ecn

    def _chance(self, share: float) -> bool:
        return share > 0 and self._rng.random() < share


def new_sender(
    controller: Controller,
    *,
    ssrc: int = 0x5EED,
    first_seq: int = 0,
    first_timestamp: int = 0,
    peer: Address | None = RECEIVER,
    limits: Limits = Limits(100_000, 1_000_000, 50_000_000),  # noqa: B008 - frozen
    retransmissions: int = 3,
    rtx: RtxIdentity | None = None,
    breaker: bool = True,
    now: float = 0.0,
) -> SenderSession:
    """A sender session with everything else at its defaults."""
    identity = StreamIdentity(
        ssrc,
        PAYLOAD_TYPES["synthetic"],
        first_seq=first_seq,
        first_timestamp=first_timestamp,
    )
    options = SenderOptions(
        identity=identity,
        limits=limits,
        peer=peer,
        cname="sender@pair",
        retransmissions=retransmissions,
        rtx=rtx,
        breaker=breaker,
    )
    return SenderSession(options, controller, now=now, unix_offset=UNIX_OFFSET)


def new_receiver(
    *, ssrc: int = 0xFEED, peer: Address | None = None, now: float = 0.0, clock: float = 0.0
) -> ReceiverSession:
    """A receiver session. `clock` (s) is what its clock is ahead of the pair's."""
    options = ReceiverOptions(ssrc=ssrc, peer=peer, cname="receiver@pair")
    return ReceiverSession(options, now=now + clock, unix_offset=UNIX_OFFSET - clock)


class Pair:
    """Steps a sender and a receiver; either may be replaced while it runs."""

    def __init__(
        self,
        sender: SenderSession,
        receiver: ReceiverSession,
        *,
        uplink: OneWay,
        downlink: OneWay,
        fps: float = 50.0,
        encoder: VideoEncoder | None = None,
        clock: float = 0.0,
        now: float = 0.0,
    ) -> None:
        """`now` and `clock` as the sessions were made with; frames begin at `now`."""
        self.sender = sender
        self.receiver = receiver
        self.uplink = uplink
        self.downlink = downlink
        self.now = now
        self.clock = clock
        """Seconds the receiver's clock is ahead."""
        self.sender_address = SENDER
        self.receiver_address = RECEIVER
        self.events: deque[tuple[float, str, Event]] = deque(maxlen=EVENTS_KEPT)
        """What the sessions told, except for frames: time, "sender" or "receiver", event."""
        self.shown: deque[tuple[float, int]] = deque(maxlen=EVENTS_KEPT)
        """Frames decoded: time, frame number."""
        self._fps = fps
        self._encoder: VideoEncoder = encoder or SyntheticEncoder(fps)
        self._decoder: VideoDecoder = SyntheticDecoder()
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self._source_on = self._sender_runs = True
        self._start = now
        self._frame = 0
        self._sender_due = self._receiver_due = now
        self.at(now, self._capture)

    def at(self, when: float, action: Callable[[], None]) -> None:
        """Have `action` called at time `when`; equal times in the order they were given."""
        self._count += 1
        heapq.heappush(self._heap, (when, self._count, action))

    def run(self, seconds: float) -> None:
        """Let time pass."""
        end = self.now + seconds
        while (when := self._next()) <= end:
            self.now = max(self.now, when)
            if self._heap and self._heap[0][0] <= self.now:
                heapq.heappop(self._heap)[2]()
            elif self._sender_due <= self.now:
                self.sender.handle_timeout(now=self.now)
                self._turn_sender()
            else:
                self.receiver.handle_timeout(now=self.now + self.clock)
                self._turn_receiver()
        self.now = end

    def finish(self, seconds: float = 5.0) -> None:
        """Stop the source, let the sender drain, close the receiver."""
        self._source_on = False
        self.sender.close(now=self.now)
        self._turn_sender()
        self.run(seconds)
        self.receiver.close(now=self.now + self.clock)
        self._turn_receiver()

    def stop_sender(self) -> None:
        """The sender's process is gone, without a word."""
        self._sender_runs = False
        self._sender_due = inf

    def replace_sender(self, sender: SenderSession, *, address: Address | None = None) -> None:
        """Another sender process: its source begins with a key frame again."""
        self.sender = sender
        self._sender_runs = True
        self._encoder = SyntheticEncoder(self._fps)
        self.sender_address = address or self.sender_address
        self._turn_sender()

    def replace_receiver(
        self,
        receiver: ReceiverSession,
        *,
        address: Address | None = None,
        clock: float | None = None,
    ) -> None:
        """Another receiver process, perhaps with another clock, made with `now` and `clock`."""
        self.receiver = receiver
        self._decoder = SyntheticDecoder()
        self.receiver_address = address or self.receiver_address
        self.clock = self.clock if clock is None else clock
        self._turn_receiver()

    def told(self, kind: type[Event]) -> list[Event]:
        """The events of one kind, oldest first."""
        return [event for _, _, event in self.events if isinstance(event, kind)]

    # --- inside ---------------------------------------------------------------------------------

    def _next(self) -> float:
        when = self._heap[0][0] if self._heap else inf
        return min(when, self._sender_due, self._receiver_due)

    def _capture(self) -> None:
        """One frame, and the next one's place in the heap."""
        if not self._source_on:
            return
        if self._sender_runs:
            self._send_frame()
        self._frame += 1
        self.at(self._start + self._frame / self._fps, self._capture)

    def _send_frame(self) -> None:
        plan = self.sender.next_frame(now=self.now)
        encoded = self._encoder.encode(None, target_bps=plan.target_bps, keyframe=plan.keyframe)
        frame = None if encoded is None else EncodedFrame(encoded[0], encoded[1], self.now)
        self.sender.handle_frame(frame, now=self.now)
        self._turn_sender()

    def _turn_sender(self) -> None:
        sender, now = self.sender, self.now
        while (transmit := sender.poll_transmit(now=now)) is not None:
            self._carry(transmit, self.uplink, self.receiver_address, self._to_receiver)
        while (event := sender.poll_event()) is not None:
            self.events.append((now, "sender", event))
        self._sender_due = _or_never(sender.next_timeout())

    def _turn_receiver(self) -> None:
        receiver, now = self.receiver, self.now + self.clock
        while True:
            while (transmit := receiver.poll_transmit(now=now)) is not None:
                self._carry(transmit, self.downlink, self.sender_address, self._to_sender)
            event = receiver.poll_event()
            if event is None:
                break
            if isinstance(event, FrameReady):
                self._decode(event)
            else:
                self.events.append((self.now, "receiver", event))
        self._receiver_due = _or_never(receiver.next_timeout()) - self.clock

    def _decode(self, frame: FrameReady) -> None:
        try:
            pictures = len(self._decoder.decode(frame.data))
        except MediaError:
            pictures = 0
        if pictures:
            self.shown.append((self.now, frame.frame_no))
        self.receiver.handle_decoded(frame.frame_no, pictures, now=self.now + self.clock)

    def _carry(
        self,
        transmit: Transmit,
        path: OneWay,
        there: Address,
        deliver: Callable[[bytes, int], None],
    ) -> None:
        back = self.uplink if path is self.downlink else self.downlink
        if transmit.address != (back.source or there):
            path.undeliverable += len(transmit.segments)
            return
        for data in transmit.segments:
            arrival = path.carry(len(data), transmit.ecn, self.now)
            if arrival is not None:
                when, ecn = arrival
                self.at(when, lambda data=data, ecn=ecn: deliver(data, ecn))  # type: ignore[misc]

    def _to_receiver(self, data: bytes, ecn: int) -> None:
        now = self.now + self.clock
        source = self.uplink.source or self.sender_address
        self.receiver.handle_datagrams([Datagram(data, source, ecn, now)], now=now)
        self._turn_receiver()

    def _to_sender(self, data: bytes, ecn: int) -> None:
        if not self._sender_runs:
            return
        source = self.downlink.source or self.receiver_address
        self.sender.handle_datagrams([Datagram(data, source, ecn, self.now)], now=self.now)
        self._turn_sender()


def _or_never(due: float | None) -> float:
    return inf if due is None else due
