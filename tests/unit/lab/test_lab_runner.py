"""Running a grid: in worker processes, again after a kill, past runs that crash."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
from lab_fakes import InLine, grid, run_fake, run_or_die, run_or_raise

from streamd.errors import StreamdError
from streamd.lab import runner
from streamd.lab import store as store_module
from streamd.lab.pool import ProcessPool
from streamd.lab.store import Store


def test_all_runs_are_done_and_kept_once(tmp_path: Path) -> None:
    store = Store(tmp_path)
    tally = runner.run(grid(), store, InLine(run_fake), runner.Silent())
    assert (tally.done, tally.kept, tally.failed) == (6, 0, [])
    again = InLine(run_fake)
    tally = runner.run(grid(), store, again, runner.Silent())
    assert (tally.done, tally.kept, again.given) == (0, 6, [])


def test_only_what_is_missing_is_run(tmp_path: Path) -> None:
    store = Store(tmp_path)
    runner.run(grid(), store, InLine(run_fake), runner.Silent())
    (tmp_path / "runs" / grid().jobs[4].key / "done.json").unlink()
    backend = InLine(run_fake)
    tally = runner.run(grid(), store, backend, runner.Silent())
    assert backend.given == [("l4s", 2)]
    assert (tally.done, tally.kept, tally.half) == (1, 5, 1)


def test_a_crashed_run_is_kept_stops_nothing_and_is_tried_again(tmp_path: Path) -> None:
    store = Store(tmp_path)
    tally = runner.run(grid(), store, InLine(run_or_raise), runner.Silent())
    assert (tally.done, len(tally.failed)) == (5, 1)
    key = grid().jobs[4].key
    assert store.failure(key) == "ValueError: no such thing as seed 2"
    assert "Traceback" in (tmp_path / "failed" / key / "error.txt").read_text(encoding="utf-8")
    backend = InLine(run_fake)
    assert runner.run(grid(), store, backend, runner.Silent()).done == 1
    assert backend.given == [("l4s", 2)]


def test_worker_processes(tmp_path: Path) -> None:
    store = Store(tmp_path)
    tally = runner.run(grid(), store, ProcessPool(run_fake, 2), runner.Silent())
    assert (tally.done, tally.failed) == (6, [])
    assert store.summary(grid().jobs[5].key)["flows"]["video"]["tx_bps"] == 1_300_000.0


def test_a_worker_that_dies_takes_only_its_own_run(tmp_path: Path) -> None:
    store = Store(tmp_path)
    tally = runner.run(grid(), store, ProcessPool(run_or_die, 1), runner.Silent())
    assert tally.done == 5
    (failed,) = tally.failed
    assert (failed.job.at["mode"], failed.job.seed) == ("l4s", 2)
    assert store.failure(failed.job.key) == "the worker process ended: SIGKILL"


def test_a_pool_closed_early_leaves_no_process() -> None:
    pool = ProcessPool(run_fake, 2)
    outcomes = pool.run(grid().jobs)
    next(outcomes)
    processes = [worker.process for worker in pool._workers.values()]
    assert processes
    outcomes.close()
    assert all(process.exitcode is not None for process in processes)


def test_a_full_disk_ends_the_run_and_stops_the_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flush = store_module._flush
    calls = []

    def fill_up(folder: Path) -> None:
        calls.append(folder)
        if len(calls) > 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        flush(folder)

    monkeypatch.setattr(store_module, "_flush", fill_up)
    backend = InLine(run_fake)
    with pytest.raises(StreamdError, match="the disk is full; 2 finished runs are kept"):
        runner.run(grid(), Store(tmp_path), backend, runner.Silent())
    assert backend.closed
    monkeypatch.setattr(store_module, "_flush", flush)
    assert runner.run(grid(), Store(tmp_path), InLine(run_fake), runner.Silent()).kept == 2


def test_killed_and_restarted_it_does_only_what_is_missing(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    out = tmp_path / "out"
    lab = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("lab_program.py")), str(out)],
        env={**os.environ, "LAB_TEST_FIFO": str(fifo)},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert lab.stderr is not None
    with lab, lab.stderr:
        said = [lab.stderr.readline().rpartition(":")[0] for _ in range(2)]
        lab.kill()
    assert said == ["1/6 weak classic seed 1", "2/6 weak classic seed 2"]
    # The worker that is left hangs in its run; let it find out that it is alone.
    fifo.open("wb").close()
    backend = InLine(run_fake)
    tally = runner.run(grid(), Store(out), backend, runner.Silent())
    assert (tally.done, tally.kept) == (4, 2)
    assert backend.given == [("classic", 3), ("l4s", 1), ("l4s", 2), ("l4s", 3)]
