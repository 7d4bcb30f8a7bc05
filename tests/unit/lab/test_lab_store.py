"""Results on disk: whole or not at all, and nothing finished is lost."""

import errno
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from lab_fakes import grid, run_fake

from streamd.errors import ConfigError, StartupError, StreamdError
from streamd.lab import store as store_module
from streamd.lab.execute import Outcome, attempt
from streamd.lab.grid import Job
from streamd.lab.store import Store


@pytest.fixture
def job() -> Job:
    return grid().jobs[0]


@pytest.fixture
def saved(tmp_path: Path, job: Job) -> Store:
    """A store that holds one run."""
    store = Store(tmp_path / "out")
    with store.writing("small") as half:
        assert half == 0
        store.save(attempt(run_fake, job))
    return store


def test_a_run_is_a_folder_with_everything_about_it(saved: Store, job: Job) -> None:
    folder = saved.folder / "runs" / job.key
    assert sorted(path.name for path in folder.iterdir()) == [
        "config.json",
        "done.json",
        "drops.parquet",
        "series.parquet",
        "summary.json",
        "versions.json",
        "wall.json",
    ]
    assert saved.finished(job.key)
    assert saved.count() == 1
    assert saved.summary(job.key)["flows"]["video"]["tx_bps"] == 3_100_000.0
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    assert (config["seed"], config["at"]) == (1, {"arm": "weak", "mode": "classic"})
    assert set(json.loads((folder / "versions.json").read_text(encoding="utf-8"))) == {
        "streamd",
        "code",
        "libraries",
        "python",
    }
    assert saved.wall(job.key)["host"]


def test_columns_come_back(saved: Store, job: Job) -> None:
    table = saved.table(job.key, "series")
    assert table.to_dict(as_series=False) == {
        "time_s": [0.0, 0.1],
        "tx_bps": [1e6, None],
        "rx_bps": [1e6, 2e6],
    }
    assert saved.table(job.key, "drops").shape == (0, 1)
    assert saved.table(job.key, "decisions") is None


def _forget_end(folder: Path) -> None:
    (folder / "done.json").unlink()


def _cut(folder: Path) -> None:
    (folder / "series.parquet").write_bytes(b"PAR1")


def _lose(folder: Path) -> None:
    (folder / "summary.json").unlink()


def _empty_end(folder: Path) -> None:
    (folder / "done.json").write_bytes(b"")


@pytest.mark.parametrize("damage", [_forget_end, _cut, _lose, _empty_end])
def test_a_half_written_run_is_found_and_thrown_away(
    saved: Store, job: Job, damage: Callable[[Path], None]
) -> None:
    folder = saved.folder / "runs" / job.key
    damage(folder)
    assert not saved.finished(job.key)
    with saved.writing("small") as half:
        assert half == 1
    assert not folder.exists()


def test_what_was_being_written_when_the_lab_was_killed_is_thrown_away(
    saved: Store, job: Job
) -> None:
    runs = saved.folder / "runs"
    # Complete but not yet moved to its place: the lab did not count it as done.
    (runs / job.key).rename(runs / f".{job.key}.part")
    (runs / ".1234.part").mkdir()
    assert saved.count() == 0
    with saved.writing("small") as half:
        assert half == 2
    assert list(runs.iterdir()) == []


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_one_sentence_and_loses_nothing(
    saved: Store, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def full(folder: Path) -> None:
        raise OSError(number, "whatever the system calls it")

    monkeypatch.setattr(store_module, "_flush", full)
    other = grid().jobs[1]
    with (
        pytest.raises(StreamdError, match="out: the disk is full; 1 finished runs are kept"),
        saved.writing("small"),
    ):
        saved.save(attempt(run_fake, other))
    assert sorted(path.name for path in (saved.folder / "runs").iterdir()) == [grid().jobs[0].key]


def test_a_disk_that_fills_up_at_a_table(saved: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    write = Path.write_bytes

    def full(path: Path, data: bytes) -> int:
        if path.suffix == ".parquet":
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(path, data)

    monkeypatch.setattr(Path, "write_bytes", full)
    with (
        pytest.raises(StreamdError, match="the disk is full; 1 finished runs are kept"),
        saved.writing("small"),
    ):
        saved.save(attempt(run_fake, grid().jobs[1]))
    assert [path.name for path in (saved.folder / "runs").iterdir()] == [grid().jobs[0].key]


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with (
        pytest.raises(StreamdError, match="cannot be written: Not a directory"),
        Store(tmp_path / "file").writing("small"),
    ):
        pass


def test_a_failed_run_is_kept_until_it_succeeds(saved: Store) -> None:
    other = grid().jobs[1]
    with saved.writing("small"):
        saved.save(Outcome(other, None, "Traceback\nValueError: bad\n", 0.5, "host"))
    assert not saved.finished(other.key)
    assert saved.failure(other.key) == "ValueError: bad"
    assert (saved.folder / "failed" / other.key / "config.json").is_file()
    with saved.writing("small"):
        saved.save(attempt(run_fake, other))
    assert saved.failure(other.key) is None
    assert saved.finished(other.key)


def test_two_labs_do_not_write_into_one_folder(saved: Store) -> None:
    with (
        saved.writing("small"),
        pytest.raises(StartupError, match="another lab is writing there"),
        Store(saved.folder).writing("small"),
    ):
        pass


def test_a_folder_belongs_to_one_experiment(saved: Store) -> None:
    saved.write_manifest({"experiment": {"name": "small"}})
    with (
        pytest.raises(ConfigError, match="holds results of small, not of other"),
        saved.writing("other"),
    ):
        pass


def test_a_folder_without_results(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no results here"):
        Store(tmp_path).manifest()
    (tmp_path / "experiment.json").write_text("{", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"experiment\.json: cannot be read"):
        Store(tmp_path).manifest()
