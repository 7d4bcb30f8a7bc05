"""Two drivers, one outcome: a scenario as real processes on loopback, and in the simulator.

Figures of live runs scatter with whatever else the machine does. So three chains run side by
side, and only those count that kept time: a run in which more than one packet in a hundred left
the bottleneck over `MAX_LATENESS` after its time, by the bottleneck's own record, or in which the
kernel dropped datagrams, says how overloaded the machine was and nothing about the simulator.
Medians of the runs that count are compared; the comparison is skipped where none does.
"""

import asyncio
import os
from collections.abc import Sequence
from statistics import median
from typing import Any

import pytest

from streamd.sim.live import LiveResult, run_async
from streamd.sim.scenario import Scenario
from streamd.sim.world import simulate

RUNS = 3
SEEDS = 5
"""Simulated runs per live run: they cost little, and their median is the steadier."""
MAX_LATENESS = 0.0003
"""Seconds, p99; an idle machine stays below 0.2 ms."""

CONSTANT: dict[str, Any] = {
    "capacity": "12Mbps",
    "queue": "dualpi2",
    "queue_options": {"packets": 100},
    "delay": "10ms",
}
FAST: dict[str, Any] = {"fps": 50, "min_rate": "1Mbps", "max_rate": "20Mbps"}
CASES: dict[str, tuple[float, dict[str, Any], dict[str, Any]]] = {
    "constant-l4s": (10.0, CONSTANT, {"ecn": "ect1", **FAST}),
    "constant-classic": (10.0, CONSTANT, {"ecn": "notect", **FAST}),
    "lte-l4s": (30.0, {**CONSTANT, "capacity": "lte"}, {"ecn": "ect1", "fps": 30}),
}
"""Seconds, uplink, flow."""


def scenario(name: str, *, lead: float = 0.0) -> Scenario:
    """A case; with `lead` the link runs so long (s) before the source starts, as in a live run."""
    seconds, path, flow = CASES[name]
    return Scenario.model_validate(
        {
            "name": name,
            "duration": seconds + lead,
            "paths": {"up": path, "down": {"delay": "10ms"}},
            "flows": [{"name": "video", "up": "up", "down": "down", "start": lead, **flow}],
        }
    )


async def live_runs(name: str) -> list[LiveResult]:
    return list(
        await asyncio.gather(*(run_async(scenario(name), seed=seed + 1) for seed in range(RUNS)))
    )


def on_time(results: Sequence[LiveResult]) -> list[LiveResult]:
    """The runs that count; skips the test where there are none."""
    good = [result for result in results if not overload(result)]
    if not good:
        pytest.skip(f"overloaded: {'; '.join(map(overload, results))}")
    return good


def overload(result: LiveResult) -> str:
    """Why a run does not count; empty for one that does."""
    link, end = result.chain.bottleneck, result.chain.receiver
    late = link["lateness_p99_s"]
    if late > MAX_LATENESS:
        return f"the bottleneck was {1000 * late:.2f} ms late (p99)"
    dropped = link["kernel_drops_count"] + end["kernel_drops_count"]
    return f"the kernel dropped {dropped} datagrams" if dropped else ""


def middle(rows: Sequence[dict[str, Any]], key: str) -> float:
    value: float = median(row[key] for row in rows)
    return value


@pytest.mark.skipif(
    not os.environ.get("STREAMD_PARITY"),
    reason="live timing decides it, and lte-l4s is not within 5 % every time: set STREAMD_PARITY=1",
)
@pytest.mark.parametrize("name", CASES)
def test_live_and_simulated_agree(name: str) -> None:
    results = on_time(asyncio.run(live_runs(name)))
    live = [result.summary["flows"]["video"] for result in results]
    simulated = [
        simulate(scenario(name, lead=result.lead), seed=seed).summary["flows"]["video"]
        for result in results
        for seed in range(SEEDS)
    ]
    for key in ("tx_bps", "rx_bps"):
        assert middle(simulated, key) == pytest.approx(middle(live, key), rel=0.05), key
    wanted = middle(live, "queue_delay_p95_s")
    tolerance = max(0.002, 0.15 * wanted)
    assert middle(simulated, "queue_delay_p95_s") == pytest.approx(wanted, abs=tolerance)
    for key in ("frames_encoded_count", "frames_decoded_count"):
        assert middle(simulated, key) == pytest.approx(middle(live, key), rel=0.02), key
