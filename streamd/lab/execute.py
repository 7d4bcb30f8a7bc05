"""One run, in whatever process it lands: a simulation, or one of the two probes."""

import importlib
import platform
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from streamd.clock import MonotonicClock
from streamd.config.sections import problem_text
from streamd.errors import ConfigError, StartupError
from streamd.lab.experiment import Kind
from streamd.lab.grid import Job

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
    """ConfigError for a configuration that no run could be made of."""
    if kind == "scenario":
        try:
            _simulator("scenario").Scenario.model_validate(config)
        except ValidationError as error:
            raise ConfigError("; ".join(_problems(error))) from None
        return
    from streamd.lab import probes

    known = probes.KEYS[kind]
    unknown = [key for key in config if key not in known]
    missing = [key for key in known if key not in config]
    if unknown or missing:
        raise ConfigError(f"[probe] has the keys {', '.join(known)}, not {', '.join(config)}")


def check_live(kind: Kind, config: dict[str, Any]) -> None:
    """ConfigError for a configuration that cannot be run as real processes."""
    check(kind, config)
    if kind != "scenario":
        raise ConfigError(f"an experiment of kind {kind} has nothing to run live")
    scenario = _simulator("scenario").Scenario.model_validate(config)
    _simulator("live").chain_plan(scenario, seed=1)


def _simulate(job: Job) -> Output:
    scenario = _simulator("scenario").Scenario.model_validate(job.config)
    result = _simulator("world").simulate(scenario, seed=job.seed)
    return Output(result.summary, result.tables())


def _live(job: Job) -> Output:
    result = _simulator("live").run(job.config, seed=job.seed)
    return Output(result.summary, result.tables())


def _simulator(module: str) -> Any:
    try:
        return importlib.import_module(f"streamd.sim.{module}")
    except ModuleNotFoundError:
        raise StartupError("this version of streamd has no simulator") from None


def _problems(error: ValidationError) -> list[str]:
    found = []
    for item in error.errors(include_url=False):
        key = ".".join(str(part) for part in item["loc"])
        message = problem_text(ValueError(item["msg"].removeprefix("Value error, ")), item["input"])
        found.append(f"{key}: {message}" if key else message)
    return found
