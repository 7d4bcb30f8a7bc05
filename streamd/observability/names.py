"""Every metric streamd exports: its name, kind, labels and help text, in one place.

`docs/metrics.md` is generated from here. Names follow Prometheus' rules: base
units in the plural, one quantity per metric, no unit or label in a name that does not belong there.
"""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["counter", "gauge", "histogram", "info"]


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric family; a counter's name is without `_total`, an info's without `_info`."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()

    @property
    def exposed(self) -> str:
        """The name as scraped."""
        return self.name + {"counter": "_total", "info": "_info"}.get(self.kind, "")


def _counter(name: str, text: str, *labels: str) -> Metric:
    return Metric(f"streamd_{name}", "counter", text, labels)


def _gauge(name: str, text: str, *labels: str) -> Metric:
    return Metric(f"streamd_{name}", "gauge", text, labels)


def _histogram(name: str, text: str, *labels: str) -> Metric:
    return Metric(f"streamd_{name}", "histogram", text, labels)


BUILD = Metric(
    "streamd_build", "info", "Version of the program.", ("version", "revision", "python")
)
SESSION = Metric("streamd_session", "info", "What runs here.", ("controller", "codec", "direction"))
LOOP_LAG = _histogram("event_loop_lag_seconds", "How late the event loop runs a periodic callback.")
INVALID = _counter("invalid_packets", "Datagrams that were no valid input, by reason.", "reason")

SENDER_PACKETS = _counter("sender_packets", "RTP packets sent, retransmissions included.")
SENDER_BYTES = _counter("sender_bytes", "RTP bytes sent, retransmissions included.")
SENDER_RETRANSMITTED_PACKETS = _counter("sender_retransmitted_packets", "RTP packets sent again.")
SENDER_RETRANSMITTED_BYTES = _counter("sender_retransmitted_bytes", "RTP bytes sent again.")
SENDER_DISCARDED = _counter(
    "sender_discarded_packets", "Packets thrown out of the send queue because they were too old."
)
SENDER_FRAMES = _counter("sender_frames", "Frames encoded.", "kind")
SENDER_FRAMES_SKIPPED = _counter(
    "sender_frames_skipped", "Frames the encoder dropped to hold its rate."
)
SENDER_KEYFRAME_REQUESTS = _counter(
    "sender_keyframe_requests", "Requests for a key frame that were taken up, by cause.", "cause"
)
SENDER_ACKED = _counter(
    "sender_acknowledged_packets",
    "Packets acknowledged, by the ECN codepoint the receiver saw.",
    "codepoint",
)
SENDER_BREAKER = _counter(
    "sender_breaker_trips", "Times missing feedback made the circuit breaker bound the rate."
)

CC_TARGET = _gauge("cc_target_bytes_per_second", "Media rate the controller asks of the encoder.")
CC_PACING = _gauge("cc_pacing_bytes_per_second", "Rate packets leave the send queue at.")
CC_WINDOW = _gauge("cc_congestion_window_bytes", "Bytes that may be in flight.")
CC_IN_FLIGHT = _gauge("cc_bytes_in_flight", "Bytes sent and not yet acknowledged or lost.")
CC_RTT = _gauge("cc_rtt_seconds", "Smoothed round-trip time.")
CC_QUEUE_DELAY = _histogram(
    "cc_queue_delay_seconds", "The controller's estimate of the queue delay, at each report."
)
CC_STATE = _gauge("cc_state", "1 for the state the controller is in, 0 for its others.", "state")
CC_LOST = _counter("cc_packets_lost", "Packets the controller declared lost.")
CC_LOST_BYTES = _counter("cc_bytes_lost", "RTP bytes the controller declared lost.")
CC_CE = _counter("cc_packets_ce_marked", "Packets reported as marked CE.")
CC_REPORTS = _counter("cc_feedback_reports", "Feedback reports received.")
CC_FEEDBACK_BYTES = _counter("cc_feedback_bytes", "Bytes of feedback reports received.")
CC_FEEDBACK_IGNORED = _counter(
    "cc_feedback_ignored", "What feedback said that was not believed, by reason.", "reason"
)
CC_FEEDBACK_INTERVAL = _histogram("cc_feedback_interval_seconds", "Time between feedback reports.")
CC_LAST_FEEDBACK = _gauge(
    "cc_last_feedback_timestamp_seconds", "When the last report arrived; 0 before the first."
)

RECEIVER_PACKETS = _counter("receiver_packets", "RTP packets received, duplicates included.")
RECEIVER_BYTES = _counter("receiver_bytes", "RTP bytes received, duplicates included.")
RECEIVER_ECN = _counter(
    "receiver_ecn_packets", "RTP packets received, by ECN codepoint.", "codepoint"
)
RECEIVER_ECN_UNKNOWN = _counter(
    "receiver_ecn_unknown_packets", "RTP packets whose ECN codepoint the system did not tell."
)
RECEIVER_DUPLICATES = _counter("receiver_duplicate_packets", "RTP packets received before.")
RECEIVER_REORDERED = _counter("receiver_reordered_packets", "RTP packets that came out of order.")
RECEIVER_STREAMS = _counter(
    "receiver_streams", "Streams taken up; a restarted sender is a new one."
)
RECEIVER_FRAMES = _counter("receiver_frames_completed", "Frames of which every packet came.")
RECEIVER_DECODED = _counter("receiver_frames_decoded", "Frames decoded.")
RECEIVER_FRAMES_LOST = _counter("receiver_frames_lost", "Frames that never became complete.")
RECEIVER_FRAMES_SKIPPED = _counter(
    "receiver_frames_skipped", "Complete frames given up to go on at a later key frame."
)
RECEIVER_UNDECODABLE = _counter(
    "receiver_frames_undecodable", "Complete frames without their reference, or damaged."
)
RECEIVER_LATE = _counter(
    "receiver_late_fragments", "Fragments of frames that had been shown or given up."
)
RECEIVER_LATENCY = _histogram(
    "receiver_frame_latency_seconds", "From capture to decoded frame, on the receiver's clock."
)
RECEIVER_NEGATIVE = _counter(
    "receiver_frames_negative_latency", "Frames shown before their capture: the clocks are wrong."
)
RECEIVER_CLOCK_OFFSET = _gauge(
    "receiver_clock_offset_seconds",
    "The sender's wall clock minus the receiver's; no sample before it is known.",
)
RECEIVER_CLOCK_BOUND = _gauge(
    "receiver_clock_error_bound_seconds",
    "The clock offset, and so latency, is wrong by no more than this.",
)
RECEIVER_JITTER = _gauge(
    "receiver_interarrival_jitter_seconds", "Interarrival jitter as RFC 3550 defines it."
)
RECEIVER_MENDED = _counter(
    "receiver_frames_mended", "Times a repair frame let decoding go on after a loss."
)
RECEIVER_LATE_FRAMES = _counter(
    "receiver_frames_late", "Frames shown more than 0.4 s after their capture.", "cause"
)
RECEIVER_FREEZES = _counter("receiver_freezes", "Times the picture stood still.", "cause")
RECEIVER_FREEZE_SECONDS = _counter("receiver_freeze_seconds", "Time the picture stood still.")
RECEIVER_FEEDBACK = _counter("receiver_feedback_reports", "Feedback reports sent.")
RECEIVER_FEEDBACK_BYTES = _counter("receiver_feedback_bytes", "Bytes of feedback reports sent.")
RECEIVER_KEYFRAME_REQUESTS = _counter("receiver_keyframe_requests", "Key frames asked for.")
RECEIVER_LAST_PACKET = _gauge(
    "receiver_last_packet_timestamp_seconds", "When the last packet arrived; 0 before the first."
)

LINK_PACKETS = _counter("link_packets", "Packets the queue handed to the link.", "path", "queue")
LINK_BYTES = _counter("link_bytes", "Bytes the queue handed to the link.", "path", "queue")
LINK_DROPPED = _counter("link_packets_dropped", "Packets dropped.", "path", "queue", "reason")
LINK_MARKED = _counter("link_packets_marked", "Packets set to CE.", "path", "queue", "cause")
LINK_BACKLOG = _gauge("link_backlog_bytes", "Bytes waiting.", "path", "queue")
LINK_SOJOURN = _histogram(
    "link_sojourn_seconds", "Time from arrival until the link takes the packet.", "path", "queue"
)
LINK_OPPORTUNITIES = _counter(
    "link_delivery_opportunities", "Delivery opportunities of the trace.", "path"
)
LINK_OPPORTUNITIES_USED = _counter(
    "link_delivery_opportunities_used", "Delivery opportunities that carried something.", "path"
)

SOCKET_SENT = _counter("socket_datagrams_sent", "Datagrams handed to the system.", "socket")
SOCKET_RECEIVED = _counter("socket_datagrams_received", "Datagrams read.", "socket")
SOCKET_KERNEL_DROPS = _counter(
    "socket_kernel_drops", "Datagrams dropped because the receive buffer was full.", "socket"
)
SOCKET_SEND_DROPS = _counter(
    "socket_send_drops", "Datagrams the system refused or that waited too long.", "socket"
)
SOCKET_BLOCKED = _counter(
    "socket_sends_blocked", "Sends put off because the socket's buffer was full.", "socket"
)
SOCKET_TRUNCATED = _counter(
    "socket_truncated_reads", "Reads that lost data or control messages.", "socket"
)
SOCKET_REFUSED = _counter(
    "socket_icmp_refused", "ICMP errors saying that nobody listens at the peer.", "socket"
)
SOCKET_NO_ECN = _counter("socket_ecn_missing", "Reads without the ECN codepoint.", "socket")
SOCKET_BUFFER = _gauge(
    "socket_receive_buffer_bytes", "Receive buffer the system granted.", "socket"
)

ALL: tuple[Metric, ...] = tuple(
    value for name, value in list(globals().items()) if isinstance(value, Metric)
)
"""In the order they are defined."""
