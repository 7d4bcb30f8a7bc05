"""How the demo shows itself: side by side while it runs, a table at the end."""

from collections.abc import Mapping, Sequence

from rich.console import Console, Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table

from streamd.stack.process import Record

TITLES = {"classic": "Classic (not-ECT)", "l4s": "L4S (ECT(1))"}
MISSING = "n/a"
FIGURE_WIDTH = 9
"""Columns a value with its unit needs."""

# Label, role whose line holds it, key, factor, digits, unit.
LIVE_ROWS: Sequence[tuple[str, str, str, float, int, str]] = (
    ("link capacity", "bottleneck", "capacity_bps", 1e-6, 2, "Mbps"),
    ("target rate", "sender", "target_bps", 1e-6, 2, "Mbps"),
    ("sent", "sender", "tx_bps", 1e-6, 2, "Mbps"),
    ("received", "receiver", "rx_bps", 1e-6, 2, "Mbps"),
    ("queue delay, median", "bottleneck", "queue_delay_p50_ms", 1, 1, "ms"),
    ("queue delay, p95", "bottleneck", "queue_delay_p95_ms", 1, 1, "ms"),
    ("round trip", "sender", "rtt_ms", 1, 1, "ms"),
    ("CE marks", "receiver", "ce_ratio", 100, 1, "%"),
    ("frame latency, median", "receiver", "frame_latency_p50_ms", 1, 1, "ms"),
    ("frames per second", "receiver", "frames_per_second", 1, 1, ""),
    ("frames shown", "receiver", "frames_decoded", 1, 0, ""),
    ("PSNR", "receiver", "psnr_mean_db", 1, 1, "dB"),
    ("SSIM", "receiver", "ssim_mean", 1, 3, ""),
    ("freezes", "receiver", "freezes", 1, 0, ""),
)

FINAL_ROWS: Sequence[tuple[str, str, float, int, str]] = (
    ("sent", "tx_bps", 1e-6, 2, "Mbps"),
    ("received", "rx_bps", 1e-6, 2, "Mbps"),
    ("queue delay at the bottleneck, median", "queue_delay_p50_s", 1e3, 1, "ms"),
    ("queue delay at the bottleneck, p95", "queue_delay_p95_s", 1e3, 1, "ms"),
    ("queue delay as the sender saw it, p95", "queue_delay_est_p95_s", 1e3, 1, "ms"),
    ("round trip, p95", "rtt_p95_s", 1e3, 1, "ms"),
    ("packets lost in the network", "loss_ratio", 100, 3, "%"),
    ("loss the sender saw", "sender_loss_ratio", 100, 3, "%"),
    ("packets marked CE", "ce_ratio", 100, 2, "%"),
    ("frames encoded", "frames_encoded_count", 1, 0, ""),
    ("frames decoded", "frames_decoded_count", 1, 0, ""),
    ("frames lost", "frames_lost_count", 1, 0, ""),
    ("key frames", "keyframes_count", 1, 0, ""),
    ("between frames, median", "inter_frame_p50_s", 1e3, 1, "ms"),
    ("capture to decoded, median", "frame_latency_p50_s", 1e3, 1, "ms"),
    ("capture to decoded, p95", "frame_latency_p95_s", 1e3, 1, "ms"),
    ("PSNR against the source", "psnr_mean_db", 1, 1, "dB"),
    ("SSIM against the source", "ssim_mean", 1, 3, ""),
    ("freezes", "freeze_count", 1, 0, ""),
    ("time frozen", "freeze_s", 1, 2, "s"),
)


def number(value: float | None, factor: float, digits: int, unit: str) -> str:
    """A value for people; "n/a" where there is none."""
    if value is None:
        return MISSING
    return f"{value * factor:,.{digits}f} {unit}".rstrip()


def live(
    reports: Mapping[str, Mapping[str, Record]], elapsed: float, total: float
) -> RenderableType:
    """The chains side by side; `reports` by chain name, then role."""
    table = _table(f"streamd demo, {elapsed:.0f} of {total:.0f} s", list(reports))
    for label, role, key, factor, digits, unit in LIVE_ROWS:
        table.add_row(
            label,
            *(
                number(roles.get(role, {}).get(key), factor, digits, unit)
                for roles in reports.values()
            ),
        )
    return Group(table, ProgressBar(total=total, completed=min(elapsed, total), width=60))


def final(results: Mapping[str, Record]) -> RenderableType:
    """The table of results, and what makes them doubtful."""
    table = _table("What the viewer got", list(results))
    for label, key, factor, digits, unit in FINAL_ROWS:
        table.add_row(
            label, *(number(row.get(key), factor, digits, unit) for row in results.values())
        )
    notes = [
        f"[yellow]{TITLES.get(name, name)}: {warning}[/yellow]"
        for name, row in results.items()
        for warning in row["warnings"]
    ]
    return Group(table, *notes)


def line(reports: Mapping[str, Mapping[str, Record]], elapsed: float) -> str:
    """One line for a log, where there is no terminal to draw on."""
    parts = []
    for name, roles in reports.items():
        rx = number(roles.get("receiver", {}).get("rx_bps"), 1e-6, 2, "Mbps")
        delay = number(roles.get("bottleneck", {}).get("queue_delay_p95_ms"), 1, 1, "ms")
        frames = roles.get("receiver", {}).get("frames_decoded", 0)
        parts.append(f"{name}: {rx}, queue p95 {delay}, {frames} frames")
    return f"{elapsed:5.0f} s  " + " | ".join(parts)


def console() -> Console:
    """Where the demo draws."""
    return Console()


def _table(title: str, names: list[str]) -> Table:
    table = Table(title=title, title_justify="left")
    # On a narrow terminal the labels are broken first, never the figures.
    table.add_column("")
    for name in names:
        table.add_column(TITLES.get(name, name), justify="right", min_width=FIGURE_WIDTH)
    return table
