"""Whatever is simulated: packets and frames are accounted for, and runs can be repeated."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from streamd.sim.scenario import Scenario
from streamd.sim.world import simulate

capacities = st.sampled_from(["300kbps", "2Mbps", "12Mbps", "unlimited", "lte"])
queues = st.sampled_from(["dualpi2", "droptail"])


@st.composite
def paths(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "capacity": draw(capacities),
        "queue": draw(queues),
        "delay": draw(st.sampled_from(["0s", "1ms", "40ms"])),
        "loss": draw(st.sampled_from([0.0, 0.05, 1.0])),
    }


@st.composite
def flows(draw: st.DrawFn, number: int) -> dict[str, Any]:
    controllers: list[dict[str, Any]] = [
        {"rate": "1Mbps"},
        {},
        {"controller_options": {"profile": "2026-03-04"}},
    ]
    controller = draw(st.sampled_from(controllers))
    return {
        **{"name": f"f{number}", "up": "up", "down": "down", **controller},
        "ecn": draw(st.sampled_from(["notect", "ect1"])),
        "fps": draw(st.sampled_from([5, 30, 60])),
        "start": draw(st.sampled_from(["0s", "500ms"])),
        "encode_time": draw(st.sampled_from(["0s", "4ms", "50ms"])),
        "size_variation": draw(st.sampled_from([0.0, 0.5])),
    }


@given(st.data(), st.integers(1, 3), st.integers(0, 1000))
@settings(max_examples=25, deadline=None)
def test_everything_is_accounted_for_and_can_be_repeated(
    data: st.DataObject, count: int, seed: int
) -> None:
    scenario = Scenario.model_validate(
        {
            "name": "any",
            "duration": "2s",
            "paths": {"up": data.draw(paths()), "down": data.draw(paths())},
            "flows": [data.draw(flows(number)) for number in range(count)],
        }
    )
    result = simulate(scenario, seed=seed)
    for row in result.summary["flows"].values():
        assert row["frames_encoded_count"] == row["frames_decoded_count"] + row["frames_lost_count"]
        assert row["frames_decoded_count"] >= 0
    delivered = result.tables()["packets"]["fate"].count("delivered")
    offered = sum(end.offered for node in result.paths.values() for end in node.ends)
    dropped = sum(node.path.dropped_packets for node in result.paths.values())
    held = sum(node.path.held_packets for node in result.paths.values())
    assert delivered + dropped + held == offered
    assert simulate(scenario, seed=seed).summary == result.summary
