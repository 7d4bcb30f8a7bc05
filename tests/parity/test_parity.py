"""Two drivers, one outcome: a scenario as real processes on loopback, and in the simulator.

Figures of live runs scatter with the machine's other work, so three chains run side by
side and their medians count. A machine that was overloaded says nothing about the simulator:
a comparison is skipped when, in the median run, one packet in a hundred left the bottleneck
more than `MAX_LATENESS` after its time by the bottleneck's own record, or when the kernel
dropped datagrams in any of them.
"""

import asyncio
from collections.abc import Sequence
from statistics import median
from typing import Any

import pytest

from streamd.sim.live import LiveResult, run_async
from streamd.sim.scenario import Scenario
from streamd.sim.world import simulate

RUNS = 3
SECONDS = 20.0
MAX_LATENESS = 0.0005
"""A quarter of the tolerance on queue delay (s)."""

CONSTANT: dict[str, Any] = {
    "capacity": "12Mbps",
    "queue": "dualpi2",
    "queue_options": {"packets": 100},
    "delay": "10ms",
}
CASES: dict[str, tuple[dict[str, Any], str]] = {
    "constant-l4s": (CONSTANT, "ect1"),
    "constant-classic": (CONSTANT, "notect"),
    "lte-l4s": ({**CONSTANT, "capacity": "lte"}, "ect1"),
}


def scenario(name: str, *, lead: float = 0.0) -> Scenario:
    """A case; with `lead` the link runs so long (s) before the source starts, as in a live run."""
    path, ecn = CASES[name]
    return Scenario.model_validate(
        {
            "name": name,
            "duration": SECONDS + lead,
            "paths": {"up": path, "down": {"delay": "10ms"}},
            "flows": [
                {
                    **{"name": "video", "up": "up", "down": "down", "ecn": ecn, "fps": 50},
                    **{"min_rate": "1Mbps", "max_rate": "20Mbps", "start": lead},
                }
            ],
        }
    )


async def live_runs(name: str) -> list[LiveResult]:
    return list(
        await asyncio.gather(*(run_async(scenario(name), seed=seed + 1) for seed in range(RUNS)))
    )


def middle(rows: Sequence[dict[str, Any]], key: str) -> float:
    value: float = median(row[key] for row in rows)
    return value


def skip_if_overloaded(results: Sequence[LiveResult]) -> None:
    links = [result.chain.bottleneck for result in results]
    late = middle(links, "lateness_p99_s")
    if late > MAX_LATENESS:
        pytest.skip(f"overloaded: the bottleneck was {1000 * late:.2f} ms late (p99 of the median)")
    ends = [result.chain.receiver for result in results]
    dropped = sum(row["kernel_drops_count"] for row in (*links, *ends))
    if dropped:
        pytest.skip(f"overloaded: the kernel dropped {dropped} datagrams")


@pytest.mark.parametrize("name", CASES)
def test_live_and_simulated_agree(name: str) -> None:
    results = asyncio.run(live_runs(name))
    skip_if_overloaded(results)
    live = [result.summary["flows"]["video"] for result in results]
    simulated = [
        simulate(scenario(name, lead=result.lead), seed=seed + 1).summary["flows"]["video"]
        for seed, result in enumerate(results)
    ]
    for key in ("tx_bps", "rx_bps"):
        assert middle(simulated, key) == pytest.approx(middle(live, key), rel=0.05), key
    wanted = middle(live, "queue_delay_p95_s")
    tolerance = max(0.002, 0.15 * wanted)
    assert middle(simulated, "queue_delay_p95_s") == pytest.approx(wanted, abs=tolerance)
    for key in ("frames_encoded_count", "frames_decoded_count"):
        assert middle(simulated, key) == pytest.approx(middle(live, key), rel=0.02), key
