"""One run, in whatever process it lands: a simulation, or one of the two probes."""

import platform
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pydantic import ValidationError

from streamd.clock import MonotonicClock
from streamd.config.capacity import load_capacity
from streamd.config.lines import Parts
from streamd.config.units import Capacity
from streamd.errors import ConfigError
from streamd.lab.experiment import Kind
from streamd.lab.grid import Job
from streamd.lab.places import Unfit
from streamd.sim import live
from streamd.sim.scenario import Scenario, named_key, scenario_problems, source_problem
from streamd.sim.world import simulate

Tables = dict[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Output:
    """What a run gives."""

    summary: dict[str, Any]
    """A function of configuration, seed and code."""
    tables: Tables
    """Columns of equal length by table."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended: an output, or why there is none."""

    job: Job
    output: Output | None
    error: str
    seconds: float
    """How long it took."""
    host: str


Execute = Callable[[Job], Output]


def attempt(execute: Execute, job: Job) -> Outcome:
    """Run a job; whatever it raises becomes the outcome's error."""
    clock = MonotonicClock()
    start = clock.now()
    output, error = None, ""
    try:
        output = execute(job)
    # The top frame of a run: a fault in one must not end the others.
    except Exception:
        error = traceback.format_exc()
    return Outcome(job, output, error, clock.now() - start, platform.node())


def execute(job: Job) -> Output:
    """Run a job. ConfigError and StartupError as its parts raise them."""
    if job.kind == "scenario":
        return _live(job) if job.live else _simulate(job)
    from streamd.lab import probes

    probe = probes.trace_statistics if job.kind == "trace" else probes.clip_motion
    return Output(*probe(**job.config))


def check(kind: Kind, config: dict[str, Any]) -> None:
    """ConfigError for a configuration that no run could be made of; Unfit where a key is it."""
    if kind == "scenario":
        problems = list(_problems(config))
        if problems:
            raise Unfit(problems)
        return
    from streamd.lab import probes

    known = probes.KEYS[kind]
    unknown = [key for key in config if key not in known]
    missing = [key for key in known if key not in config]
    if unknown or missing:
        raise ConfigError(f"[probe] has the keys {', '.join(known)}, not {', '.join(config)}")


def _problems(config: dict[str, Any]) -> Iterator[tuple[Parts, str]]:
    """The keys at fault, flows by their name, and a sentence each."""
    try:
        scenario = Scenario.model_validate(config)
    except ValidationError as error:
        for key, problem in scenario_problems(error, config):
            yield named_key(key, config), problem
        return
    for name, path in scenario.paths.items():
        try:
            _read(path.capacity)
        except ConfigError as error:
            yield ("paths", name, "capacity"), f"paths.{name}.capacity: {error}"
    for flow in scenario.flows:
        unusable = source_problem(flow.source)
        if unusable:
            yield ("flows", flow.name, "source"), f"flows.{flow.name}.source: {unusable}"


@lru_cache
def _read(capacity: Capacity) -> None:
    """A trace that is missing or malformed is found before anything runs; once is enough."""
    load_capacity(capacity)


def check_live(kind: Kind, config: dict[str, Any]) -> None:
    """ConfigError for a configuration that cannot be run as real processes."""
    check(kind, config)
    if kind != "scenario":
        raise ConfigError(f"an experiment of kind {kind} has nothing to run live")
    live.chain_plan(Scenario.model_validate(config), seed=1)


def _simulate(job: Job) -> Output:
    result = simulate(Scenario.model_validate(job.config), seed=job.seed)
    return Output(result.summary, result.tables())


def _live(job: Job) -> Output:
    result = live.run(job.config, seed=job.seed)
    return Output(result.summary, result.tables())
