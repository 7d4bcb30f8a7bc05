"""Plain counters of the two sessions; metrics and summaries read them, nothing else writes."""

from dataclasses import dataclass, field

from streamd.histogram import Histogram
from streamd.qoe.causes import FREEZE_CAUSES, LATE_CAUSES
from streamd.qoe.samples import Samples

QUEUE_DELAY_BOUNDS = (
    0.0005,
    0.001,
    0.002,
    0.003,
    0.005,
    0.007,
    0.010,
    0.015,
    0.020,
    0.025,
    0.030,
    0.050,
    0.075,
    0.100,
    0.150,
    0.200,
    0.300,
    0.500,
)
FRAME_LATENCY_BOUNDS = (0.010, 0.020, 0.033, 0.050, 0.066, 0.100, 0.150, 0.200, 0.300, 0.500, 1.0)
FEEDBACK_INTERVAL_BOUNDS = (0.005, 0.010, 0.020, 0.030, 0.050, 0.100, 0.200)


def count_reason(counters: dict[str, int], reason: str, count: int = 1) -> None:
    """Add to a counter by reason. Reasons come from our own fixed words only."""
    counters[reason] = counters.get(reason, 0) + count


@dataclass(slots=True)
class SenderStats:
    """Of one sender session. Bytes are RTP bytes (header + extension + payload)."""

    started_at: float | None = None
    """When the first frame came (s, session clock)."""
    ended_at: float | None = None
    """When the source stopped."""
    packets: int = 0
    bytes: int = 0
    retransmitted_packets: int = 0
    retransmitted_bytes: int = 0
    discarded_packets: int = 0
    """Thrown out of the send queue because it was older than the controller allows."""
    discarded_frames: int = 0
    """Frames that lost packets that way before they were ever sent."""
    frames_key: int = 0
    frames_delta: int = 0
    frames_repair: int = 0
    """Of these: predicted from a frame the receiver is known to have."""
    frames_dropped_by_encoder: int = 0
    frames_without_peer: int = 0
    """Thrown away because nobody had asked for them yet; in no other frame count."""
    frame_bytes: int = 0
    keyframe_requests: dict[str, int] = field(default_factory=dict)
    """Requests taken up, by cause: target, loss, receiver."""
    feedback_reports: int = 0
    feedback_bytes: int = 0
    feedback_ignored: dict[str, int] = field(default_factory=dict)
    """Reports that were ignored in whole or in part, by reason."""
    last_feedback_at: float | None = None
    ecn_acked: list[int] = field(default_factory=lambda: [0, 0, 0, 0])
    """Acknowledged packets by the codepoint the receiver saw: not-ECT, ECT(1), ECT(0), CE."""
    invalid: dict[str, int] = field(default_factory=dict)
    """Datagrams that were no valid input, by reason."""
    breaker_trips: int = 0
    rtt: Samples = field(default_factory=Samples)
    queue_delay: Samples = field(default_factory=Samples)
    """The controller's estimate at each report (`est_cc`)."""
    queue_delay_histogram: Histogram = field(default_factory=lambda: Histogram(QUEUE_DELAY_BOUNDS))
    feedback_interval_histogram: Histogram = field(
        default_factory=lambda: Histogram(FEEDBACK_INTERVAL_BOUNDS)
    )


@dataclass(slots=True)
class ReceiverStats:
    """Of one receiver session, over all streams it has seen."""

    first_arrival: float | None = None
    last_arrival: float | None = None
    ended_at: float | None = None
    """When the sender said BYE; None while it streams."""
    packets: int = 0
    """RTP packets, duplicates and retransmissions included."""
    bytes: int = 0
    payload_bytes: int = 0
    copies: int = 0
    """Of these: retransmissions in a stream of their own (RFC 4588)."""
    duplicates: int = 0
    reordered: int = 0
    ecn: list[int] = field(default_factory=lambda: [0, 0, 0, 0])
    ecn_unknown: int = 0
    feedback_reports: int = 0
    feedback_bytes: int = 0
    keyframe_requests: int = 0
    streams: int = 0
    """Times a stream (SSRC) was taken up: 1, plus restarts of the sender."""
    invalid: dict[str, int] = field(default_factory=dict)
    frames_seen: int = 0
    """Frames that exist by their numbers, from the first to the newest seen of each stream."""
    frames_completed: int = 0
    frames_key: int = 0
    frames_decoded: int = 0
    frames_lost: int = 0
    """Never completed."""
    frames_skipped: int = 0
    """Complete, but given up to jump to a later key frame."""
    frames_undecodable: int = 0
    """Complete and in order, but refused by the decoder or without its reference."""
    frames_mended: int = 0
    """Times a repair frame let decoding go on after a loss."""
    frames_late: dict[str, int] = field(default_factory=lambda: dict.fromkeys(LATE_CAUSES, 0))
    """Shown later than `qoe.causes.LATE` after capture, by cause."""
    freezes: dict[str, int] = field(default_factory=lambda: dict.fromkeys(FREEZE_CAUSES, 0))
    """By cause; the sum is that of the freeze detector."""
    late_fragments: int = 0
    """Fragments of frames that had been shown or given up."""
    jitter: float = 0.0
    """Interarrival jitter (s), RFC 3550 section 6.4.1."""
    inter_frame: Samples = field(default_factory=Samples)
    frame_latency: Samples = field(default_factory=Samples)
    frames_negative_latency: int = 0
    """Shown before their capture by more than the clocks' error bound: they were mapped wrongly."""
    clock_offset: float | None = None
    """The sender's clock minus ours, as believed now (s); None: not known."""
    clock_bound: float | None = None
    """The error bound of that (s)."""
    clock_error_bound: float | None = None
    """The largest bound a counted latency was taken with (s)."""
    frame_latency_histogram: Histogram = field(
        default_factory=lambda: Histogram(FRAME_LATENCY_BOUNDS)
    )
