"""Receivers whose clocks are off: latency is right within the bound they report."""

from typing import Any

import pytest

from streamd.sim.scenario import Scenario
from streamd.sim.world import simulate

KEYS = ("frame_latency_p50_s", "frame_latency_p95_s", "frame_latency_p99_s")


def flow(delays: dict[str, Any] | None = None, **settings: Any) -> tuple[dict[str, Any], str]:
    """Result keys and digest of 8 s over 12 Mbit/s, 10 ms each way unless told otherwise."""
    delay = {"up": "10ms", "down": "10ms", **(delays or {})}
    scenario = Scenario.model_validate(
        {
            "name": "clocks",
            "duration": "8s",
            "warmup": "1s",
            "paths": {
                "up": {"capacity": "12Mbps", "delay": delay["up"]},
                "down": {"delay": delay["down"]},
            },
            "flows": [
                {
                    **{"name": "video", "up": "up", "down": "down", "fps": 50, "ecn": "ect1"},
                    **settings,
                }
            ],
        }
    )
    result = simulate(scenario, seed=1)
    return result.summary["flows"]["video"], result.summary["events_sha256"]


def test_one_machine_needs_no_comparison() -> None:
    row, _ = flow()
    assert row["clock_error_bound_s"] == pytest.approx(0.00016)
    assert row["frames_negative_latency_count"] == 0
    assert row["warnings"] == []


@pytest.mark.parametrize("offset", [3600.0, -86_400.0, 0.005])
def test_latency_is_that_of_one_machine_within_the_bound(offset: float) -> None:
    true, digest = flow()
    row, same = flow(receiver_clock_offset=offset)
    # Nothing on the network depends on what clocks show.
    assert same == digest
    bound = row["clock_error_bound_s"]
    # 10 ms each way, and a queue now and then
    assert 0.01 <= bound < 0.013
    for key in KEYS:
        assert row[key] == pytest.approx(true[key], abs=bound)
    assert row["frames_negative_latency_count"] == 0
    assert row["frames_decoded_count"] == true["frames_decoded_count"]
    (warning,) = row["warnings"]
    assert warning.startswith("frame latencies may be wrong by 1")


def test_equal_delays_leave_almost_no_error() -> None:
    true, _ = flow()
    row, _ = flow(receiver_clock_offset=-2.0)
    assert row["frame_latency_p50_s"] == pytest.approx(true["frame_latency_p50_s"], abs=0.002)


@pytest.mark.parametrize(
    ("up", "down", "expected"), [("40ms", "5ms", -0.0175), ("5ms", "40ms", 0.0175)]
)
def test_unequal_delays_err_by_half_their_difference_which_the_bound_tells(
    up: str, down: str, expected: float
) -> None:
    delays: dict[str, Any] = {"up": up, "down": down}
    true, _ = flow(delays)
    row, _ = flow(delays, receiver_clock_offset=60.0)
    error = row["frame_latency_p50_s"] - true["frame_latency_p50_s"]
    assert error == pytest.approx(expected, abs=0.001)
    assert abs(error) <= row["clock_error_bound_s"]
    assert row["frames_negative_latency_count"] == 0


def test_a_short_path_gives_a_small_bound_and_no_warning() -> None:
    row, _ = flow({"up": "0.5ms", "down": "0.5ms"}, receiver_clock_offset=7.0)
    assert row["clock_error_bound_s"] < 0.002
    assert row["warnings"] == []
