"""Does the runs of a grid that are not done yet, and keeps each as it ends."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from streamd.lab.execute import Outcome
from streamd.lab.grid import Grid, Job
from streamd.lab.identity import portable
from streamd.lab.pool import Backend
from streamd.lab.store import Store, versions


@dataclass(slots=True)
class Tally:
    """How a grid went."""

    done: int = 0
    """Runs done now."""
    kept: int = 0
    """Runs that were there already."""
    others: int = 0
    """Runs in the folder that do not belong to this grid."""
    half: int = 0
    """Half-written runs that were thrown away."""
    failed: list[Outcome] = field(default_factory=list)
    seconds: float = 0.0
    """Time of all runs done now, one after the other."""


class Watcher(Protocol):
    """Is told how far it has come."""

    def began(self, total: int, kept: int) -> None:
        """So many runs belong to the grid, so many of them are there."""

    def ended(self, outcome: Outcome) -> None:
        """A run ended, either way."""


def run(grid: Grid, store: Store, backend: Backend, watcher: Watcher) -> Tally:
    """Do what is missing. A crashed run is kept as such and stops nothing.

    StreamdError when results cannot be written: finished runs stay. Errors of the backend
    and of `Store.writing` as they are.
    """
    tally = Tally()
    jobs = {job.key: job for job in grid.jobs}
    with store.writing(grid.experiment.name) as tally.half:
        store.write_manifest(manifest(grid))
        missing = [job for key, job in jobs.items() if not store.finished(key)]
        tally.kept = len(jobs) - len(missing)
        tally.others = store.count() - tally.kept
        watcher.began(len(jobs), tally.kept)
        if missing:
            _run(missing, store, backend, watcher, tally)
    return tally


def _run(
    missing: Sequence[Job], store: Store, backend: Backend, watcher: Watcher, tally: Tally
) -> None:
    outcomes = backend.run(missing)
    # Closed also when a result cannot be stored: the backend then stops what still runs.
    with closing(outcomes):
        for outcome in outcomes:
            store.save(outcome)
            tally.seconds += outcome.seconds
            if outcome.output is None:
                tally.failed.append(outcome)
            else:
                tally.done += 1
            watcher.ended(outcome)


def manifest(grid: Grid) -> dict[str, object]:
    """What the report needs to know of a grid; no path of this machine is in it."""
    experiment = grid.experiment
    dumped = experiment.model_dump(mode="json")
    chosen = {path: {"capacity": capacity} for path, capacity in grid.traces.items()}
    return {
        # Levels that were not chosen may name files that are not there.
        "experiment": portable(dumped, needed=False),
        "levels": grid.levels,
        "seeds": grid.seeds,
        "traces": portable(chosen),
        "runs": [
            {"key": job.key, "at": job.at, "seed": job.seed, "live": job.live} for job in grid.jobs
        ],
        "versions": versions(live=any(job.live for job in grid.jobs)),
    }


class Silent:
    """A `Watcher` that says nothing."""

    def began(self, total: int, kept: int) -> None:
        """See `Watcher`."""

    def ended(self, outcome: Outcome) -> None:
        """See `Watcher`."""


class Bar:
    """A `Watcher` with a bar and the time left; a line per run where there is no terminal."""

    def __init__(self, progress: Progress, title: str) -> None:
        self._progress = progress
        self._title = title
        self._total = self._count = 0
        self._task = progress.add_task(title, total=None)

    def began(self, total: int, kept: int) -> None:
        """See `Watcher`."""
        self._total, self._count = total, kept
        # Runs that were there already took no time: they would spoil the estimate.
        self._progress.reset(self._task, total=total - kept)
        if kept:
            self._say(f"{kept} of {total} runs are there already")

    def ended(self, outcome: Outcome) -> None:
        """See `Watcher`."""
        self._count += 1
        self._progress.advance(self._task)
        where = " ".join([*outcome.job.at.values(), f"seed {outcome.job.seed}"])
        if outcome.output is None:
            self._say(f"{where}: failed: {outcome.error.strip().rpartition(chr(10))[2]}")
        elif not self._progress.console.is_terminal:
            self._say(f"{self._count}/{self._total} {where}: {outcome.seconds:.1f} s")

    def _say(self, text: str) -> None:
        self._progress.console.print(text, markup=False, highlight=False, soft_wrap=True)


@contextmanager
def bar(title: str) -> Iterator[Bar]:
    """A progress bar on stderr."""
    console = Console(file=sys.stderr)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
    ) as progress:
        yield Bar(progress, title)
