"""The machines of a simulation: a path, a sender with its encoder, a receiver with its decoder.

Each does for its session what pump, frame clock and decoder do in a daemon, in
the same order: input, transmits until None, events until None, then the deadline.
What differs is that encoding takes a modelled time, and everything else none but the
scenario's `wake_time`.
"""

from collections.abc import Callable
from functools import partial
from math import nan
from typing import TYPE_CHECKING

from streamd.clock import Clock
from streamd.datagram import Address, Datagram, Transmit
from streamd.errors import MediaError
from streamd.link.path import Path
from streamd.link.queue import Packet
from streamd.link.record import PacketRecord
from streamd.media.adaptive import AdaptiveEncoder
from streamd.media.model import EncodedFrame, FrameSource, Picture, VideoDecoder, VideoEncoder
from streamd.peer import ip_udp_bytes
from streamd.session.events import FrameReady, SessionClosed
from streamd.session.receiver import ReceiverSession
from streamd.session.sender import FramePlan, SenderSession
from streamd.sim.events import EventLog
from streamd.sim.scheduler import Action, Agenda, Alarm
from streamd.wire.rtp import is_rtcp

if TYPE_CHECKING:
    from streamd.media.quality import KeptPictures

MAX_FAILURES = 100
"""Pictures in a row the encoder may fail on, as in a sender."""

Receive = Callable[[list[Datagram], float], None]
"""Takes what arrived, and the time."""


class End:
    """Where packets of one flow and direction come out."""

    __slots__ = ("dropped", "flow", "offered", "receive", "record", "source")

    def __init__(
        self, flow: int, source: Address, receive: Receive, record: PacketRecord | None
    ) -> None:
        self.flow = flow
        self.source = source
        self.receive = receive
        self.record = record
        self.offered = 0
        """Packets sent into the path."""
        self.dropped = 0


class PathNode:
    """One direction of a link and everybody who uses it."""

    def __init__(self, number: int, path: Path, scheduler: Agenda, log: EventLog) -> None:
        self.path = path
        self.ends: list[End] = []
        """By the key that packets carry."""
        self._number = number
        self._log = log
        self._alarm = Alarm(scheduler, self._due)
        path.watch_drops(self._dropped)

    def join(self, end: End) -> Callable[[Transmit, float], None]:
        """Add a flow; what it calls to send. `wake` must follow."""
        key = len(self.ends)
        self.ends.append(end)
        header = ip_udp_bytes(end.source) + self.path.overhead_bytes
        put = self.path.send

        def send(transmit: Transmit, now: float) -> None:
            ecn = transmit.ecn
            for data in transmit.segments:
                put(Packet(data, len(data) + header, ecn, now, key), now)
            end.offered += len(transmit.segments)

        return send

    def wake(self) -> None:
        """Packets were sent: the next one to come out may be another."""
        self._alarm.set(self.path.next_timeout())

    def _due(self, now: float) -> None:
        self.path.advance(now)
        out, ends = self.path.out, self.ends
        batches: dict[int, list[Datagram]] = {}
        while out:
            packet = out.popleft()
            key: int = packet.flow  # type: ignore[assignment]
            end = ends[key]
            self._note(packet, end, packet.dequeued_at, packet.due, 0)
            if end.record is not None:
                end.record.on_delivered(packet)
            datagram = Datagram(packet.data, end.source, packet.ecn, packet.due)
            if key in batches:
                batches[key].append(datagram)
            else:
                batches[key] = [datagram]
        for key, batch in batches.items():
            ends[key].receive(batch, now)
        self.wake()

    def _dropped(self, packet: Packet, cause: str, now: float) -> None:
        key: int = packet.flow  # type: ignore[assignment]
        end = self.ends[key]
        end.dropped += 1
        behind_link = packet.departed_at > packet.sent_at
        dequeued = packet.dequeued_at if behind_link else nan
        self._note(packet, end, dequeued, now, self._log.fates.number(cause))
        if end.record is not None:
            end.record.on_drop(packet, cause, now)

    def _note(
        self, packet: Packet, end: End, dequeued_at: float, ended_at: float, fate: int
    ) -> None:
        data = packet.data
        media = len(data) >= 12 and not is_rtcp(data[1])
        log = self._log
        log.packets.add(
            (
                end.flow,
                self._number,
                media,
                data[2] << 8 | data[3] if media else 0,
                packet.size,
                packet.sent_at,
                dequeued_at,
                packet.departed_at,
                ended_at,
                packet.ecn_in,
                packet.ecn,
                0 if packet.mark is None else log.marks.number(packet.mark),
                fate,
            )
        )


class SenderNode:
    """Source, encoder and session of one flow."""

    def __init__(
        self,
        flow: int,
        session: SenderSession,
        *,
        source: FrameSource,
        encoder: VideoEncoder,
        encode_time: float | None,
        scheduler: Agenda,
        log: EventLog,
        clock: Clock | None,
        pictures: "KeptPictures | None" = None,
    ) -> None:
        """`encode_time` (s) None: taken from `clock`."""
        self.session = session
        self._flow = flow
        self._source = source
        self._encoder = encoder
        self._encode_time = encode_time
        self._scheduler = scheduler
        self._log = log
        self._clock = clock
        self._alarm = Alarm(scheduler, self._timeout)
        self._send: Callable[[Transmit, float], None]
        self._path: PathNode
        self._on_closed: Action
        self._picture: Picture = None
        self.pictures = pictures
        self._start = 0.0
        self._tick = 0
        self._busy = self._stopping = self._ended = False
        self._failures = 0
        self._frame = 0
        self.skipped = 0
        """Ticks without a picture because the encoder was still busy."""
        self._adaptive = encoder if isinstance(encoder, AdaptiveEncoder) else None
        self.skipped_ladder = 0
        """Ticks without a picture because the rate allows only part of them."""
        self.skipped_behind = 0
        """Ticks without a picture because the sender's queue was too old."""
        self.encoded = 0
        self.encode_seconds = 0.0

    def attach(self, path: PathNode, end: End, on_closed: Action) -> None:
        """Media leave by this path; `on_closed` is called once the session is over."""
        self._path, self._send = path, path.join(end)
        self._on_closed = on_closed

    def start(self, now: float) -> None:
        """The first frame."""
        self._start = now
        self.turn(now)
        self._read(now)
        self._capture(now)

    def stop(self, now: float) -> None:
        """No frames any more, the present one excepted."""
        self._stopping = True
        if not self._busy:
            self._end(now)

    def receive(self, batch: list[Datagram], now: float) -> None:
        """What came back."""
        session = self.session
        before = session.stats.feedback_reports
        session.handle_datagrams(batch, now=now)
        if session.stats.feedback_reports != before:
            self._note_feedback(now)
        self.turn(now)

    def turn(self, now: float) -> None:
        """Send what may be sent, and look at the clock again."""
        session, send = self.session, self._send
        transmit = session.poll_transmit(now=now)
        if transmit is not None:
            while transmit is not None:
                send(transmit, now)
                transmit = session.poll_transmit(now=now)
            self._path.wake()
        while (event := session.poll_event()) is not None:
            if isinstance(event, SessionClosed):
                self._on_closed(now)
        self._alarm.set(session.next_timeout())

    def close(self) -> None:
        """Free the codec."""
        self._encoder.close()
        self._source.close()

    def _timeout(self, now: float) -> None:
        self.session.handle_timeout(now=now)
        self.turn(now)

    def _read(self, now: float) -> None:
        try:
            self._picture = self._source.read()
        except EOFError:
            self._end(now)

    def _end(self, now: float) -> None:
        if not self._ended:
            self._ended = True
            self.session.close(now=now)
            self.turn(now)

    def _capture(self, now: float) -> None:
        if self._ended:
            return
        self._log.settle()
        if self._adaptive is not None and not self._adaptive.wants(self._tick):
            self.skipped_ladder += 1
            self._next_picture(now)
            return
        if self.session.behind(now):
            self.skipped_behind += 1
            self._next_picture(now)
            return
        captured_at = self._start + self._tick / self._source.fps
        plan = self.session.next_frame(now=now)
        self._note_decision(plan, now)
        begin = 0.0 if self._clock is None else self._clock.now()
        encoded = self._encode(plan)
        took = self._encode_time
        if took is None:
            took = 0.0 if self._clock is None else self._clock.now() - begin
        if not took:
            self._finish(encoded, plan, captured_at, took, now)
            return
        self._busy = True
        done = partial(self._finish, encoded, plan, captured_at, took)
        self._scheduler.at(now + took, done)

    def _finish(
        self,
        encoded: tuple[bytes, bool] | None,
        plan: FramePlan,
        captured_at: float,
        took: float,
        now: float,
    ) -> None:
        """The encoder is done: hand over, then the next picture at its tick."""
        self._busy = False
        self.encode_seconds += took
        frame = None
        if encoded is not None:
            self.encoded += 1
            encoder = self._encoder
            frame = EncodedFrame(
                *encoded, captured_at, took, store=encoder.stored, refer=encoder.referred
            )
        number, first = self.session.next_frame_no, self.session.next_seq
        self.session.handle_frame(frame, now=now)
        if self.pictures is not None and self.session.next_frame_no > number:
            self.pictures.sent(number, self._picture)
        if frame is not None:
            self._note_frame(frame, plan, first, now)
        self.turn(now)
        self._next_picture(now)

    def _next_picture(self, now: float) -> None:
        """Read it, and encode it at its tick; those of skipped ticks are never seen."""
        late = max(0, int((now - self._start) * self._source.fps) - self._tick)
        for _ in range(1 + late):
            self._read(now)
        if self._stopping:
            self._end(now)
        if self._ended:
            return
        self.skipped += late
        self._tick += 1 + late
        self._scheduler.at(self._start + self._tick / self._source.fps, self._capture)

    def _encode(self, plan: FramePlan) -> tuple[bytes, bool] | None:
        """None for a picture the encoder fails on, as for one it drops to hold its rate."""
        try:
            encoded = self._encoder.encode(
                self._picture,
                target_bps=plan.target_bps,
                keyframe=plan.keyframe,
                store=plan.store,
                refer=plan.refer,
            )
        except MediaError:
            self._failures += 1
            if self._failures >= MAX_FAILURES:
                raise
            return None
        self._failures = 0
        return encoded

    # --- the log ------------------------------------------------------------------------------

    def _note_frame(self, frame: EncodedFrame, plan: FramePlan, first: int, now: float) -> None:
        self._log.frames.add(
            (
                self._flow,
                self._frame,
                frame.captured_at,
                now,
                len(frame.data),
                frame.keyframe,
                plan.target_bps,
                frame.refer is not None,
                getattr(self._encoder, "last_quantizer", -1),
                first,
                self.session.next_seq - first,
            )
        )
        self._frame += 1

    def _note_decision(self, plan: FramePlan, now: float) -> None:
        stats = self.session.controller_stats()
        window = nan if stats.cwnd_bytes is None else stats.cwnd_bytes
        self._log.decisions.add(
            (self._flow, now, plan.target_bps, plan.keyframe, window, stats.bytes_in_flight)
        )

    def _note_feedback(self, now: float) -> None:
        stats = self.session.controller_stats()
        delay = stats.queue_delay
        self._log.feedback.add(
            (
                self._flow,
                now,
                nan if stats.srtt is None else stats.srtt,
                nan if delay is None else delay,
            )
        )


class ReceiverNode:
    """Session and decoder of one flow."""

    def __init__(
        self,
        flow: int,
        session: ReceiverSession,
        *,
        decoder: VideoDecoder,
        scheduler: Agenda,
        log: EventLog,
        pictures: "KeptPictures | None" = None,
    ) -> None:
        """`pictures`: the sender's, to compare with."""
        self.session = session
        self.pictures = pictures
        self._flow = flow
        self._decoder = decoder
        self._log = log
        self._alarm = Alarm(scheduler, self._timeout)
        self._send: Callable[[Transmit, float], None]
        self._path: PathNode
        self.damaged = 0
        """Frames the decoder found damaged."""

    def attach(self, path: PathNode, end: End) -> None:
        """Feedback leaves by this path."""
        self._path, self._send = path, path.join(end)

    def receive(self, batch: list[Datagram], now: float) -> None:
        """Media arrived."""
        self.session.handle_datagrams(batch, now=now)
        self.turn(now)

    def turn(self, now: float) -> None:
        """Send what is to be sent, decode what can be decoded, and look at the clock again."""
        session = self.session
        sent = False
        while True:
            while (transmit := session.poll_transmit(now=now)) is not None:
                self._send(transmit, now)
                sent = True
            event = session.poll_event()
            if event is None:
                break
            if isinstance(event, FrameReady):
                self._decode(event, now)
        if sent:
            self._path.wake()
        self._alarm.set(session.next_timeout())

    def close(self, now: float) -> None:
        """The end: whatever is not complete is lost."""
        self.session.close(now=now)
        self.turn(now)
        self._decoder.close()

    def _timeout(self, now: float) -> None:
        self.session.handle_timeout(now=now)
        self.turn(now)

    def _decode(self, frame: FrameReady, now: float) -> None:
        try:
            shown = self._decoder.decode(frame.data)
        except MediaError:
            self.damaged += 1
            shown = ()
        if shown and self.pictures is not None:
            self.pictures.shown(frame.frame_no, shown[-1])
        pictures = len(shown)
        self._log.shown.add((self._flow, frame.frame_no, frame.completed_at, now, pictures))
        self.session.handle_decoded(frame.frame_no, pictures, now=now)
