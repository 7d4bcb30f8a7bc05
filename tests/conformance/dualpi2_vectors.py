"""Reads the DualPI2 reference files and runs our queue and link over their scenarios.

Everything that describes a scenario comes from the files: packet files carry
their own arrivals, and the names of the statistics follow a small grammar
(`L13`, `C11_ect0`, `MIX_L6_C7ect0`, `BURST_L`, `SMALL_L13_1200`).
"""

import csv
import os
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path as FilePath

from streamd.link.bottleneck import TraceLink
from streamd.link.dualpi2 import DualPi2, DualPi2Config, build
from streamd.link.dualpi2_config import WEAK_GAIN
from streamd.link.queue import Packet
from streamd.link.trace import Trace

ROOT = FilePath(__file__).resolve().parents[2]
SHARED = ROOT / ".." / "shared"
REFERENCE = FilePath(os.environ.get("STREAMD_VECTORS", SHARED / "reference"))
FOLDER = REFERENCE / "dualpi2"
BESIDE = REFERENCE.parent / "traces"
TRACES = BESIDE if BESIDE.is_dir() else SHARED / "traces"

END_US = 5_000_000
ECN = {"notect": 0, "ect1": 1, "ect0": 2}
MARK_LABELS = {None: "", "step": "s", "coupled": "c", "overload": "c", "classic": "p"}
DROP_LABELS = {
    "limit_packets": "overflow",
    "limit_bytes": "overflow",
    "overload": "overload",
    "classic": "pi2",
}

Arrival = tuple[int, int, int]
"""Time (us), size, codepoint."""

COMMON = {"packets": 100, "mtu": 1500, "k": 2, "wc": 10, "target": 0.015}
STEP = {**COMMON, "tupdate": 0.016, "alpha": 0.16, "beta": 3.2, "step": 0.001}
CONFIGS = {
    "rfc": DualPi2Config(mode="rfc", ramp=0.0, l_min_len=-1, **STEP),  # type: ignore[arg-type]
    "rfcramp": DualPi2Config(mode="rfc", **COMMON),  # type: ignore[arg-type]
    "linux": DualPi2Config(mode="linux", **STEP),  # type: ignore[arg-type]
    "fork": DualPi2Config(mode="mahimahi", gain=WEAK_GAIN, **STEP),  # type: ignore[arg-type]
    "fork_rfc": DualPi2Config(mode="mahimahi", **STEP),  # type: ignore[arg-type]
}


@dataclass
class Run:
    """What came out of one scenario."""

    packets: list[Packet]
    departed_us: dict[int, int] = field(default_factory=dict)
    """By index of the packet."""
    drops: dict[int, str] = field(default_factory=dict)
    updates: list[dict[str, float]] = field(default_factory=list)


def read(path: FilePath) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def files(pattern: str) -> list[FilePath]:
    return sorted(FOLDER.glob(pattern)) if FOLDER.is_dir() else []


def scenario_of(path: FilePath) -> tuple[str, str]:
    """Mode and scenario of a file name such as rfc_L13_packets.csv."""
    mode, _, rest = path.stem.partition("_")
    return mode, rest.rpartition("_")[0]


def simulate(
    arrivals: list[Arrival],
    config: DualPi2Config,
    *,
    seed: int = 0,
    end_us: int = END_US,
    update_us: list[int] | None = None,
    trace: Trace | None = None,
) -> Run:
    """The common model: opportunity first, then arrival, then probability update."""
    run = Run([Packet(b"", size, ecn) for _, size, ecn in arrivals])
    index = {id(packet): i for i, packet in enumerate(run.packets)}
    queue = build(config, rng=random.Random(seed), now=0.0)
    link = TraceLink(queue, trace or Trace([1], name="12 Mbps"), base=0.0, repeat=trace is None)

    def departed(packet: Packet, at: float) -> None:
        run.departed_us[index[id(packet)]] = round(at * 1e6)

    def dropped(packet: Packet, cause: str, now: float) -> None:
        run.drops[index[id(packet)]] = DROP_LABELS[cause]

    link.sink = departed
    link.watch_drops(dropped)
    updates = iter(update_us or [])
    update = next(updates, end_us + 1)
    for packet, (at_us, _, _) in zip(run.packets, arrivals, strict=True):
        while update < at_us:
            run.updates.append(sample(queue, link, update))
            update = next(updates, end_us + 1)
        link.enqueue(packet, at_us / 1e6)
    while update <= end_us:
        run.updates.append(sample(queue, link, update))
        update = next(updates, end_us + 1)
    link.advance(end_us / 1e6)
    return run


def sample(queue: DualPi2, link: TraceLink, at_us: int) -> dict[str, float]:
    link.advance(at_us / 1e6)
    queue.advance(at_us / 1e6)
    return queue.gauges(at_us / 1e6)


def cbr(
    mbps: float, size: int, ecn: int, phase: int, start: int = 0, end: int = END_US
) -> Iterator[Arrival]:
    """Packet n at start + phase + floor(n * size * 8 / rate), while before the end."""
    n = 0
    while (at := start + phase + int(n * size * 8 / mbps)) < end:
        yield at, size, ecn
        n += 1


def arrivals_of(scenario: str) -> list[Arrival] | None:
    """A scenario's arrivals: from its packet file if there is one, else from its name."""
    for path in files(f"rfc*_{scenario}_packets.csv"):
        if scenario_of(path)[1] == scenario:
            return arrivals_in(read(path))
    if match := re.fullmatch(r"BURST_(L|C(?:ect0|notect))", scenario):
        return burst(source_codepoint(match[1]))
    match = re.fullmatch(
        r"(?:MIX_|SMALL_)?(?:L(\d+))?_?(?:C(\d+)_?(ect0|notect))?(?:_(\d+))?", scenario
    )
    if match is None or not (match[1] or match[2]):
        return None
    size = int(match[4] or 1500)
    end = 2_500_000 if scenario == "MIX_L13_C13notect" else END_US
    l4s = list(cbr(float(match[1]), size, 1, 137, end=end)) if match[1] else []
    phase = 411 if l4s else 137
    classic = list(cbr(float(match[2]), size, ECN[match[3]], phase, end=end)) if match[2] else []
    return sorted(l4s + classic, key=lambda arrival: arrival[0])


def source_codepoint(source: str) -> int:
    return 1 if source == "L" else ECN[source.removeprefix("C")]


def burst(ecn: int) -> list[Arrival]:
    return [
        *cbr(6, 1500, ecn, 137, 0, 2_000_000),
        *cbr(60, 1500, ecn, 137, 2_000_000, 2_100_000),
        *cbr(6, 1500, ecn, 137, 2_100_000, END_US),
    ]


def arrivals_in(rows: list[dict[str, str]]) -> list[Arrival]:
    return [(int(row["arr_us"]), int(row["size"]), int(row["ecn"])) for row in rows]


@cache
def run_statistics(
    scenario: str, mode: str, seed: int
) -> tuple[dict[str, float], list[float], list[float]]:
    """Metrics of one seeded run, and p and the longer head delay (us) at each update."""
    arrivals = arrivals_of(scenario)
    assert arrivals is not None
    update_us = list(range(16_000, END_US + 1, 16_000))
    run = simulate(arrivals, CONFIGS[mode], seed=seed, update_us=update_us)
    metrics = metrics_of(run)
    p = [update["p"] for update in run.updates]
    delay = [max(u["delay_l4s"], u["delay_classic"]) * 1e6 for u in run.updates]
    metrics |= {"p_end": p[-1], "p_mean": sum(p) / len(p), "p_max": max(p)}
    return metrics, p, delay


def metrics_of(run: Run) -> dict[str, float]:
    """The metrics of the statistics files, by their names there."""
    metrics: dict[str, float] = {"arrived": len(run.packets), "delivered": len(run.departed_us)}
    for name, odd in (("L", 1), ("C", 0)):
        mine = [i for i, packet in enumerate(run.packets) if packet.ecn_in & 1 == odd]
        delivered = [run.packets[i] for i in mine if i in run.departed_us]
        labels = [MARK_LABELS[packet.mark] for packet in delivered]
        drops = [run.drops[i] for i in mine if i in run.drops]
        metrics[f"{name}_arr"] = len(mine)
        metrics[f"{name}_deliv"] = len(delivered)
        metrics[f"{name}_marked"] = sum(label != "" for label in labels)
        for cause in ("overflow", "overload", "pi2"):
            metrics[f"{name}_drop_{cause}"] = drops.count(cause)
        for cause, label in (("step", "s"), ("coupled", "c"), ("pi2", "p")):
            metrics[f"{name}_mark_{cause}"] = labels.count(label)
        metrics |= {f"{name}_{key}": value for key, value in sojourns(delivered).items()}
    return metrics


def sojourns(delivered: list[Packet]) -> dict[str, float]:
    """Percentiles as the reference takes them: the sorted value at floor(q * count), in us."""
    ordered = sorted(round((p.dequeued_at - p.arrived_at) * 1e6) for p in delivered)
    if not ordered:
        return {}
    at = {q: ordered[int(q * len(ordered) / 100)] for q in (50, 95)}
    return {"soj_p50_us": at[50], "soj_p95_us": at[95], "soj_max_us": ordered[-1]}


@cache
def load_trace(name: str) -> Trace | None:
    path = TRACES / name
    return Trace.load(path) if path.is_file() else None


def open_loop(flow: str, mbps: float, mode: str, gain: str, seed: int) -> dict[str, float]:
    """One run of the open-loop flow over the Verizon uplink."""
    trace = load_trace("Verizon-LTE-short.up")
    assert trace is not None
    end = 140_000_000
    name, _, codepoint = flow.partition("_")
    config = CONFIGS[mode if mode == "linux" or gain == "fork" else f"{mode}_{gain}"]
    arrivals = list(cbr(mbps, 1200, ECN[codepoint], 137, end=end))
    updates = list(range(16_000, end + 1, 16_000))
    run = simulate(arrivals, config, seed=seed, end_us=end, update_us=updates, trace=trace)
    metrics = {
        key.removeprefix(f"{name}_"): value
        for key, value in metrics_of(run).items()
        if key.startswith(f"{name}_") or key in ("arrived", "delivered")
    }
    metrics["p_max"] = round(max(update["p"] for update in run.updates), 4)
    return metrics
