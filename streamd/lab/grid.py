"""From an experiment to its runs: the product of the chosen levels and the seeds."""

import copy
import itertools
import os
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from streamd.config.lines import Parts
from streamd.config.sections import suggest
from streamd.config.units import parse_duration
from streamd.errors import ConfigError
from streamd.lab.experiment import Experiment, Kind, level_problems
from streamd.lab.identity import run_key
from streamd.lab.places import Unfit, covers
from streamd.link.trace import Trace

MAX_RUNS = 100_000
ALL = "all"

Check = Callable[[Kind, dict[str, Any]], None]
"""Raises ConfigError for a configuration that cannot be run."""


@dataclass(frozen=True, slots=True)
class Job:
    """One run; goes to other processes and hosts."""

    key: str
    kind: Kind
    config: dict[str, Any]
    seed: int
    at: dict[str, str]
    """Parameter to level."""
    live: bool = False


@dataclass(frozen=True, slots=True)
class Choices:
    """What the command line chose."""

    runs: int | None = None
    select: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Parameter to levels, or to `all`."""
    trace: Path | None = None
    live: bool = False


@dataclass(frozen=True, slots=True)
class Grid:
    """The runs of an experiment."""

    experiment: Experiment
    jobs: list[Job]
    levels: dict[str, list[str]]
    """The chosen levels of each parameter."""
    seeds: list[int]
    traces: dict[str, str]
    """What each path of `[traces]` carries."""


def build(experiment: Experiment, choices: Choices, check: Check) -> Grid:
    """The grid of an experiment; ConfigError when it is impossible or a run of it would be."""
    levels = chosen_levels(experiment, choices.select)
    seeds = list(range(1, (choices.runs or experiment.runs) + 1))
    if experiment.kind != "scenario":
        seeds = [1]  # nothing in them is random
    cells = [
        dict(zip(levels, values, strict=True)) for values in itertools.product(*levels.values())
    ]
    if len(cells) * len(seeds) > MAX_RUNS:
        raise ConfigError(f"{len(cells) * len(seeds)} runs; an experiment has at most {MAX_RUNS}")
    traces = choose_traces(experiment, choices.trace)
    jobs = []
    for cell in cells:
        config = configure(experiment, cell, traces)
        try:
            jobs.extend(_jobs(experiment, config, cell, seeds, check=check, live=choices.live))
        except Unfit as error:
            problems = dict.fromkeys(_placed(experiment, cell, *found) for found in error.problems)
            raise ConfigError("\n".join(problems)) from None
        except ConfigError as error:
            where = ", ".join(f"{name} {level}" for name, level in cell.items()) or "every run"
            raise ConfigError(f"{experiment.name}, {where}: {error}") from None
    return Grid(experiment, jobs, levels, seeds, traces)


def _placed(experiment: Experiment, cell: Mapping[str, str], key: Parts, problem: str) -> str:
    """A problem of a cell's configuration with the place in the file where that key was set."""
    levels = experiment.levels()
    for setting in experiment.draw:
        if covers(setting, key):
            return f"{experiment.places.of(('draw', setting))}: {problem}"
    for parameter, level in cell.items():
        for setting in levels[parameter][level]:
            if covers(setting, key):
                place = _place_of_level(experiment, parameter, level, setting)
                level_named = "" if setting == parameter else f"{parameter} {level}: "
                return f"{place}: {level_named}{problem}"
    if len(key) == 3 and key[1] in experiment.traces and key[::2] == ("paths", "capacity"):
        return f"{experiment.places.of(('traces', key[1]))}: {problem}"
    return f"{experiment.places.of_base(key)}: {problem}"


def _place_of_level(experiment: Experiment, parameter: str, level: str, setting: str) -> str:
    if parameter in experiment.vary:
        return experiment.places.of(("vary", parameter))
    return experiment.places.of(("parameters", parameter, level, setting))


def _jobs(
    experiment: Experiment,
    config: dict[str, Any],
    cell: dict[str, str],
    seeds: list[int],
    *,
    check: Check,
    live: bool,
) -> list[Job]:
    """The runs of a cell. Live ones draw nothing: real processes start when they do."""
    kind, draws = experiment.kind, {} if live else experiment.draw
    jobs = []
    for seed in seeds:
        own = drawn(config, draws, seed) if draws else config
        if draws or seed == seeds[0]:
            check(kind, own)
        jobs.append(Job(run_key(kind, own, seed, live=live), kind, own, seed, cell, live))
    return jobs


def drawn(
    config: dict[str, Any], draws: Mapping[str, tuple[str, str]], seed: int
) -> dict[str, Any]:
    """The configuration with every key of `[draw]` set to this seed's own duration."""
    config = copy.deepcopy(config)
    for key, bounds in draws.items():
        low, high = map(parse_duration, bounds)
        value = random.Random(f"{seed}:{key}").uniform(low, high)
        # Microseconds, so that the text is short and the same everywhere.
        set_key(config, key, f"{round(value * 1e6)}us")
    return config


def chosen_levels(
    experiment: Experiment, select: Mapping[str, Sequence[str]]
) -> dict[str, list[str]]:
    """The levels of each parameter that are run: as selected, else the default ones, else all."""
    levels = experiment.levels()
    for parameter, chosen in select.items():
        if list(chosen) == [ALL] and parameter in levels:
            continue
        problems = list(level_problems(levels, parameter, chosen))
        if problems:
            raise ConfigError(f"{experiment.name}: {'; '.join(problems)}")
    picked: dict[str, list[str]] = {}
    for parameter, known in levels.items():
        chosen = list(select.get(parameter, experiment.default.get(parameter, [ALL])))
        # In the order of the file: the first level is what others are compared with.
        picked[parameter] = [level for level in known if chosen == [ALL] or level in chosen]
    return picked


def configure(
    experiment: Experiment, cell: Mapping[str, str], traces: Mapping[str, str]
) -> dict[str, Any]:
    """The configuration of one cell: the base, its traces, and what its levels set."""
    config = copy.deepcopy(experiment.base())
    for path, capacity in traces.items():
        key = f"paths.{path}.capacity" if experiment.kind == "scenario" else path
        set_key(config, key, capacity)
    levels = experiment.levels()
    for parameter, level in cell.items():
        for key, value in levels[parameter][level].items():
            try:
                set_key(config, key, copy.deepcopy(value))
            except ConfigError as error:
                place = _place_of_level(experiment, parameter, level, key)
                raise ConfigError(f"{place}: {parameter} {level}: {error}") from None
    return config


def set_key(tree: dict[str, Any], dotted: str, value: Any) -> None:
    """Set `a.b.c`; members of a list of tables go by their `name`, tables are made as needed.

    ConfigError for a flow or a path the base does not have.
    """
    *parents, last = dotted.split(".")
    node: Any = tree
    for depth, part in enumerate(parents):
        if isinstance(node, list):
            node = _named(node, part, dotted)
        elif depth == 1 and parents[0] == "paths" and part not in node:
            raise ConfigError(f"{dotted}: there is no path {part}{suggest(part, list(node))}")
        else:
            node = node.setdefault(part, {})
        if not isinstance(node, dict | list):
            raise ConfigError(f"{dotted}: {part} is a value, not a table")
    if isinstance(node, list):
        raise ConfigError(f"{dotted}: {last} is a table, not a value")
    node[last] = value


def _named(tables: list[Any], name: str, dotted: str) -> Any:
    names = [str(table.get("name")) for table in tables]
    if name not in names:
        raise ConfigError(f"{dotted}: nothing there is named {name}{suggest(name, names)}")
    return tables[names.index(name)]


def choose_traces(experiment: Experiment, given: Path | None) -> dict[str, str]:
    """The capacity of each path of `[traces]`.

    `given` is for the first of them; one that ends in the same way as that path's file
    (`.up`) brings its counterpart (`.down`) along where there is one. ConfigError when it
    cannot be read or the experiment has no use for it.
    """
    if given is not None and not experiment.traces:
        raise ConfigError(f"{experiment.name} has no link to put the trace {given} on")
    folder = trace_folder()
    chosen: dict[str, str] = {}
    for path, choice in experiment.traces.items():
        file = folder / choice.file if folder else None
        if given is not None:
            first = not chosen
            file = given if first else given.with_suffix(Path(choice.file).suffix)
            if first:
                Trace.load(given)
        chosen[path] = str(file.resolve()) if file and file.is_file() else choice.otherwise
    return chosen


def trace_folder() -> Path | None:
    """Where traces are: `STREAMD_TRACES`, else `../shared/traces`; None when there is no such."""
    named = os.environ.get("STREAMD_TRACES")
    checkout = Path(__file__).resolve().parents[2]
    beside = "../shared/traces"
    candidates = [Path(named)] if named else [Path(beside), checkout / beside]
    return next((folder for folder in candidates if folder.is_dir()), None)
