"""What the viewer got in one chain: the three summaries joined into flat result keys."""

from streamd.stack.chain import ChainResult
from streamd.stack.process import Record

SENDER_KEYS = (
    "tx_bps",
    "target_bps",
    "loss_ratio",
    "sender_loss_ratio",
    "rtt_p50_s",
    "rtt_p95_s",
    "queue_delay_est_p50_s",
    "queue_delay_est_p95_s",
    "frames_encoded_count",
    "frames_dropped_by_encoder_count",
    "keyframes_count",
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
    "freeze_count",
    "freeze_s",
    "freeze_tail_s",
    "freeze_rule",
    "rendered_frames_count",
    "frame_latency_p50_s",
    "frame_latency_p95_s",
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
LOST_KEYS = ("frames_lost_count", "frames_skipped_count", "frames_undecodable_count")


def join(result: ChainResult, *, ecn_capable: bool) -> Record:
    """One row for a chain.

    `ce_ratio` is the receiver's; a chain that sends not-ECT has no marks, so 0.
    `frames_lost_count` is everything encoded but never shown, as the receiver
    counted it, plus the frames after the last one it saw anything of.
    """
    row: Record = {key: result.sender[key] for key in SENDER_KEYS}
    row.update((key, result.receiver[key]) for key in RECEIVER_KEYS)
    row.update((key, result.bottleneck[key]) for key in LINK_KEYS)
    row["ce_ratio"] = result.receiver["ce_ratio"] if ecn_capable else 0.0
    seen = sum(result.receiver[key] for key in LOST_KEYS)
    unseen = max(0, row["frames_encoded_count"] - result.receiver["frames_seen_count"])
    row["frames_lost_count"] = seen + unseen
    row["exit_codes"] = result.exit_codes
    row["warnings"] = warnings(row, result)
    return row


def warnings(row: Record, result: ChainResult) -> list[str]:
    """What makes the numbers of this run doubtful (specification of metrics, section 8)."""
    found = []
    if not row["rendered_frames_count"]:
        found.append("no frame was shown")
    if row["freeze_tail_s"]:
        found.append(f"the picture stood still for the last {row['freeze_tail_s']:.1f} s")
    accounted = row["frames_decoded_count"] + row["frames_lost_count"]
    if accounted != row["frames_encoded_count"]:
        found.append(f"{row['frames_encoded_count']} frames encoded, {accounted} accounted for")
    found.extend(
        f"{role} ended with exit code {code}" for role, code in result.exit_codes.items() if code
    )
    if result.receiver["kernel_drops_count"] or result.bottleneck["kernel_drops_count"]:
        found.append("the kernel dropped datagrams: this machine is overloaded")
    return found
