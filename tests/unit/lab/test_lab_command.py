"""`streamd lab`: what it says and how it ends."""

import json
from pathlib import Path

import pytest
from lab_fakes import EXPERIMENT, run_fake, run_or_raise

from streamd.cli import main
from streamd.errors import StartupError
from streamd.lab import command, extra, identity, runner
from streamd.lab.execute import Execute
from streamd.lab.grid import Grid
from streamd.lab.pool import Backend
from streamd.lab.store import Store


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The small experiment as a file; its runs are made up."""
    _runs_are(run_fake, monkeypatch)
    path = tmp_path / "small.toml"
    path.write_text(EXPERIMENT, encoding="utf-8")
    return path


def _runs_are(execute: Execute, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "execute", execute)
    monkeypatch.setattr(command, "check", lambda kind, config: None)


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 8
    assert lines[1] == ("fig2-medium-motion     Figure 2: Classic against L4S, medium-motion video")


def test_list_shows_what_an_experiment_varies(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lab", "list", str(file)]) == 0
    assert capsys.readouterr().out == (
        "Classic <against> L4S\n"
        "runs of each cell: 3\n"
        "arm: right, weak (default weak)\n"
        "mode: classic, l4s\n"
    )
    assert main(["lab", "list", "fig9"]) == 78
    assert "no file is named 'fig9'" in capsys.readouterr().err


def test_run_and_report(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, first, second = tmp_path / "out", tmp_path / "1.json", tmp_path / "2.json"
    words = ["lab", "run", str(file), "--out", str(out), "--jobs", "1"]
    assert main([*words, "--json", str(first)]) == 0
    said = capsys.readouterr()
    assert "small: 6 runs done, 0 there before" in said.out
    assert "1/6 weak classic seed 1: " in said.err
    assert main(["lab", "report", str(out), "--json", str(second)]) == 0
    assert capsys.readouterr().out == f"{out / 'report.html'}\n"
    assert (out / "report.html").is_file()
    found, again = (json.loads(path.read_text(encoding="utf-8")) for path in (first, second))
    assert found.pop("wall")["folder"] == str(out)
    again.pop("wall")
    assert found == again
    assert str(tmp_path) not in json.dumps(found)
    assert found["code"] == identity.code_digest()


def test_a_crashed_run_shows_in_text_and_exit_code(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _runs_are(run_or_raise, monkeypatch)
    assert main(["lab", "run", str(file), "--out", str(tmp_path / "out"), "--jobs", "2"]) == 1
    said = capsys.readouterr().out
    assert "small: 5 runs done, 0 there before" in said
    assert "failed: weak l4s seed 2: ValueError: no such thing as seed 2" in said


def test_arms_and_levels_are_chosen(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["lab", "run", str(file), "--out", str(tmp_path / "out"), "--jobs", "1"]
    assert main([*words, "--arms", "all", "--select", "mode=l4s", "--runs", "1"]) == 0
    assert "small: 2 runs done" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nothing"], "no experiment and no file is named 'nothing'"),
        (["FILE", "--arms", "left"], "arm has no level left"),
        (["FILE", "--select", "mode"], "--select mode: PARAMETER=LEVEL,... is needed"),
        (["FILE", "--trace", "gone.up"], "small has no link to put the trace gone.up on"),
        (["fig2-medium-motion", "--trace", "gone.up"], "cannot read trace gone.up: No such file"),
    ],
)
def test_bad_choices_are_one_line(
    file: Path, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lab", "run", *(str(file) if word == "FILE" else word for word in words)]) == 78
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("streamd lab: ")
    assert message in line


def test_a_folder_of_results_must_not_be_a_file(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for out in (file, file / "inside"):
        assert main(["lab", "run", str(file), "--out", str(out)]) == 78
        said = capsys.readouterr().err
        assert said == f"streamd lab: --out {out}: {file} is a file, not a folder\n"
    assert main(["lab", "report", str(file)]) == 78
    assert "no results here" in capsys.readouterr().err


def test_ctrl_c_says_what_is_kept(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run_two(grid: Grid, store: Store, backend: Backend, watcher: runner.Watcher) -> None:
        finished = runner_run(grid, store, backend, watcher)
        assert finished.done == 2
        raise KeyboardInterrupt

    runner_run = runner.run
    monkeypatch.setattr(runner, "run", run_two)
    words = ["lab", "run", str(file), "--out", str(tmp_path / "out"), "--jobs", "1", "--runs", "1"]
    assert main(words) == 130
    said = capsys.readouterr().err
    assert said.endswith(
        "interrupted; 2 finished runs are kept, the same command does the others\n"
    )


def test_runs_that_are_not_of_this_grid_are_told(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["lab", "run", str(file), "--out", str(tmp_path / "out"), "--jobs", "1", "--runs"]
    assert main([*words, "2"]) == 0
    assert "are left as they are" not in capsys.readouterr().out
    assert main([*words, "1"]) == 0
    said = capsys.readouterr().out
    assert "small: 0 runs done, 2 there before\n" in said
    assert "\n2 runs of other seeds, levels or code are left as they are\n" in said


def test_a_report_of_no_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "report", str(tmp_path)]) == 78
    assert "no results here" in capsys.readouterr().err


def test_a_missing_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        StartupError, match=r"the lab needs no_such_module.*pip install 'streamd\[lab\]'"
    ):
        extra.need("no_such_module.part")
