"""Operating points on a constant 12 Mbps link, live, and what the pacing quantum does to them.

Synthetic 50 fps, 20 ms round trip, SCReAM; three set-ups side by side: L4S and
Classic over DualPI2 (step 1 ms, target 15 ms), Classic over a drop-tail queue
of 100 packets. Measured from second 10 on: media bits that left the link per
second, 95th percentile of true sojourn. `python -m streamd.bench.link`.
"""

import argparse
import asyncio
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from streamd.bench.table import machine, print_table
from streamd.stack.chain import Chain, ChainPlan
from streamd.stack.process import Record

WARMUP = 10.0
RATE = "12Mbps"
DUALPI2 = ("--queue", "dualpi2", "--queue-arg", "packets=100")
DROPTAIL = ("--queue", "droptail", "--queue-arg", "packets=100")
SETUPS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "L4S, DualPI2": ("ect1", DUALPI2),
    "Classic, DualPI2": ("notect", DUALPI2),
    "Classic, drop-tail": ("notect", DROPTAIL),
}


def plan(name: str, ecn: str, queue: tuple[str, ...], quantum: str, seed: int) -> ChainPlan:
    """One chain of the bench."""
    seeded = ("--seed", str(seed))
    return ChainPlan(
        name,
        sender=(
            *("--source", "synthetic", "--fps", "50", "--ecn", ecn, "--max-rate", "20Mbps"),
            *("--min-rate", "1Mbps", "--pacing-quantum", quantum, *seeded),
        ),
        bottleneck=(
            *("--uplink", RATE, "--delay", "10ms", "--warmup", f"{WARMUP}s", *queue, *seeded),
        ),
        receiver=seeded,
    )


async def run_chains(plans: Sequence[ChainPlan], seconds: float) -> list[Record]:
    """Run chains side by side; their bottlenecks' summaries."""
    with tempfile.TemporaryDirectory(prefix="streamd-bench-") as folder:
        chains = []
        for number, each in enumerate(plans):
            place = Path(folder) / str(number)
            place.mkdir()
            chains.append(Chain(each, place))
        try:
            for chain in chains:
                await chain.start()
            await asyncio.sleep(seconds)
            results = await asyncio.gather(*(chain.finish() for chain in chains))
        finally:
            for chain in chains:
                await chain.kill()
    return [result.bottleneck for result in results]


def spread(values: Sequence[float], factor: float, digits: int) -> str:
    """Median and range."""
    ordered = [value * factor for value in sorted(values)]
    return f"{median(ordered):.{digits}f} ({ordered[0]:.{digits}f}-{ordered[-1]:.{digits}f})"


async def operating_points(runs: int, seconds: float, quantum: str) -> list[list[str]]:
    """A row per set-up."""
    results: dict[str, list[Record]] = {name: [] for name in SETUPS}
    for seed in range(1, runs + 1):
        plans = [plan(name, *setup, quantum, seed) for name, setup in SETUPS.items()]
        for name, record in zip(SETUPS, await run_chains(plans, seconds), strict=True):
            results[name].append(record)
    return [
        [
            name,
            quantum,
            spread([r["delivered_bps"] for r in records], 1e-6, 2),
            spread([r["queue_delay_p95_s"] for r in records], 1e3, 2),
            spread([r["link_loss_ratio"] for r in records], 100, 2),
            spread([r["lateness_p99_s"] for r in records], 1e3, 3),
        ]
        for name, records in results.items()
    ]


async def main(runs: int, seconds: float, quanta: Sequence[str]) -> None:
    """Print the table."""
    print(machine())
    rows = []
    for quantum in quanta:
        rows.extend(await operating_points(runs, seconds, quantum))
    print_table(
        f"Constant {RATE}, 20 ms round trip, from second {WARMUP:g} on: median (range) of {runs}",
        ("set-up", "quantum", "Mbps", "sojourn p95 ms", "loss %", "link lateness p99 ms"),
        rows,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--quanta", default="0.5ms", help="comma-separated pacing quanta")
    options = parser.parse_args()
    asyncio.run(main(options.runs, options.seconds, options.quanta.split(",")))
