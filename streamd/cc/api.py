"""The door every congestion controller stands behind.

A controller is a plain state machine: it is told what was queued, sent and
acknowledged, and answers how fast to encode and when to send. It never sees a
socket, a clock or a wire format; `now` is in seconds of the session clock.

Call order, as the sender session keeps it:

1. `add_stream` once per SSRC.
2. per frame: `decision(ssrc)` just before encoding; then, for each packet, after
   it was appended to the stream's queue, `on_media_packet`.
3. per packet: `select` names the stream to serve, `may_send` says whether its
   head packet fits; the session pops it and calls `on_packet_sent`.
4. per report: `on_feedback`.
5. `on_timeout` when `next_timeout` is due.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from streamd.ecn import NOT_ECT


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one stream's media rate, in bit/s."""

    min_bps: float
    start_bps: float
    max_bps: float


class MediaQueue(Protocol):
    """A controller's view of the packets of one stream that wait to be sent.

    Owned by the session. Sizes are RTP header + extensions + payload, in bytes.
    """

    bytes_queued: int

    def __len__(self) -> int:
        """Packets waiting."""

    def head_size(self) -> int:
        """Size of the packet to leave next; 0 when empty."""

    def head_time(self) -> float | None:
        """When the frame of the head packet was queued (s); None when empty."""

    def clear(self) -> int:
        """Throw every waiting packet away (the session counts them); returns how many."""


class SentPacket:
    """One packet on its way: written by the session when sent and when acknowledged.

    A retransmission rewrites the same record: `sent_at`, `transmissions` change,
    the acknowledgement fields are cleared.
    """

    __slots__ = (
        "acked",
        "arrived_at",
        "ecn",
        "first_sent_at",
        "lost",
        "marker",
        "rtp_time",
        "sent_at",
        "seq",
        "size",
        "ssrc",
        "transmissions",
    )

    def __init__(
        self,
        ssrc: int,
        seq: int,
        size: int,
        rtp_time: int,
        marker: bool,
        sent_at: float,
    ) -> None:
        """`seq` and `rtp_time` (90 kHz) are unwrapped: they only grow. `size` as in MediaQueue."""
        self.ssrc = ssrc
        self.seq = seq
        self.size = size
        self.rtp_time = rtp_time
        self.marker = marker
        self.sent_at = sent_at
        self.first_sent_at = sent_at
        self.transmissions = 1
        self.acked = False
        self.lost = False
        self.arrived_at = 0.0
        """Arrival on the receiver's clock (s); meaningful only as a difference.

        `arrived_at - sent_at` is a delay the path had, also where an earlier
        transmission than the last is what arrived: the session then moves the arrival.
        """
        self.ecn = NOT_ECT
        """The codepoint the receiver saw."""


class StreamReport:
    """One block list of a feedback report (RFC 8888 section 3.1), for one SSRC."""

    __slots__ = ("acked", "end_received", "end_seq", "lost", "repeats", "ssrc")

    def __init__(self, ssrc: int, end_seq: int, end_received: bool) -> None:
        self.ssrc = ssrc
        self.end_seq = end_seq
        """Unwrapped sequence number of the last block of the list."""
        self.end_received = end_received
        """Whether that last block says "received"."""
        self.repeats = False
        """The list also names as received packets that were known to be."""
        self.acked: list[SentPacket] = []
        """Newly acknowledged packets, in sequence order."""
        self.lost: list[SentPacket] = []
        """Packets the session's own reordering rule now holds to be lost."""


class FeedbackReport:
    """Everything one RTCP feedback packet said, list by list in wire order."""

    __slots__ = ("received_at", "report_time", "streams")

    def __init__(self, received_at: float, report_time: float) -> None:
        self.received_at = received_at
        self.report_time = report_time
        """The receiver's clock when it made the report (s), unwrapped."""
        self.streams: list[StreamReport] = []


@dataclass(slots=True)
class RateDecision:
    """What to do with the next frame. The two flags are one-shot: reading clears them."""

    target_bps: float
    """Media rate for the encoder, RTP headers included; always positive."""
    pacing_bps: float
    cwnd_bytes: float
    """The window the send decision is made with; `inf` for a purely rate-based controller."""
    mss_bytes: int
    """Largest RTP payload per packet the controller asks for now."""
    ecn: int
    """The codepoint to send with."""
    keyframe_wanted: bool = False
    """State was lost at the sender or in the network: start the picture afresh."""
    loss_epoch: bool = False
    """Packets were lost or discarded since the last decision."""


@dataclass(slots=True)
class ControllerStats:
    """What every controller can tell, for periodic lines and metrics; None = has no such thing."""

    target_bps: float = 0.0
    pacing_bps: float = 0.0
    cwnd_bytes: float | None = None
    bytes_in_flight: int = 0
    srtt: float | None = None
    queue_delay: float | None = None
    """The controller's own estimate of the one-way queuing delay (s)."""
    bytes_lost: int = 0
    """RTP bytes the controller declared lost ("sender-observed loss")."""
    packets_lost: int = 0
    packets_ce: int = 0
    state: str = ""
    extra: dict[str, float] = field(default_factory=dict)
    """Values declared in the spec's `metrics`, by name."""


class Controller:
    """Base class: hooks do nothing, a third party overrides what its algorithm needs."""

    def add_stream(
        self,
        ssrc: int,
        *,
        queue: MediaQueue,
        limits: Limits,
        priority: float = 1.0,
        now: float,
    ) -> None:
        """A stream begins; its `queue` may be read at any time."""

    def on_media_packet(self, ssrc: int, size: int, marker: bool, *, now: float) -> None:
        """A packet was appended to the stream's queue; `marker`: the last one of its frame."""

    def select(self, *, now: float) -> int | None:
        """The SSRC to serve next, or None when nothing is queued."""
        raise NotImplementedError

    def may_send(self, ssrc: int, size: int, *, now: float) -> float | None:
        """Earliest time this packet may leave by the controller's own pacing; None = window full.

        The session paces by the intervals `on_packet_sent` returns, in quanta;
        it heeds None, and a time further away than its own next send time.
        """
        return now

    def on_packet_sent(self, packet: SentPacket, *, now: float) -> float:
        """A packet left. Returns the pacing interval until the next one (s)."""
        raise NotImplementedError

    def on_feedback(self, report: FeedbackReport, *, now: float) -> None:
        """A report arrived and was matched with the packets sent."""

    def on_timeout(self, *, now: float) -> None:
        """`next_timeout` is due."""

    def next_timeout(self) -> float | None:
        """When the controller wants `on_timeout` (s); None = never."""
        return None

    def forget_unacked(self, ssrc: int, *, now: float) -> None:
        """Drop every memory of packets in flight: they are not going to be acknowledged."""

    def decision(self, ssrc: int, *, now: float) -> RateDecision:
        """The rate for the next frame; asked once per frame."""
        raise NotImplementedError

    def stats(self, ssrc: int) -> ControllerStats:
        """Present values; must be cheap and must not change anything."""
        raise NotImplementedError


class BuildController(Protocol):
    """Makes a controller from its validated configuration."""

    def __call__(self, config: Any, *, ecn: int, rng: random.Random, now: float) -> Controller:
        """`ecn` is the codepoint to send with; ConfigError if the algorithm cannot honour it."""


@dataclass(frozen=True, slots=True)
class ControllerSpec:
    """What an entry point of the group `streamd.congestion_controllers` names."""

    name: str
    summary: str
    config_type: type
    """A frozen dataclass with a default for every field: the section `[cc.<name>]`."""
    build: BuildController
    ecn_modes: tuple[str, ...]
    """The ECN modes it honours, best first: of notect, ect0, ect1."""
    signals: tuple[str, ...] = ()
    """The congestion signals it reacts to: of loss, ce, delay."""
    source: str = ""
    """Draft or paper, section, revision."""
    metrics: Mapping[str, str] = field(default_factory=dict)
    """Extra statistics, name to help text."""
    api_version: int = 1
