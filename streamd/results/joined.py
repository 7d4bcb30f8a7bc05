"""What the viewer got of one stream: three summaries joined into flat result keys."""

from collections.abc import Mapping, Sequence

from streamd.results.streams import Summary

SENDER_KEYS = (
    "tx_bps",
    "target_bps",
    "loss_ratio",
    "residual_loss_ratio",
    "sender_loss_ratio",
    "rtt_p50_s",
    "rtt_p95_s",
    "queue_delay_est_p50_s",
    "queue_delay_est_p95_s",
    "queue_delay_tool_p50_s",
    "queue_delay_tool_p95_s",
    "duration_s",
    "packets_count",
    "feedback_reports_count",
    "circuit_breaker_count",
    "frames_skipped_count",
    "encode_mean_s",
    "frames_encoded_count",
    "frames_dropped_by_encoder_count",
    "frames_discarded_count",
    "keyframes_count",
    "repair_frames_count",
    "keyframe_requests_count",
    "retransmitted_packets_count",
    "discarded_packets_count",
)
RECEIVER_KEYS = (
    "rx_bps",
    "frames_completed_count",
    "frames_decoded_count",
    "inter_frame_p50_s",
    "inter_frame_p95_s",
    "frames_mended_count",
    "frames_late_count",
    "freeze_count",
    "freeze_causes_count",
    "freeze_s",
    "freeze_tail_s",
    "freeze_rule",
    "rendered_frames_count",
    "frames_compared_count",
    "psnr_mean_db",
    "psnr_of_mean_db",
    "ssim_mean",
    "frame_latency_p50_s",
    "frame_latency_p95_s",
    "frame_latency_p99_s",
    "frames_negative_latency_count",
    "clock_error_bound_s",
)
LINK_KEYS = (
    "queue_delay_p50_s",
    "queue_delay_p95_s",
    "queue_delay_p99_s",
    "link_loss_ratio",
    "link_drops_count",
    "link_marks_count",
    "utilisation_ratio",
)
NOT_NUMBERS = frozenset(
    {
        "keyframe_requests_count",
        "frames_late_count",
        "frames_skipped_count",
        "freeze_causes_count",
        "freeze_rule",
        "link_drops_count",
        "link_marks_count",
    }
)
"""Keys whose value is a table or a text."""
FIGURES = frozenset(
    {*SENDER_KEYS, *RECEIVER_KEYS, *LINK_KEYS, "ce_ratio", "frames_lost_count", "delivered_bps"}
    - NOT_NUMBERS
)
"""Every key of a stream that is a number, or null where there is none."""
LOST_KEYS = ("frames_lost_count", "frames_skipped_count", "frames_undecodable_count")


def join(
    sender: Summary,
    link: Summary,
    receiver: Summary,
    *,
    ecn_capable: bool,
    exit_codes: Mapping[str, int],
) -> Summary:
    """One row for a stream.

    `ce_ratio` is the receiver's; a stream of not-ECT has no marks, so 0.
    `frames_lost_count` is everything encoded but never shown, as the receiver
    counted it, plus the frames after the last one it saw anything of.
    """
    row: Summary = {key: sender[key] for key in SENDER_KEYS}
    row.update((key, receiver[key]) for key in RECEIVER_KEYS)
    row.update((key, link[key]) for key in LINK_KEYS)
    row["ce_ratio"] = receiver["ce_ratio"] if ecn_capable else 0.0
    seen = sum(receiver[key] for key in LOST_KEYS)
    unseen = max(0, row["frames_encoded_count"] - receiver["frames_seen_count"])
    row["frames_lost_count"] = seen + unseen
    row["exit_codes"] = dict(exit_codes)
    dropped = bool(receiver["kernel_drops_count"] or link["kernel_drops_count"])
    clock = receiver["clock_warnings"]
    row["warnings"] = warnings(row, exit_codes, kernel_drops=dropped, clock=clock)
    return row


def warnings(
    row: Summary, exit_codes: Mapping[str, int], *, kernel_drops: bool, clock: Sequence[str]
) -> list[str]:
    """What makes the numbers of this run doubtful (specification of metrics, section 8).

    `clock`: the receiver's warnings about its clock.
    """
    found = []
    if not row["rendered_frames_count"]:
        found.append("no frame was shown")
    if row["freeze_tail_s"]:
        found.append(f"the picture stood still for the last {row['freeze_tail_s']:.1f} s")
    accounted = row["frames_decoded_count"] + row["frames_lost_count"]
    if accounted != row["frames_encoded_count"]:
        found.append(f"{row['frames_encoded_count']} frames encoded, {accounted} accounted for")
    found.extend(clock)
    found.extend(f"{role} ended with exit code {code}" for role, code in exit_codes.items() if code)
    if kernel_drops:
        found.append("the kernel dropped datagrams: this machine is overloaded")
    return found
