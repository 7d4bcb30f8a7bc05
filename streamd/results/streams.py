"""Result keys of the two ends of a stream: one place for their names and definitions.

Units are in the names. None ("n/a") stands for a value that does not exist in
this run, never 0. Definitions: specification of metrics, sections 1 to 3.
"""

from typing import Any, Protocol

from streamd.datagram import Address
from streamd.peer import ip_udp_bytes
from streamd.qoe.freeze import FreezeDetector
from streamd.qoe.percentile import ratio
from streamd.qoe.samples import Samples
from streamd.session.sender import SenderSession
from streamd.session.stats import ReceiverStats, SenderStats

Summary = dict[str, Any]

MAX_CLOCK_ERROR = 0.002
"""Error bound of latencies above which a run is warned about (s)."""


class SocketCounts(Protocol):
    """What a summary tells of the socket a session had."""

    send_dropped: int
    kernel_drops: int


class NoSocket:
    """Of a session that had none: it was simulated."""

    send_dropped = 0
    kernel_drops = 0


def ip_overhead(address: Address | None) -> int:
    """IP + UDP header bytes towards an address; of IPv4 while there is none."""
    return 28 if address is None else ip_udp_bytes(address)


def rate_bps(payload_bytes: int, packets: int, ip_overhead: int, seconds: float) -> float:
    """Wire rate: IP + UDP headers included; 0 in a window without length."""
    return 8 * (payload_bytes + packets * ip_overhead) / seconds if seconds > 0 else 0.0


def percentiles(prefix: str, samples: Samples, *shares: int) -> Summary:
    """`{prefix}_p50_s` and so on."""
    return {f"{prefix}_p{share}_s": samples.percentile(share) for share in shares}


def ce_ratio(by_codepoint: list[int]) -> float | None:
    """CE over everything that arrived ECN-capable (metrics 1.5)."""
    return ratio(by_codepoint[3], sum(by_codepoint[1:]))


def sender_summary(
    session: SenderSession, endpoint: SocketCounts, *, overhead: int, now: float
) -> Summary:
    """Everything a sender can tell at time `now`."""
    stats = session.stats
    controller = session.controller_stats()
    lost, sent = session.network_loss(now=now)
    seconds = sender_seconds(stats, now)
    return {
        "duration_s": seconds,
        "tx_bps": rate_bps(stats.bytes, stats.packets, overhead, seconds),
        "target_bps": controller.target_bps,
        "packets_count": stats.packets,
        "bytes_count": stats.bytes,
        "retransmitted_packets_count": stats.retransmitted_packets,
        "discarded_packets_count": stats.discarded_packets,
        "loss_ratio": ratio(lost, sent),
        "residual_loss_ratio": ratio(*session.residual_loss(now=now)),
        "sender_loss_ratio": ratio(controller.bytes_lost, stats.bytes),
        "ce_ratio": ce_ratio(stats.ecn_acked),
        **percentiles("rtt", stats.rtt, 50, 95),
        **percentiles("queue_delay_est", stats.queue_delay, 50, 95),
        **percentiles("queue_delay_tool", session.tool.samples, 50, 95),
        "frames_encoded_count": stats.frames_key + stats.frames_delta,
        "frames_dropped_by_encoder_count": stats.frames_dropped_by_encoder,
        "frames_discarded_count": stats.discarded_frames,
        "keyframes_count": stats.frames_key,
        "repair_frames_count": stats.frames_repair,
        "keyframe_requests_count": dict(stats.keyframe_requests),
        "feedback_reports_count": stats.feedback_reports,
        "feedback_ignored_count": dict(stats.feedback_ignored),
        "invalid_datagrams_count": dict(stats.invalid),
        "circuit_breaker_count": stats.breaker_trips,
        "send_dropped_count": endpoint.send_dropped,
        "kernel_drops_count": endpoint.kernel_drops,
    }


def sender_seconds(stats: SenderStats, now: float) -> float:
    """From the first frame to the end of the source, or to now."""
    if stats.started_at is None:
        return 0.0
    return (stats.ended_at if stats.ended_at is not None else now) - stats.started_at


def receiver_summary(
    stats: ReceiverStats,
    freezes: FreezeDetector,
    endpoint: SocketCounts,
    *,
    overhead: int,
    now: float,
) -> Summary:
    """Everything a receiver can tell."""
    seconds = receiver_seconds(stats)
    tail = freezes.tail(now if stats.ended_at is None else stats.ended_at)
    return {
        "duration_s": seconds,
        "rx_bps": rate_bps(stats.bytes, stats.packets, overhead, seconds),
        "packets_count": stats.packets,
        "bytes_count": stats.bytes,
        "duplicate_packets_count": stats.duplicates,
        "reordered_packets_count": stats.reordered,
        "ce_ratio": ce_ratio(stats.ecn),
        "ecn_packets_count": dict(zip(("not_ect", "ect1", "ect0", "ce"), stats.ecn, strict=True)),
        "ecn_unknown_packets_count": stats.ecn_unknown,
        "frames_seen_count": stats.frames_seen,
        "frames_completed_count": stats.frames_completed,
        "frames_decoded_count": stats.frames_decoded,
        "frames_lost_count": stats.frames_lost,
        "frames_skipped_count": stats.frames_skipped,
        "frames_undecodable_count": stats.frames_undecodable,
        "frames_mended_count": stats.frames_mended,
        "frames_late_count": dict(stats.frames_late),
        "late_fragments_count": stats.late_fragments,
        "keyframe_requests_count": stats.keyframe_requests,
        **percentiles("inter_frame", stats.inter_frame, 50, 95),
        **percentiles("frame_latency", stats.frame_latency, 50, 95, 99),
        "frames_negative_latency_count": stats.frames_negative_latency,
        "clock_offset_s": stats.clock_offset,
        "clock_error_bound_s": stats.clock_error_bound,
        "clock_warnings": clock_warnings(stats),
        "freeze_count": freezes.freeze_count,
        "freeze_causes_count": dict(stats.freezes),
        "freeze_s": freezes.freeze_duration,
        "freeze_rule": freezes.mode,
        "freeze_tail_s": tail.freeze_duration,
        "rendered_frames_count": freezes.rendered_frames,
        "jitter_s": stats.jitter,
        "streams_count": stats.streams,
        "feedback_reports_count": stats.feedback_reports,
        "invalid_datagrams_count": dict(stats.invalid),
        "kernel_drops_count": endpoint.kernel_drops,
    }


def clock_warnings(stats: ReceiverStats) -> list[str]:
    """What makes latencies doubtful (specification of metrics, section 8)."""
    found = []
    bound, negative = stats.clock_error_bound, stats.frames_negative_latency
    if bound is not None and bound > MAX_CLOCK_ERROR:
        found.append(
            f"frame latencies may be wrong by {bound * 1000:.1f} ms: the clocks of sender and"
            " receiver could not be compared more closely"
        )
    if negative:
        found.append(f"{negative} frames were shown before their capture: the clocks disagree")
    return found


def receiver_seconds(stats: ReceiverStats) -> float:
    """From the first packet to the last."""
    if stats.first_arrival is None or stats.last_arrival is None:
        return 0.0
    return stats.last_arrival - stats.first_arrival
