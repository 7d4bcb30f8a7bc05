"""A scenario as command lines of the daemons: they mean the same, or it is refused."""

import random
from collections.abc import Sequence
from typing import Any

import pytest
from sim_scenarios import data, scenario

from streamd.cli.arguments import prepare
from streamd.config.load import load
from streamd.config.model import ROLES, BottleneckConfig, DaemonConfig, SenderConfig
from streamd.errors import ConfigError
from streamd.sim.live import chain_plan
from streamd.sim.scenario import Scenario


def parsed(role: str, arguments: Sequence[str]) -> DaemonConfig:
    """The configuration a daemon makes of its command line, as `streamd ROLE` reads it."""
    plain, plugin = prepare([role, *arguments])
    flags: list[tuple[str, object, str]] = []
    words = iter(plain[1:])
    for word in words:
        key = word.removeprefix("--").replace("-", "_")
        if key.startswith("no_"):
            flags.append((key.removeprefix("no_"), False, word))
        elif ROLES[role].model_fields[key].annotation is bool:
            flags.append((key, True, word))
        else:
            flags.append((key, next(words), word))
    peer = [] if role == "receiver" else [("peer", "127.0.0.1:5000", "--peer")]
    return load(ROLES[role], flags=[*peer, *flags, *plugin]).config


def test_the_sender_is_told_what_the_simulated_one_is() -> None:
    flow: dict[str, Any] = {
        "controller_options": {
            "profile": "2026-03-04",
            "relaxed_pacing": True,
            "mss_sizes": [600, 1200],
        },
        **{"keyframe_on": [], "retransmissions": False, "start_rate": "2Mbps", "size": "640x360"},
        **{"size_variation": "10%", "pacing_quantum": "0.25ms", "mss": 1000},
    }
    simulated = scenario(**flow)
    config = parsed("sender", chain_plan(simulated, seed=7).sender)
    assert isinstance(config, SenderConfig)
    expected = simulated.flows[0].sender_config()
    changed = {"peer": config.peer, "duration": 5.0, "seed": 7, "report_interval": 0.1}
    assert config == expected.model_copy(update=changed)
    assert config.controller_choice() == simulated.flows[0].controller_choice()


def test_the_bottleneck_is_told_what_the_simulated_paths_are() -> None:
    settings = data()
    settings["paths"]["up"].update(loss="1%", overhead=4, opportunity=1504, repeat=False)
    simulated = Scenario.model_validate({**settings, "warmup": "1s"})
    config = parsed("bottleneck", chain_plan(simulated, seed=1).bottleneck)
    assert isinstance(config, BottleneckConfig)
    assert config.uplink.rate_bps == 12_000_000
    assert config.downlink.rate_bps is None
    assert (config.delay, config.loss, config.downlink_loss) == (0.01, 0.01, 0.0)
    assert (config.overhead, config.opportunity, config.repeat) == (4, 1504, False)
    assert config.warmup == 1.0
    spec, options = config.queue_choice("uplink")
    wanted, wanted_options = simulated.paths["up"].queue_choice()
    assert (spec, options) == (wanted, wanted_options)
    spec.build(options, rng=random.Random(1), now=0.0)


def test_a_flow_that_stops_early_shortens_the_run() -> None:
    plan = chain_plan(scenario(stop="3s"), seed=1)
    assert plan.sender[plan.sender.index("--duration") + 1] == "3.0s"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"start": "1s"}, "start"),
        ({"first_seq": 5}, "first_seq"),
    ],
)
def test_what_a_chain_cannot_do_is_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=f"'test' cannot be run live: .*{said}"):
        chain_plan(Scenario.model_validate(data(**change)), seed=1)


def test_paths_a_chain_cannot_have_are_refused() -> None:
    settings = data()
    settings["paths"]["down"]["delay"] = "20ms"
    with pytest.raises(ConfigError, match="directions have different delays"):
        chain_plan(Scenario.model_validate(settings), seed=1)
    settings = data()
    settings["paths"]["down"].update(capacity="1Mbps", overhead=4)
    with pytest.raises(ConfigError, match="directions differ in overhead"):
        chain_plan(Scenario.model_validate(settings), seed=1)
    settings["paths"]["down"].update(overhead=0, queue_options={"packets": 50})
    with pytest.raises(ConfigError, match="directions differ in the options of queue dualpi2"):
        chain_plan(Scenario.model_validate(settings), seed=1)


def test_several_flows_are_refused() -> None:
    settings = data()
    settings["flows"].append({**settings["flows"][0], "name": "second"})
    with pytest.raises(ConfigError, match="2 flows"):
        chain_plan(Scenario.model_validate(settings), seed=1)
