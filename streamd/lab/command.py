"""What `streamd lab run` and `streamd lab report` do."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamd.errors import ConfigError
from streamd.lab import report, runner
from streamd.lab.analyse import analyse, read, wall
from streamd.lab.cluster import DaskCluster
from streamd.lab.execute import check, check_live, execute
from streamd.lab.experiment import load
from streamd.lab.extra import need
from streamd.lab.grid import Choices, Grid, build
from streamd.lab.pool import Backend, ProcessPool
from streamd.lab.store import Store
from streamd.observability.results import check_writable, write_json

DEFAULT_OUT = Path("lab-results")


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What a user can choose."""

    name: str
    out: Path | None = None
    runs: int | None = None
    select: Sequence[str] = ()
    """`PARAMETER=LEVEL,...`."""
    trace: Path | None = None
    jobs: int | None = None
    dask: str | None = None
    live: bool = False
    json_file: Path | None = None


def run_experiment(options: RunOptions) -> int:
    """Run what is missing and print the tables: 0, or 1 when a run crashed.

    ConfigError, StartupError and StreamdError as `docs/experiments.md` lists them.
    """
    for module in ("numpy", "polars"):
        need(module)
    if options.json_file is not None:
        check_writable(options.json_file)
    checked = check_live if options.live else check
    grid = build(load(options.name), _choices(options), checked)
    store = Store(options.out or DEFAULT_OUT / grid.experiment.name)
    there = next((place for place in (store.folder, *store.folder.parents) if place.exists()), None)
    if there is not None and not there.is_dir():
        raise ConfigError(f"--out {store.folder}: {there} is a file, not a folder")
    try:
        with runner.bar(grid.experiment.name) as watcher:
            tally = runner.run(grid, store, _backend(options), watcher)
    except KeyboardInterrupt:
        kept = f"{store.count()} finished runs are kept"
        print(f"interrupted; {kept}, the same command does the others", file=sys.stderr)
        raise
    return _tell(grid, store, tally, options.json_file)


def report_folder(folder: Path, json_file: Path | None) -> int:
    """Write the report of a folder; ConfigError when it holds no results."""
    need("polars")
    if json_file is not None:
        check_writable(json_file)
    store = Store(folder)
    page, results, analysis = report.write(store)
    if json_file is not None:
        write_json(json_file, {**analysis, "wall": wall(results, store)})
    for note in report.notes(results, store):
        print(note)
    print(page)
    return 0


def _choices(options: RunOptions) -> Choices:
    select: dict[str, list[str]] = {}
    for text in options.select:
        # The name of a varied key may hold anything but "=".
        parameter, equals, levels = text.partition("=")
        if not equals or not levels:
            raise ConfigError(f"--select {text}: PARAMETER=LEVEL,... is needed")
        select[parameter] = [level.strip() for level in levels.split(",")]
    return Choices(options.runs, select, options.trace, options.live)


def _backend(options: RunOptions) -> Backend:
    if options.dask is not None:
        return DaskCluster(execute, options.dask)
    # Live chains measure real time: one at a time, or they disturb one another.
    workers = options.jobs or (1 if options.live else os.cpu_count() or 1)
    return ProcessPool(execute, workers)


def _tell(grid: Grid, store: Store, tally: runner.Tally, json_file: Path | None) -> int:
    results = read(store)
    analysis: dict[str, Any] = analyse(results)
    for line in report.lines(analysis):
        print(line)
    if json_file is not None:
        write_json(json_file, {**analysis, "wall": wall(results, store)})
    half = f", {tally.half} half-written thrown away" if tally.half else ""
    print(f"{grid.experiment.name}: {tally.done} runs done, {tally.kept} there before{half}")
    if tally.others:
        print(f"{tally.others} runs of other seeds, levels or code are left as they are")
    for outcome in tally.failed:
        where = " ".join([*outcome.job.at.values(), f"seed {outcome.job.seed}"])
        print(f"failed: {where}: {outcome.error.strip().rpartition(chr(10))[2]}")
    if tally.failed:
        print(f"errors are kept in {store.folder / 'failed'}")
    print(f"streamd lab report {store.folder}")
    return 1 if tally.failed else 0
