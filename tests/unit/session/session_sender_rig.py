"""What drives a sender session in tests: a rig stepped by hand and a scripted controller."""

import math

from session_parts import OFFSET, RECEIVER, SSRC, drain_events, drain_transmits, report

from streamd.cc.api import (
    Controller,
    ControllerStats,
    FeedbackReport,
    Limits,
    MediaQueue,
    RateDecision,
    SentPacket,
)
from streamd.cc.fixed import FixedConfig, FixedController
from streamd.datagram import Address, Datagram
from streamd.ecn import ECT1
from streamd.media.model import EncodedFrame
from streamd.session.events import Event
from streamd.session.packetize import StreamIdentity
from streamd.session.sender import FramePlan, SenderSession
from streamd.session.sender_options import SenderOptions
from streamd.wire.ccfb import encode_ccfb
from streamd.wire.rtcp import RtcpPacket, decode_compound
from streamd.wire.rtp import decode_rtp

RATE = 1_200_000


class Rig:
    """A sender session stepped by hand; whatever leaves is kept with its time."""

    def __init__(
        self,
        *,
        controller: Controller | None = None,
        peer: Address | None = RECEIVER,
        bwtool: bool = False,
        breaker: bool = True,
        first_seq: int = 0,
        retransmissions: int = 3,
        quantum: float = 0.0005,
        rate: float = RATE,
        now: float = 10.0,
    ) -> None:
        self.now = now
        self.controller = controller or FixedController(FixedConfig(rate_bps=rate), ecn=ECT1)
        self.session = SenderSession(
            SenderOptions(
                identity=StreamIdentity(SSRC, 98, first_seq=first_seq),
                limits=Limits(150_000, 1_000_000, 50_000_000),
                peer=peer,
                bwtool=bwtool,
                minus_one=bwtool,
                breaker=breaker,
                retransmissions=retransmissions,
                quantum=quantum,
            ),
            self.controller,
            now=now,
            unix_offset=OFFSET,
        )
        self.media: list[tuple[float, int]] = []
        """Time and 16-bit number of each media packet."""
        self.runs: list[list[int]] = []
        """Segment sizes of each media transmit."""
        self.control: list[tuple[float, list[RtcpPacket]]] = []
        self.addresses: list[Address] = []
        self._events: list[Event] = []

    def frame(self, size: int = 1200, *, key: bool = False) -> FramePlan:
        """Ask for, make and queue a frame; send what may leave at once."""
        plan = self.session.next_frame(now=self.now)
        self.session.handle_frame(EncodedFrame(bytes(size), key, self.now), now=self.now)
        self._collect()
        return plan

    def frames(self, count: int, period: float, size: int = 1200) -> None:
        """Frames at a constant rate, the first one now."""
        start = self.now
        for step in range(count):
            self.until(start + step * period)
            self.frame(size)

    def until(self, end: float) -> list[Event]:
        """Let timeouts pass up to `end`; the events since the last look."""
        looks = 0
        while (due := self.session.next_timeout()) is not None and due <= end:
            self.now = max(self.now, due)
            self.session.handle_timeout(now=self.now)
            self._collect()
            looks += 1
            assert looks < 100_000, "the session asks for the past over and over"
        self.now = end
        return self.events()

    def events(self) -> list[Event]:
        events, self._events = self._events, []
        return events

    def give(
        self, data: bytes, address: Address = RECEIVER, *, arrived_at: float | None = None
    ) -> list[Event]:
        at = self.now if arrived_at is None else arrived_at
        self.session.handle_datagrams([Datagram(data, address, 0, at)], now=self.now)
        self._collect()
        return self.events()

    def feedback(
        self, begin: int, words: list[int | None], *, at: float | None = None
    ) -> list[Event]:
        """A report stamped with our own clock, or with `at`."""
        made = report(begin, words, at=self.now if at is None else at)
        return self.give(encode_ccfb(made))

    @property
    def ignored(self) -> dict[str, int]:
        return self.session.stats.feedback_ignored

    def _collect(self) -> None:
        for transmit in drain_transmits(self.session, self.now):
            self.addresses.append(transmit.address)
            first = transmit.segments[0]
            if first[1] & 0x7F == 98:
                assert transmit.ecn == ECT1
                sizes = [len(item) for item in transmit.segments]
                assert set(sizes[:-1]) <= {sizes[0]}
                assert sizes[-1] <= sizes[0]
                self.runs.append(sizes)
                self.media += [(self.now, decode_rtp(item).seq) for item in transmit.segments]
            else:
                assert transmit.ecn == 0
                assert len(transmit.segments) == 1
                self.control.append((self.now, decode_compound(first)))
        self._events += drain_events(self.session)


class Scripted(Controller):
    """A controller whose answers a test sets."""

    def __init__(self) -> None:
        self.reports: list[FeedbackReport] = []
        self.sent: list[int] = []
        self.may: float | None = 0.0
        self.mss = 1200
        self.wanted = False
        self.loss_epoch = False
        self.interval = 0.0
        self.timeouts = 0
        self.due: float | None = None
        self.forgotten = 0
        self._queue: MediaQueue | None = None
        self._ssrc = 0

    def add_stream(
        self, ssrc: int, *, queue: MediaQueue, limits: Limits, priority: float = 1.0, now: float
    ) -> None:
        self._ssrc, self._queue = ssrc, queue

    def select(self, *, now: float) -> int | None:
        return self._ssrc if self._queue is not None and len(self._queue) else None

    def may_send(self, ssrc: int, size: int, *, now: float) -> float | None:
        return self.may

    def on_packet_sent(self, packet: SentPacket, *, now: float) -> float:
        self.sent.append(packet.seq)
        return self.interval

    def on_feedback(self, report: FeedbackReport, *, now: float) -> None:
        self.reports.append(report)

    def on_timeout(self, *, now: float) -> None:
        self.timeouts += 1
        self.due = None

    def next_timeout(self) -> float | None:
        return self.due

    def forget_unacked(self, ssrc: int, *, now: float) -> None:
        self.forgotten += 1

    def decision(self, ssrc: int, *, now: float) -> RateDecision:
        wanted, self.wanted = self.wanted, False
        epoch, self.loss_epoch = self.loss_epoch, False
        return RateDecision(2e6, 3e6, math.inf, self.mss, ECT1, wanted, epoch)

    def stats(self, ssrc: int) -> ControllerStats:
        return ControllerStats(target_bps=2e6, queue_delay=0.0125)
