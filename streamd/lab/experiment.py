"""Experiment files: what is run, varied and shown. docs/experiments.md explains each key.

A file is checked as a whole before anything runs: unknown keys, grids that cannot be, and
published values for places the grid does not have are all ConfigErrors with file and line.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError

from streamd.config.lines import Parts, key_lines
from streamd.config.sections import suggest
from streamd.config.units import parse_duration
from streamd.errors import ConfigError
from streamd.lab.places import Places
from streamd.lab.probes import FIGURES as PROBE_FIGURES
from streamd.results.joined import FIGURES
from streamd.sim.tables import SERIES

Kind = Literal["scenario", "trace", "clips"]
NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TraceChoice(_Strict):
    """The capacity of one path of the scenario."""

    file: str
    """Looked for in the folder of traces."""
    otherwise: str
    """What the path carries where that file is not: a rate, `unlimited` or a built-in trace."""


class Panel(_Strict):
    """One set of axes of a time series."""

    label: str
    columns: list[str] = Field(min_length=1)
    """Of the run's table `series`."""
    scale: float = 1.0
    """Factor on every value."""
    limit: float | None = Field(None, gt=0)
    """Top of the axis, in the unit shown; without it everything is seen."""


class Figure(_Strict):
    """A figure of the report."""

    name: str = Field(pattern=NAME)
    title: str
    kind: Literal["boxes", "series"]
    metrics: list[str] = []
    """Of `boxes`: one set of axes each."""
    panels: list[Panel] = []
    """Of `series`: drawn from the first seed of every cell."""


class Published(_Strict):
    """A value somebody published, to stand beside ours."""

    metric: str
    value: float
    """In base units, as the metric's key says."""
    at: dict[str, str] = {}
    """Parameter to level; a parameter left out means any of its levels."""


class Experiment(_Strict):
    """An experiment file."""

    name: str = Field(pattern=NAME)
    title: str
    description: str = ""
    kind: Kind = "scenario"
    runs: int = Field(5, ge=1, le=10_000)
    """Seeds 1 to this, unless --runs says otherwise."""
    scenario: dict[str, Any] | str = {}
    """A scenario, or the name of its file beside this one."""
    probe: dict[str, Any] = {}
    """In place of a scenario for the kinds `trace` and `clips`."""
    traces: dict[str, TraceChoice] = {}
    parameters: dict[str, dict[str, dict[str, Any]]] = {}
    """Parameter to level to the keys it sets."""
    vary: dict[str, list[Any]] = {}
    """Key to the values it takes."""
    draw: dict[str, tuple[str, str]] = {}
    """Key to the least and the greatest duration it takes: each seed has its own in between."""
    default: dict[str, list[str]] = {}
    """Levels taken of a parameter unless more are asked for."""
    compare: str | None = None
    """The parameter whose first level the others are compared with."""
    flow: str | None = None
    """Whose figures are taken; default the first flow."""
    metrics: list[str] = Field(min_length=1)
    figures: list[Figure] = []
    published: list[Published] = []
    published_source: str = "published"
    _places: Places = PrivateAttr(default_factory=Places)

    @property
    def places(self) -> Places:
        """Where its keys stand; of no use for one that comes from a folder of results."""
        return self._places

    def levels(self) -> dict[str, dict[str, dict[str, Any]]]:
        """Every parameter with all its levels; values of `vary` are levels named by themselves."""
        varied = {key: {str(v): {key: v} for v in values} for key, values in self.vary.items()}
        return {**self.parameters, **varied}

    def outline(self) -> Iterator[str]:
        """Title, number of runs, and the levels that `--select` can choose, as text."""
        yield self.title
        yield f"runs of each cell: {self.runs}"
        for parameter, levels in self.levels().items():
            chosen = self.default.get(parameter)
            usual = "" if chosen is None else f" (default {', '.join(chosen)})"
            yield f"{parameter}: {', '.join(levels)}{usual}"

    def base(self) -> dict[str, Any]:
        """What the parameters are applied to."""
        if self.kind != "scenario":
            return self.probe
        assert isinstance(self.scenario, dict)
        return self.scenario


def shipped() -> list[str]:
    """Names of the experiments that come with the package, sorted."""
    folder = files("streamd.lab") / "experiments"
    return sorted(f.name.removesuffix(".toml") for f in folder.iterdir() if f.name.endswith("toml"))


def load(name: str) -> Experiment:
    """The experiment of that name, or of that file. ConfigError with every problem found."""
    path = Path(name)
    if name.endswith(".toml") or path.is_file():
        return load_file(path)
    if name not in shipped():
        hint = suggest(name, shipped())
        raise ConfigError(f"no experiment and no file is named {name!r}{hint}")
    text = (files("streamd.lab") / "experiments" / f"{name}.toml").read_text(encoding="utf-8")
    return parse(text, f"{name}.toml", Path())


def load_file(path: Path) -> Experiment:
    """Read an experiment file. ConfigError names file and line."""
    return parse(_read(path), str(path), path.parent)


def parse(text: str, name: str, folder: Path) -> Experiment:
    """An experiment from the text of its file; `folder` is where its scenario file is."""
    tree, lines = _tree(text, name), key_lines(text)
    other = None
    if isinstance(tree.get("scenario"), str):
        file = folder / tree["scenario"]
        inner = _read(file)
        tree["scenario"], other = _tree(inner, str(file)), (str(file), key_lines(inner))
    places = Places(name, lines, other, _flow_names(tree.get("scenario")))
    try:
        experiment = Experiment.model_validate(tree)
    except ValidationError as error:
        raise ConfigError("\n".join(_model_problems(error, places))) from None
    experiment._places = places
    problems = [f"{places.of(key)}: {text}" for key, text in grid_problems(experiment)]
    if problems:
        raise ConfigError("\n".join(problems))
    return experiment


def grid_problems(experiment: Experiment) -> Iterator[tuple[Parts, str]]:
    """What makes a grid impossible: the key at fault and a sentence."""
    levels = experiment.levels()
    yield from _base_problems(experiment)
    yield from _metric_problems(experiment)
    for key, values in experiment.vary.items():
        if key in experiment.parameters:
            yield ("vary", key), f"{key} is the name of a parameter as well"
        if len({str(value) for value in values}) != len(values):
            yield ("vary", key), f"{key} has a value twice"
    for parameter, choices in levels.items():
        if not choices:
            table = "vary" if parameter in experiment.vary else "parameters"
            yield (table, parameter), f"parameter {parameter} has no levels"
    yield from _clashes(levels)
    set_by = {key for choices in levels.values() for level in choices.values() for key in level}
    for key, bounds in experiment.draw.items():
        if key in set_by:
            yield ("draw", key), f"{key} is set by a parameter as well"
        for problem in _bounds_problems(key, bounds):
            yield ("draw", key), problem
    for parameter, chosen in experiment.default.items():
        for problem in level_problems(levels, parameter, chosen):
            yield ("default", parameter), problem
    if experiment.compare is not None and experiment.compare not in levels:
        hint = suggest(experiment.compare, list(levels))
        yield ("compare",), f"compare: there is no parameter {experiment.compare}{hint}"
    yield from _flow_problems(experiment, set_by)
    for number, value in enumerate(experiment.published):
        for parameter, level in value.at.items():
            for problem in level_problems(levels, parameter, [level]):
                yield ("published", str(number)), f"published {value.metric}: {problem}"


def level_problems(
    levels: Mapping[str, Mapping[str, Any]], parameter: str, chosen: Sequence[str]
) -> Iterator[str]:
    """What is wrong with taking these levels of a parameter."""
    if parameter not in levels:
        yield f"there is no parameter {parameter}{suggest(parameter, list(levels))}"
        return
    known = list(levels[parameter])
    if not chosen:
        yield f"no level of {parameter} is chosen"
    for level in chosen:
        if level not in known:
            yield f"{parameter} has no level {level}{suggest(level, known)}"


def _base_problems(experiment: Experiment) -> Iterator[tuple[Parts, str]]:
    needed = "scenario" if experiment.kind == "scenario" else "probe"
    other = "probe" if needed == "scenario" else "scenario"
    if not getattr(experiment, needed):
        yield ("kind",), f"kind {experiment.kind} needs a table [{needed}]"
    if getattr(experiment, other):
        yield (other,), f"kind {experiment.kind} has no use for [{other}]"
    for number, figure in enumerate(experiment.figures):
        part = "metrics" if figure.kind == "boxes" else "panels"
        if not getattr(figure, part):
            yield (
                ("figures", str(number)),
                f"figure {figure.name} of kind {figure.kind} needs {part}",
            )


def _flow_problems(experiment: Experiment, set_by: set[str]) -> Iterator[tuple[Parts, str]]:
    names = _flow_names(experiment.scenario)
    if experiment.kind != "scenario" or experiment.flow is None or "flows" in set_by:
        return
    if experiment.flow not in names:
        hint = suggest(experiment.flow, names)
        yield ("flow",), f"flow: the scenario has no flow {experiment.flow}{hint}"


def _flow_names(scenario: Any) -> list[str]:
    """Names of a scenario's flows in its order; not judged yet, so anything may be in there."""
    flows = scenario.get("flows") if isinstance(scenario, Mapping) else None
    tables = flows if isinstance(flows, list) else []
    return [str(flow.get("name")) if isinstance(flow, Mapping) else "" for flow in tables]


def _metric_problems(experiment: Experiment) -> Iterator[tuple[Parts, str]]:
    """Figures that no run of this kind has: they would stay empty without a word."""
    kind = experiment.kind
    known = sorted(FIGURES if kind == "scenario" else PROBE_FIGURES[kind])
    named: list[tuple[Parts, str]] = [(("metrics",), metric) for metric in experiment.metrics]
    for number, figure in enumerate(experiment.figures):
        named += [(("figures", str(number), "metrics"), metric) for metric in figure.metrics]
    named += [
        (("published", str(number), "metric"), value.metric)
        for number, value in enumerate(experiment.published)
    ]
    for place, metric in named:
        if metric not in known:
            yield place, f"{place[0]}: no run has a figure {metric}{suggest(metric, known)}"
    for number, figure in enumerate(experiment.figures):
        for column in {column for panel in figure.panels for column in panel.columns}:
            if column not in SERIES:
                yield (
                    ("figures", str(number)),
                    f"figure {figure.name}: no series {column}{suggest(column, list(SERIES))}",
                )


def _bounds_problems(key: str, bounds: tuple[str, str]) -> Iterator[str]:
    try:
        low, high = map(parse_duration, bounds)
    except ValueError as error:
        yield f"{key}: {error}"
        return
    if not 0 <= low <= high:
        yield f"{key}: from {bounds[0]} to {bounds[1]} there is nothing to draw"


def _clashes(levels: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> Iterator[tuple[Parts, str]]:
    owners: dict[str, str] = {}
    for parameter, choices in levels.items():
        for key in dict.fromkeys(key for settings in choices.values() for key in settings):
            if key in owners:
                yield ("parameters", parameter), f"{owners[key]} and {parameter} both set {key}"
            owners[key] = parameter


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"{path}: cannot be read: {reason}") from None


def _tree(text: str, name: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{name}: not TOML: {error}") from None


def _model_problems(error: ValidationError, places: Places) -> Iterator[str]:
    for item in error.errors(include_url=False):
        loc = tuple(str(part) for part in item["loc"] if part not in ("str", "dict[str,any]"))
        key = ".".join(loc)
        if item["type"] == "extra_forbidden":
            hint = suggest(loc[-1], list(Experiment.model_fields)) if len(loc) == 1 else ""
            yield f"{places.of(loc)}: unknown key {key}{hint}"
        elif item["type"] == "missing":
            yield f"{places.of(loc)}: {key} is needed"
        else:
            yield f"{places.of(loc)}: {key}: {item['msg']}, got {item['input']!r}"
