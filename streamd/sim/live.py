"""The same scenario as real processes: one flow through a sender, a bottleneck and a receiver.

What a chain of daemons cannot do is refused: several flows, a late start, clocks
that begin elsewhere, different delays of the two directions. Encoding and waking up
take what they take, whatever `encode_time` and `wake_time` say. Of the warm-up only
the bottleneck's figures know.
"""

import asyncio
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from streamd.config.model import SenderConfig
from streamd.ecn import NOT_ECT
from streamd.errors import ConfigError, StreamdError
from streamd.results.joined import LINK_KEYS
from streamd.results.streams import Summary
from streamd.sim.live_packets import read_packets
from streamd.sim.live_series import LiveSeries
from streamd.sim.model import FlowSpec, PathSpec, Scenario
from streamd.sim.tables import BIN
from streamd.stack.chain import Chain, ChainPlan, ChainResult

PATIENCE = 30.0
"""How long after its time a sender may still take to end (s): it drains, it may start slowly."""
NOT_OF_A_FLOW = frozenset({"role", "peer", "listen", "profile", "feedback_count", "cc"})
"""Settings of a sender that a scenario leaves alone."""


@dataclass(slots=True)
class LiveResult:
    """What a live run gave; not a function of scenario and seed alone."""

    summary: Summary
    """Keys as of a simulated run, without the digest."""
    chain: ChainResult = field(repr=False)
    """What each daemon wrote."""
    lead: float
    """How long the link had been running when the first packet came (s)."""
    series: LiveSeries = field(repr=False)
    packets: dict[str, Any] | None = field(default=None, repr=False)

    def tables(self) -> dict[str, dict[str, Any]]:
        """`series` from the daemons' periodic lines, and `packets` where they were recorded."""
        recorded = {} if self.packets is None else {"packets": self.packets}
        return {"series": self.series.columns(), **recorded}


def run(scenario: Scenario | Mapping[str, Any], *, seed: int) -> LiveResult:
    """Run a scenario with real processes and record its packets; takes as long as it says.

    ConfigError for one that no chain can run; whatever a daemon fails with.
    """
    if not isinstance(scenario, Scenario):
        scenario = Scenario.model_validate(scenario)
    return asyncio.run(run_async(scenario, seed=seed, record=True))


async def run_async(scenario: Scenario, *, seed: int, record: bool = False) -> LiveResult:
    """As `run`, in the caller's event loop; packets only where `record` asks for them."""
    plan = chain_plan(scenario, seed=seed)
    series = LiveSeries()
    packets = None
    with tempfile.TemporaryDirectory(prefix="streamd-live-") as folder:
        recorded = Path(folder) / "packets.csv"
        if record:
            plan = replace(plan, bottleneck=(*plan.bottleneck, "--record", str(recorded)))
        chain = Chain(plan, Path(folder))
        try:
            await chain.start(series.watch)
            await _ended(chain, scenario.duration + PATIENCE)
            result = await chain.finish()
        finally:
            await chain.kill()
        if record:
            uplink = list(scenario.paths).index(scenario.flows[0].up)
            packets = read_packets(recorded, path=uplink)
    flow = scenario.flows[0]
    row = result.joined(ecn_capable=flow.ecn_codepoint() != NOT_ECT)
    row["delivered_bps"] = result.bottleneck["delivered_bps"]
    summary: Summary = {
        "scenario": scenario.name,
        "seed": seed,
        "flows": {flow.name: row},
        "paths": _paths(scenario, flow, result.bottleneck),
    }
    return LiveResult(summary, result, result.bottleneck["first_arrival_s"] or 0.0, series, packets)


def _paths(scenario: Scenario, flow: FlowSpec, link: Mapping[str, Any]) -> Summary:
    """Both directions in the scenario's order; media, whose delay is recorded, go up."""
    keys = dict.fromkeys((*LINK_KEYS, *link["return_path"]))
    rows = {
        flow.down: {**keys, **link["return_path"]},
        flow.up: {key: link[key] for key in keys},
    }
    return {
        name: {"capacity": str(spec.capacity), **rows[name]}
        for name, spec in scenario.paths.items()
        if name in rows
    }


async def _ended(chain: Chain, within: float) -> None:
    try:
        await chain.processes["sender"].wait(within)
    except TimeoutError:
        raise StreamdError(f"{chain.plan.name}: the sender did not end in {within:g} s") from None


def chain_plan(scenario: Scenario, *, seed: int) -> ChainPlan:
    """The command lines of the three daemons. ConfigError names what a chain cannot do."""
    if len(scenario.flows) != 1:
        raise _cannot(scenario, f"{len(scenario.flows)} flows")
    flow = scenario.flows[0]
    for key, value, usual in (
        ("start", flow.start, 0.0),
        ("clock", scenario.clock, 0.0),
        ("first_seq", flow.first_seq, None),
        ("first_timestamp", flow.first_timestamp, None),
    ):
        if value != usual:
            raise _cannot(scenario, key)
    seconds = scenario.duration if flow.stop is None else min(scenario.duration, flow.stop)
    seeded = ("--seed", str(seed))
    often = ("--report-interval", f"{BIN!r}s")
    return ChainPlan(
        scenario.name,
        sender=(*_sender(scenario, flow), "--duration", f"{seconds!r}s", *often, *seeded),
        bottleneck=(
            *_bottleneck(scenario, flow),
            "--warmup",
            f"{scenario.warmup!r}s",
            *often,
            *seeded,
        ),
        receiver=("--freeze-rule", flow.freeze_rule, *often, *seeded),
    )


def _cannot(scenario: Scenario, what: str) -> ConfigError:
    return ConfigError(f"scenario {scenario.name!r} cannot be run live: {what}")


def _sender(scenario: Scenario, flow: FlowSpec) -> list[str]:
    written = flow.sender_config().model_dump(mode="json")
    arguments: list[str] = []
    for key in SenderConfig.model_fields:
        if key in FlowSpec.model_fields and key not in NOT_OF_A_FLOW:
            arguments += _flag(key, written[key])
    options = _options(scenario, "controller_options", flow.controller_options)
    for name, text in options.items():
        arguments += [f"--cc.{flow.controller}.{name}", text]
    return arguments


def _flag(key: str, value: object) -> list[str]:
    flag = key.replace("_", "-")
    if value is None:
        return []
    if isinstance(value, bool):
        return [f"--{flag}" if value else f"--no-{flag}"]
    text = ",".join(value) or "none" if isinstance(value, list) else str(value)
    return [f"--{flag}", text]


def _options(scenario: Scenario, key: str, given: Mapping[str, Any]) -> dict[str, str]:
    """As a command line writes them: lists with commas."""
    texts: dict[str, str] = {}
    for name, value in given.items():
        items = value if isinstance(value, list | tuple) else (value,)
        if not all(isinstance(item, str | int | float) for item in items):
            raise _cannot(scenario, f"{key}.{name} is neither a plain value nor a list of them")
        texts[name] = ",".join(
            str(item).lower() if isinstance(item, bool) else str(item) for item in items
        )
    return texts


def _bottleneck(scenario: Scenario, flow: FlowSpec) -> list[str]:
    up, down = scenario.paths[flow.up], scenario.paths[flow.down]
    if up.delay != down.delay:
        raise _cannot(scenario, "the directions have different delays")
    limited = [path for path in (up, down) if str(path.capacity) != "unlimited"]
    arguments = [
        *("--uplink", str(up.capacity), "--downlink", str(down.capacity)),
        *("--delay", f"{up.delay!r}s", "--loss", repr(up.loss), "--downlink-loss", repr(down.loss)),
        *("--queue", up.queue, "--downlink-queue", down.queue),
    ]
    for key in ("opportunity", "overhead", "repeat"):
        if len({getattr(path, key) for path in limited}) > 1:
            raise _cannot(scenario, f"the directions differ in {key}")
        arguments += _flag(key, getattr(limited[0] if limited else up, key))
    queues: dict[str, PathSpec] = {}
    for path in limited:
        before = queues.setdefault(path.queue, path)
        if before.queue_options != path.queue_options:
            raise _cannot(scenario, f"the directions differ in the options of queue {path.queue}")
    for name, path in queues.items():
        for key, text in _options(scenario, "queue_options", path.queue_options).items():
            arguments += [f"--queue.{name}.{key}", text]
    return arguments
