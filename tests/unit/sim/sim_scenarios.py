"""Scenarios that several tests use."""

from typing import Any

from streamd.sim.scenario import Scenario


def data(**flow: Any) -> dict[str, Any]:
    """A constant 12 Mbit/s, 20 ms round trip, one synthetic flow of 50 fps under L4S."""
    return {
        "name": "test",
        "duration": "5s",
        "paths": {
            "up": {
                "capacity": "12Mbps",
                "queue": "dualpi2",
                "queue_options": {"packets": 100},
                "delay": "10ms",
            },
            "down": {"delay": "10ms"},
        },
        "flows": [
            {
                **{"name": "video", "up": "up", "down": "down", "ecn": "ect1", "fps": 50},
                **{"min_rate": "1Mbps", "max_rate": "20Mbps"},
                **flow,
            }
        ],
    }


def scenario(duration: str = "5s", **flow: Any) -> Scenario:
    return Scenario.model_validate({**data(**flow), "duration": duration})
