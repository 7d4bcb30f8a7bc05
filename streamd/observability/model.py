"""What the collectors read: the shapes of the plain counters, and one view per role.

A daemon hands a collector a function that returns a view; it is called once per
scrape. The counters are the sessions' and links' own objects: nothing is copied
per packet, nothing here writes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from streamd.cc.api import ControllerStats
from streamd.histogram import Histogram


class SenderCounts(Protocol):
    """Of `session.stats.SenderStats`. Bytes are RTP bytes."""

    packets: int
    bytes: int
    retransmitted_packets: int
    retransmitted_bytes: int
    discarded_packets: int
    frames_key: int
    frames_delta: int
    frames_dropped_by_encoder: int
    keyframe_requests: dict[str, int]
    feedback_reports: int
    feedback_bytes: int
    feedback_ignored: dict[str, int]
    ecn_acked: list[int]
    invalid: dict[str, int]
    breaker_trips: int
    queue_delay_histogram: Histogram
    feedback_interval_histogram: Histogram


class ReceiverCounts(Protocol):
    """Of `session.stats.ReceiverStats`. Bytes are RTP bytes."""

    packets: int
    bytes: int
    duplicates: int
    reordered: int
    ecn: list[int]
    ecn_unknown: int
    feedback_reports: int
    feedback_bytes: int
    keyframe_requests: int
    streams: int
    invalid: dict[str, int]
    frames_completed: int
    frames_decoded: int
    frames_lost: int
    frames_skipped: int
    frames_undecodable: int
    frames_mended: int
    frames_late: dict[str, int]
    freezes: dict[str, int]
    late_fragments: int
    jitter: float
    frame_latency_histogram: Histogram
    frames_negative_latency: int
    clock_offset: float | None
    clock_bound: float | None


class QueueCounts(Protocol):
    """Of `link.queue.QueueCounters`."""

    name: str
    departed_bytes: int
    drops: dict[str, list[int]]
    """Packets by cause, then by codepoint."""
    marks: dict[str, int]
    sojourn: Histogram

    @property
    def departed_packets(self) -> int:
        """Packets handed to the link."""

    @property
    def queued_bytes(self) -> int:
        """Bytes waiting."""


class SocketCounts(Protocol):
    """Of `io.net.EndpointStats`."""

    datagrams_sent: int
    datagrams_received: int
    kernel_drops: int
    truncated: int
    control_truncated: int
    send_would_block: int
    send_dropped: int
    icmp_refused: int
    ecn_missing: int


@dataclass(frozen=True, slots=True)
class SocketView:
    """One UDP socket at the moment of a scrape."""

    counts: SocketCounts
    receive_buffer: int
    """Receive buffer the system granted (bytes)."""


@dataclass(frozen=True, slots=True)
class SenderView:
    """One sending session at the moment of a scrape."""

    counts: SenderCounts
    cc: ControllerStats
    controller: str
    codec: str
    last_feedback_unix: float | None
    """Wall-clock time (s) of the last report; None before the first."""
    states: Sequence[str] = ()
    """Every state the controller can be in, so that those it is not in are exported as 0."""
    metrics: Mapping[str, str] | None = None
    """The controller's own metrics, name to help text (`ControllerSpec.metrics`)."""


@dataclass(frozen=True, slots=True)
class ReceiverView:
    """One receiving session at the moment of a scrape."""

    counts: ReceiverCounts
    codec: str
    freeze_seconds: float
    last_packet_unix: float | None


@dataclass(frozen=True, slots=True)
class PathView:
    """One direction of a link at the moment of a scrape."""

    name: str
    """uplink or downlink."""
    queues: Sequence[QueueCounts]
    losses: int
    """Packets lost at random, as configured."""
    oversize: int
    """Packets larger than the link can carry."""
    opportunities: int
    """Delivery opportunities of a trace so far; 0 on a constant-rate link."""
    opportunities_used: int
