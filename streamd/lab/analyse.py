"""From runs to statements: medians, quartiles, and how sure a difference is.

Theory of operation. Every run counts once; samples of different runs are never pooled
(specification of metrics, section 0). Of each metric and cell: the median and quartiles over
the runs. Of two levels of the compared parameter: the difference of their medians, with a 95 %
percentile bootstrap interval: both sets of runs are drawn again with replacement, 10 000 times,
and the 2.5th and 97.5th percentile of the differences of medians are taken. The draws are
seeded by what is compared, so the interval is a function of the runs. With few runs the
interval is coarse: five runs have 126 different resamples each.
"""

import hashlib
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from streamd.lab.experiment import Experiment, Published
from streamd.lab.extra import need
from streamd.lab.metrics import value_of
from streamd.lab.store import Store
from streamd.qoe.percentile import over_runs

RESAMPLES = 10_000
CONFIDENCE = 0.95


class Interval(NamedTuple):
    """A difference of medians and its bootstrap interval."""

    difference: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Results:
    """An experiment with the runs that are there."""

    experiment: Experiment
    manifest: dict[str, Any]
    cells: list[dict[str, str]]
    """Levels of every parameter but the compared one."""
    compared: list[str]
    """Levels of the compared parameter; one empty name when there is none."""
    runs: list[dict[str, Any]]
    """Of the manifest, with `summary` where the run is finished."""

    def values(self, cell: Mapping[str, str], level: str, metric: str) -> list[float | None]:
        """A metric of every finished run of a cell, in the order of the seeds."""
        found = []
        for run in self.finished(cell, level):
            flows = run["summary"].get("flows", {})
            name = self.experiment.flow or next(iter(flows), "")
            found.append(value_of(flows.get(name, {}), metric))
        return found

    def finished(self, cell: Mapping[str, str], level: str) -> list[dict[str, Any]]:
        """The finished runs of a cell and a level of the compared parameter."""
        place = self.place(cell, level)
        return [run for run in self.runs if "summary" in run and run["at"] == place]

    def flow_number(self, run: Mapping[str, Any]) -> int:
        """The place of the flow whose figures are taken, in the tables of a run."""
        names = list(run["summary"].get("flows", {}))
        return names.index(self.experiment.flow) if self.experiment.flow in names else 0

    def place(self, cell: Mapping[str, str], level: str) -> dict[str, str]:
        """A cell with a level of the compared parameter."""
        compare = self.experiment.compare
        return dict(cell) if compare is None else {**cell, compare: level}

    def published(self, cell: Mapping[str, str], level: str, metric: str) -> float | None:
        """The published value for this place; None when there is none."""
        return published(self.experiment.published, self.place(cell, level), metric)


def read(store: Store) -> Results:
    """The results in a folder. ConfigError when it holds none."""
    manifest = store.manifest()
    experiment = Experiment.model_validate(manifest["experiment"])
    levels: dict[str, list[str]] = manifest["levels"]
    compare = experiment.compare
    others = {name: chosen for name, chosen in levels.items() if name != compare}
    cells = [
        dict(zip(others, values, strict=True)) for values in itertools.product(*others.values())
    ]
    runs = []
    for run in manifest["runs"]:
        done = {"summary": store.summary(run["key"])} if store.finished(run["key"]) else {}
        runs.append({**run, **done})
    return Results(experiment, manifest, cells, levels[compare] if compare else [""], runs)


def published(values: Sequence[Published], place: Mapping[str, str], metric: str) -> float | None:
    """The first published value of a metric that fits a place; None when none does."""
    for value in values:
        if value.metric == metric and all(place.get(k) == v for k, v in value.at.items()):
            return value.value
    return None


def difference(
    base: Sequence[float], other: Sequence[float], *, seed: str, resamples: int = RESAMPLES
) -> Interval | None:
    """Median of `other` minus median of `base`; None when either has no values."""
    if not base or not other:
        return None
    numpy = need("numpy")
    # The old generator: its stream is frozen, that of newer ones may change between versions.
    words = hashlib.sha256(seed.encode()).digest()
    rng = numpy.random.RandomState([int.from_bytes(words[i : i + 4]) for i in range(0, 32, 4)])
    draws = [_medians(numpy, rng, values, resamples) for values in (base, other)]
    tail = 50 * (1 - CONFIDENCE)
    low, high = numpy.percentile(draws[1] - draws[0], [tail, 100 - tail])
    middle = float(numpy.median(other) - numpy.median(base))
    return Interval(middle, float(low), float(high))


def _medians(numpy: Any, rng: Any, values: Sequence[float], resamples: int) -> Any:
    picks = rng.randint(0, len(values), size=(resamples, len(values)))
    return numpy.median(numpy.asarray(values)[picks], axis=1)


def analyse(results: Results) -> dict[str, Any]:
    """Everything the tables show, as one value for JSON."""
    experiment, manifest = results.experiment, results.manifest
    return {
        "experiment": experiment.name,
        "title": experiment.title,
        "kind": experiment.kind,
        "streamd": manifest["versions"]["streamd"],
        "code": manifest["versions"]["code"],
        "libraries": manifest["versions"]["libraries"],
        "levels": manifest["levels"],
        "seeds": manifest["seeds"],
        "traces": manifest["traces"],
        "published_source": experiment.published_source,
        "cells": [_cell(results, cell) for cell in results.cells],
        "runs": [_run(run) for run in results.runs],
    }


def _cell(results: Results, cell: Mapping[str, str]) -> dict[str, Any]:
    metrics = results.experiment.metrics
    levels = {
        level: {metric: _spread(results, cell, level, metric) for metric in metrics}
        for level in results.compared
    }
    base = results.compared[0]
    differences = {
        level: {metric: _difference(results, cell, (base, level), metric) for metric in metrics}
        for level in results.compared[1:]
    }
    return {"at": dict(cell), "levels": levels, "differences": differences}


def _spread(
    results: Results, cell: Mapping[str, str], level: str, metric: str
) -> dict[str, float | int | None]:
    spread = over_runs(results.values(cell, level, metric))
    return {**spread._asdict(), "published": results.published(cell, level, metric)}


def _difference(
    results: Results, cell: Mapping[str, str], pair: tuple[str, str], metric: str
) -> dict[str, float | None]:
    """The second level of the pair against the first."""
    base, other = (
        [value for value in results.values(cell, level, metric) if value is not None]
        for level in pair
    )
    seed = f"{results.experiment.name}:{sorted(cell.items())}:{pair}:{metric}"
    found = difference(base, other, seed=seed)
    before, after = (results.published(cell, level, metric) for level in pair)
    known = before is not None and after is not None
    return {
        "difference": found.difference if found else None,
        "low": found.low if found else None,
        "high": found.high if found else None,
        "published": after - before if known else None,  # type: ignore[operator]
    }


def _run(run: Mapping[str, Any]) -> dict[str, Any]:
    summary = run.get("summary")
    return {
        "key": run["key"],
        "at": run["at"],
        "seed": run["seed"],
        "live": run["live"],
        "finished": summary is not None,
        "warnings": warnings(summary or {}),
        "events_sha256": summary.get("events_sha256") if summary else None,
    }


def warnings(summary: Mapping[str, Any]) -> list[str]:
    """What makes a run's figures doubtful, by flow."""
    return [
        f"{name}: {text}"
        for name, flow in summary.get("flows", {}).items()
        for text in flow.get("warnings", ())
    ]


def wall(results: Results, store: Store) -> dict[str, Any]:
    """What is not a function of configuration, seed and code."""
    times = {run["key"]: store.wall(run["key"]) for run in results.runs if "summary" in run}
    hosts = sorted({entry["host"] for entry in times.values()})
    return {
        "folder": str(store.folder.resolve()),
        "python": results.manifest["versions"]["python"],
        "hosts": hosts,
        "run_seconds": {key: entry["seconds"] for key, entry in times.items()},
        "failed": {
            run["key"]: text
            for run in results.runs
            if "summary" not in run and (text := store.failure(run["key"]))
        },
    }
