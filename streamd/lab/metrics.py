"""How figures are shown: by key, a name, a factor, digits and a unit.

Keys and what they mean are those of docs/results.md. The two queue delays are different
things and never stand in one row: `queue_delay_*` is true sojourn at the bottleneck,
`queue_delay_tool_*` what the BW tool prints (an exponential average, sampled every 2 s).
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

MISSING = "n/a"


class Shown(NamedTuple):
    """How a metric is shown."""

    label: str
    factor: float
    digits: int
    unit: str


METRICS: dict[str, Shown] = {
    "tx_bps": Shown("Tx rate", 1e-6, 2, "Mbps"),
    "rx_bps": Shown("Rx rate", 1e-6, 2, "Mbps"),
    "queue_delay_p50_s": Shown("True sojourn, median", 1e3, 1, "ms"),
    "queue_delay_p95_s": Shown("True sojourn, P95", 1e3, 1, "ms"),
    "queue_delay_p99_s": Shown("True sojourn, P99", 1e3, 1, "ms"),
    "queue_delay_tool_p50_s": Shown("Queue delay as the BW tool averages it, median", 1e3, 1, "ms"),
    "queue_delay_tool_p95_s": Shown("Queue delay as the BW tool averages it, P95", 1e3, 1, "ms"),
    "queue_delay_est_p50_s": Shown("Queue delay the sender saw, median", 1e3, 1, "ms"),
    "queue_delay_est_p95_s": Shown("Queue delay the sender saw, P95", 1e3, 1, "ms"),
    "rtt_p50_s": Shown("Round trip, median", 1e3, 1, "ms"),
    "rtt_p95_s": Shown("Round trip, P95", 1e3, 1, "ms"),
    "loss_ratio": Shown("Network loss", 100, 3, "%"),
    "residual_loss_ratio": Shown("Loss left after repair", 100, 3, "%"),
    "sender_loss_ratio": Shown("Loss the sender saw", 100, 3, "%"),
    "link_loss_ratio": Shown("Dropped at the bottleneck", 100, 3, "%"),
    "ce_ratio": Shown("CE marked", 100, 2, "%"),
    "frames_encoded_count": Shown("Frames encoded", 1, 0, ""),
    "frames_decoded_count": Shown("Frames decoded", 1, 0, ""),
    "frames_lost_count": Shown("Frames lost", 1, 0, ""),
    "frames_discarded_count": Shown("Frames thrown away at the sender", 1, 0, ""),
    "repair_frames_count": Shown("Repair frames", 1, 0, ""),
    "keyframes_count": Shown("Key frames", 1, 0, ""),
    "inter_frame_p50_s": Shown("Inter-frame delay, median", 1e3, 1, "ms"),
    "inter_frame_p95_s": Shown("Inter-frame delay, P95", 1e3, 1, "ms"),
    "freeze_count": Shown("Freezes", 1, 1, ""),
    "freeze_s": Shown("Time frozen", 1, 2, "s"),
    "frame_latency_p50_s": Shown("Capture to decoded, median", 1e3, 1, "ms"),
    "frame_latency_p95_s": Shown("Capture to decoded, P95", 1e3, 1, "ms"),
    "clock_error_bound_s": Shown("Error bound of latencies", 1e3, 1, "ms"),
    "psnr_mean_db": Shown("PSNR", 1, 1, "dB"),
    "psnr_of_mean_db": Shown("PSNR of the mean error", 1, 1, "dB"),
    "ssim_mean": Shown("SSIM", 1, 4, ""),
    "utilisation_ratio": Shown("Link used", 100, 1, "%"),
    "min_bps": Shown("Min", 1e-6, 2, "Mbps"),
    "max_bps": Shown("Max", 1e-6, 2, "Mbps"),
    "mean_bps": Shown("Avg.", 1e-6, 3, "Mbps"),
    "sd_bps": Shown("SD", 1e-6, 3, "Mbps"),
    "ti_min": Shown("TI min", 1, 2, ""),
    "ti_max": Shown("TI max", 1, 2, ""),
    "ti_mean": Shown("TI avg.", 1, 2, ""),
    "ti_sd": Shown("TI SD", 1, 2, ""),
}

_BY_UNIT = {"bps": (1e-6, 2, "Mbps"), "s": (1e3, 1, "ms"), "ratio": (100, 2, "%")}


def shown(metric: str) -> Shown:
    """How to show a metric; one not listed goes by the unit its key ends in."""
    known = METRICS.get(metric)
    if known is not None:
        return known
    factor, digits, unit = _BY_UNIT.get(metric.rpartition("_")[2], (1, 2, ""))
    return Shown(metric, factor, digits, unit)


def number(metric: str, value: float | None, *, unit: bool = False, sign: bool = False) -> str:
    """A value for people; `n/a` where there is none."""
    if value is None:
        return MISSING
    how = shown(metric)
    # Adding 0 after rounding makes a plain zero of a negative one.
    shortened = round(value * how.factor, how.digits) + 0.0
    text = f"{shortened:{'+' if sign else ''}.{how.digits}f}"
    return f"{text} {how.unit}".rstrip() if unit else text


def heading(metric: str) -> str:
    """Name and unit."""
    how = shown(metric)
    return f"{how.label} ({how.unit})" if how.unit else how.label


def value_of(flow: Mapping[str, Any], metric: str) -> float | None:
    """A metric of a run's summary; None where it does not exist or is no number."""
    value = flow.get(metric)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value)
