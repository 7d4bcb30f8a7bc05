"""Long runs: sequence numbers, media time and report time go round; nobody notices.

The full 25 hours are `python -m streamd.bench.sim`; here clocks start a little before each wrap.
"""

from typing import Any

import pytest

from streamd.sim.scenario import Scenario
from streamd.sim.world import simulate

SHORT_NTP_WRAP = 65536.0
"""Report timestamps of RFC 8888 go round after 18 h 12 min 16 s."""


def row(*, clock: float = 0.0, **flow: Any) -> dict[str, Any]:
    """A minute of about ten packets a second; the flow's results."""
    data = {
        "name": "wrap",
        "duration": "60s",
        "clock": clock,
        "paths": {"up": {"capacity": "1Mbps", "delay": "10ms"}, "down": {"delay": "10ms"}},
        "flows": [
            {
                **{"name": "v", "up": "up", "down": "down", "ecn": "ect1", "fps": 5},
                **{"min_rate": "80kbps", "start_rate": "80kbps", "max_rate": "96kbps", **flow},
            }
        ],
    }
    result: dict[str, Any] = simulate(Scenario.model_validate(data), seed=1).summary["flows"]["v"]
    return result


@pytest.mark.parametrize(
    "start",
    [
        {"first_seq": 65_300},
        {"first_timestamp": (1 << 32) - 30 * 90_000},
        {"clock": SHORT_NTP_WRAP - 30.0},
        {"clock": 2 * SHORT_NTP_WRAP - 30.0},
    ],
    ids=["sequence", "media time", "report time", "report time again"],
)
def test_nothing_happens_when_numbers_go_round(start: dict[str, Any]) -> None:
    result = row(**start)
    assert result["frames_encoded_count"] == 300
    assert result["frames_decoded_count"] == 300
    assert result["packets_count"] >= 590
    assert result["loss_ratio"] == 0.0
    assert result["retransmitted_packets_count"] == 0
    assert result["keyframes_count"] == 1
    assert result["circuit_breaker_count"] == 0
    assert result["freeze_count"] == 0
    assert result["frame_latency_p95_s"] < 0.2
    assert 0.02 <= result["rtt_p95_s"] < 0.06
