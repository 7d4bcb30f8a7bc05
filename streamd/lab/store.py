"""Results on disk: one folder per run, whole or not at all.

    FOLDER/experiment.json           the experiment and its runs, as last asked for
    FOLDER/runs/KEY/config.json      kind, seed, levels, configuration
    FOLDER/runs/KEY/versions.json    code and libraries
    FOLDER/runs/KEY/summary.json     the figures
    FOLDER/runs/KEY/TABLE.parquet    columns: frames, packets, ...
    FOLDER/runs/KEY/wall.json        host and time it took
    FOLDER/runs/KEY/done.json        names and sizes of the files above, written last
    FOLDER/failed/KEY/               config.json, versions.json and error.txt of a crashed run

A run is written to a folder with a name that begins with a dot, flushed, and renamed: killed
at any moment, a run is there or it is not. What a crash of the machine may still have cut
short shows by the sizes; such a run is done again.
"""

import errno
import fcntl
import io
import json
import os
import platform
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TextIO

from streamd import __version__
from streamd.errors import ConfigError, StartupError, StreamdError
from streamd.lab.execute import Outcome, Tables
from streamd.lab.extra import need
from streamd.lab.grid import Job
from streamd.lab.identity import code_digest, library_versions, portable
from streamd.observability.results import plain

MANIFEST = "experiment.json"
_DONE = "done.json"
_FULL = (errno.ENOSPC, errno.EDQUOT)


class Store:
    """The folder of one experiment."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._runs = folder / "runs"
        self._failed = folder / "failed"
        self._lock: TextIO | None = None

    @contextmanager
    def writing(self, experiment: str) -> Iterator[int]:
        """Take the folder for ourselves; gives how many half-written runs were thrown away.

        StartupError when somebody else is at it, ConfigError when it holds another experiment.
        """
        with self._storing():
            self._runs.mkdir(parents=True, exist_ok=True)
            self._lock = (self.folder / ".lock").open("w", encoding="ascii")
        try:
            self._take()
            self._expect(experiment)
            with self._storing():
                yield self._sweep()
        finally:
            self._lock.close()

    def finished(self, key: str) -> bool:
        """Whether this run is there, with every file as long as it was written."""
        folder = self._runs / key
        try:
            sizes = json.loads((folder / _DONE).read_text(encoding="utf-8"))
            return bool(sizes) and all(
                (folder / name).stat().st_size == size for name, size in sizes.items()
            )
        except (OSError, ValueError, AttributeError):
            return False

    def count(self) -> int:
        """How many finished runs there are."""
        return sum(self.finished(path.name) for path in self._runs.glob("[!.]*"))

    def write_manifest(self, manifest: Mapping[str, object]) -> None:
        """Remember what was asked for; StreamdError when the disk is full."""
        with self._storing():
            partial = self.folder / f".{MANIFEST}.part"
            _write(partial, manifest)
            partial.replace(self.folder / MANIFEST)

    def manifest(self) -> dict[str, Any]:
        """What was asked for last. ConfigError when this is no folder of results."""
        file = self.folder / MANIFEST
        try:
            found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            raise ConfigError(f"{self.folder}: no results here ({MANIFEST} is missing)") from None
        except (OSError, ValueError) as error:
            raise ConfigError(f"{file}: cannot be read: {error}") from None
        return found

    def save(self, outcome: Outcome) -> None:
        """Keep what a run gave, or how it failed. StreamdError when it cannot be written."""
        key = outcome.job.key
        with self._storing():
            if outcome.output is None:
                self._place(self._failed, outcome, {})
                return
            shutil.rmtree(self._runs / key, ignore_errors=True)
            self._place(self._runs, outcome, outcome.output.tables)
            shutil.rmtree(self._failed / key, ignore_errors=True)

    def summary(self, key: str) -> dict[str, Any]:
        """A finished run's figures."""
        text = (self._runs / key / "summary.json").read_text(encoding="utf-8")
        summary: dict[str, Any] = json.loads(text)
        return summary

    def table(self, key: str, name: str) -> Any:
        """A table of a finished run as a polars frame; None when it has no such table."""
        file = self._runs / key / f"{name}.parquet"
        return need("polars").read_parquet(file) if file.is_file() else None

    def failure(self, key: str) -> str | None:
        """The last line of a crashed run's error; None when it did not crash."""
        try:
            text = (self._failed / key / "error.txt").read_text(encoding="utf-8")
        except OSError:
            return None
        return text.strip().rpartition("\n")[2]

    def wall(self, key: str) -> dict[str, Any]:
        """Host and time of a finished run."""
        text = (self._runs / key / "wall.json").read_text(encoding="utf-8")
        wall: dict[str, Any] = json.loads(text)
        return wall

    def _take(self) -> None:
        assert self._lock is not None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StartupError(f"{self.folder}: another lab is writing there") from None

    def _expect(self, experiment: str) -> None:
        if (self.folder / MANIFEST).exists():
            held = self.manifest().get("experiment", {}).get("name")
            if held != experiment:
                raise ConfigError(f"{self.folder} holds results of {held}, not of {experiment}")

    def _sweep(self) -> int:
        """Throw away what was being written when a lab ended, and runs cut short since."""
        half = [
            path
            for path in self._runs.iterdir()
            if path.name.startswith(".") or not self.finished(path.name)
        ]
        if self._failed.is_dir():
            half.extend(self._failed.glob(".*"))
        for path in half:
            shutil.rmtree(path)
        return len(half)

    def _place(self, parent: Path, outcome: Outcome, tables: Tables) -> None:
        """Write the folder of a run beside its place, then move it there."""
        key = outcome.job.key
        partial = parent / f".{key}.part"
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        with ExitStack() as leftovers:
            leftovers.callback(shutil.rmtree, partial, ignore_errors=True)
            _write_run(partial, outcome, tables)
            _flush(partial)
            shutil.rmtree(parent / key, ignore_errors=True)
            partial.rename(parent / key)

    @contextmanager
    def _storing(self) -> Iterator[None]:
        """A disk that refuses becomes one sentence; what is finished stays."""
        try:
            yield
        except OSError as error:
            kept = f"{self.count()} finished runs are kept"
            if error.errno in _FULL:
                reason = "the disk is full"
            else:
                reason = f"cannot be written: {error.strerror or error}"
            raise StreamdError(f"{self.folder}: {reason}; {kept}") from None


def _write_run(folder: Path, outcome: Outcome, tables: Tables) -> None:
    job = outcome.job
    _write(folder / "config.json", _config(job))
    _write(folder / "versions.json", versions(live=job.live))
    wall = {"host": outcome.host, "seconds": outcome.seconds, "config": job.config}
    _write(folder / "wall.json", wall)
    if outcome.output is None:
        (folder / "error.txt").write_text(outcome.error, encoding="utf-8")
        return
    _write(folder / "summary.json", outcome.output.summary)
    for name, columns in tables.items():
        # By way of memory: polars reports a full disk as an error of its own.
        packed = io.BytesIO()
        frame(columns).write_parquet(packed)
        (folder / f"{name}.parquet").write_bytes(packed.getbuffer())
    sizes = {path.name: path.stat().st_size for path in sorted(folder.iterdir())}
    _write(folder / _DONE, sizes)


def frame(columns: Mapping[str, Any]) -> Any:
    """Columns (lists or array.array) as a polars frame."""
    polars, numpy = need("polars"), need("numpy")
    series = []
    for name, values in columns.items():
        data = numpy.asarray(values) if hasattr(values, "typecode") else list(values)
        series.append(polars.Series(name, data, strict=False))
    return polars.DataFrame(series)


def versions(*, live: bool) -> dict[str, Any]:
    """The code a run was made with."""
    return {
        "streamd": __version__,
        "code": code_digest(live=live),
        "libraries": library_versions(),
        "python": platform.python_version(),
    }


def _config(job: Job) -> dict[str, Any]:
    return {
        "key": job.key,
        "kind": job.kind,
        "live": job.live,
        "seed": job.seed,
        "at": job.at,
        "config": portable(job.config),
    }


def _write(file: Path, value: Mapping[str, object]) -> None:
    file.write_text(json.dumps(plain(value), indent=1, default=str) + "\n", encoding="utf-8")


def _flush(folder: Path) -> None:
    """Everything in a folder, and the folder, onto the disk."""
    for path in (*folder.iterdir(), folder):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
