"""The lab on a Dask cluster: a real scheduler and two real worker processes on loopback."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from lab_fakes import grid, run_fake, run_or_raise

from streamd.errors import StartupError
from streamd.lab import cluster, runner
from streamd.lab.cluster import DaskCluster
from streamd.lab.store import Store

FAKES = Path(__file__).parent


def _start(stack: ExitStack, *words: str) -> subprocess.Popen[str]:
    """A Dask program that ends with the stack; it can import the fake runs."""
    process = subprocess.Popen(
        [sys.executable, "-m", *words],
        env={**os.environ, "PYTHONPATH": str(FAKES), "PYTHONWARNINGS": "ignore"},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    stack.callback(process.stderr.close)
    stack.callback(process.wait)
    stack.callback(process.kill)
    return process


def _read_until(process: subprocess.Popen[str], pattern: str) -> str:
    assert process.stderr is not None
    for line in process.stderr:
        match = re.search(pattern, line)
        if match:
            return match[1]
    raise AssertionError(f"it ended with code {process.wait()} and never said {pattern}")


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """The address of a scheduler without workers."""
    with ExitStack() as stack:
        yield _scheduler(stack)


def _scheduler(stack: ExitStack) -> str:
    words = ("--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--no-jupyter")
    process = _start(stack, "distributed.cli.dask_scheduler", *words)
    return _read_until(process, r"Scheduler at:\s+(tcp://\S+)")


@pytest.fixture(scope="module")
def two_workers() -> Iterator[str]:
    """The address of a scheduler with two worker processes."""
    with ExitStack() as stack:
        address = _scheduler(stack)
        for _ in range(2):
            words = (address, "--host", "127.0.0.1", "--nthreads", "1", "--no-nanny")
            worker = _start(stack, "distributed.cli.dask_worker", *words, "--no-dashboard")
            _read_until(worker, r"(Registered to)")
        yield address


def test_runs_are_done_by_the_workers(two_workers: str, tmp_path: Path) -> None:
    store = Store(tmp_path)
    tally = runner.run(grid(), store, DaskCluster(run_fake, two_workers), runner.Silent())
    assert (tally.done, tally.failed) == (6, [])
    assert store.summary(grid().jobs[5].key)["flows"]["video"]["tx_bps"] == 1_300_000.0
    assert store.table(grid().jobs[5].key, "series")["rx_bps"].to_list() == [1e6, 2e6]
    again = runner.run(grid(), store, DaskCluster(run_fake, two_workers), runner.Silent())
    assert (again.done, again.kept) == (0, 6)


def test_a_crash_on_a_worker_stops_nothing(two_workers: str, tmp_path: Path) -> None:
    store = Store(tmp_path)
    tally = runner.run(grid(), store, DaskCluster(run_or_raise, two_workers), runner.Silent())
    assert (tally.done, len(tally.failed)) == (5, 1)
    assert store.failure(grid().jobs[4].key) == "ValueError: no such thing as seed 2"


def test_workers_with_other_code_are_refused(
    two_workers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "_digest_here", lambda: "another version")
    with pytest.raises(StartupError, match="Dask workers with another version of streamd: tcp://"):
        runner.run(grid(), Store(tmp_path), DaskCluster(run_fake, two_workers), runner.Silent())


def test_a_scheduler_without_workers(scheduler: str, tmp_path: Path) -> None:
    with pytest.raises(StartupError, match="has no workers"):
        runner.run(grid(), Store(tmp_path), DaskCluster(run_fake, scheduler), runner.Silent())


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nonsense://there"])
def test_no_scheduler(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "CONNECT_TIMEOUT", 0.5)
    with pytest.raises(StartupError, match=f"no Dask scheduler at {address}"):
        runner.run(grid(), Store(tmp_path), DaskCluster(run_fake, address), runner.Silent())
