"""Result files."""

import json
import os
from pathlib import Path

import pytest

from streamd.errors import StreamdError
from streamd.observability.results import write_json


def test_what_is_not_a_number_is_null(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    write_json(
        path,
        {"a_bps": 1.5, "b_s": float("nan"), "c": [float("inf"), 2], "d": {"e": None, "f": "x"}},
    )
    assert json.loads(path.read_text()) == {
        "a_bps": 1.5,
        "b_s": None,
        "c": [None, 2],
        "d": {"e": None, "f": "x"},
    }
    assert [p.name for p in tmp_path.iterdir()] == ["out.json"]


def test_an_older_result_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    path.write_text("old and much longer than what comes")
    write_json(path, {})
    assert path.read_text() == "{}\n"


def test_a_place_that_cannot_be_written_is_one_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "none" / "out.json"
    with pytest.raises(StreamdError) as caught:
        write_json(path, {})
    assert str(caught.value) == f"{path}: cannot be written: No such file or directory"


def test_a_pipe_is_written_and_stays_a_pipe(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_json(path, {"a": 1})
        assert os.read(reader, 100) == b'{\n  "a": 1\n}\n'
    finally:
        os.close(reader)
    assert path.is_fifo()


def test_a_link_is_written_through(tmp_path: Path) -> None:
    path, target = tmp_path / "link.json", tmp_path / "target.json"
    path.symlink_to(target)
    write_json(path, {"a": 1})
    assert path.is_symlink()
    assert json.loads(target.read_text()) == {"a": 1}
