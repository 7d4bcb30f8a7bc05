"""`streamd sim`: what it prints, writes, and refuses."""

import json
from pathlib import Path

import pytest

from streamd.cli import main

SCENARIO = """name = "short"
duration = "1s"
paths.up = { capacity = "12Mbps", delay = "10ms" }
paths.down = { delay = "10ms" }
[[flows]]
name = "video"
up = "up"
down = "down"
ecn = "ect1"
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    file = tmp_path / "short.toml"
    file.write_text(SCENARIO)
    return file


def test_it_prints_a_table_and_writes_the_summary(
    scenario: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.json"
    assert main(["sim", str(scenario), "--seed", "3", "--json", str(out)]) == 0
    written = json.loads(out.read_text())
    assert written.keys() == {"scenario", "seed", "events_sha256", "flows", "paths"}
    assert (written["scenario"], written["seed"]) == ("short", 3)
    assert written["flows"]["video"]["frames_decoded_count"] == 30
    assert str(tmp_path) not in out.read_text()
    printed = capsys.readouterr().out
    assert "frames decoded" in printed
    assert written["events_sha256"] in printed


def test_the_same_seed_writes_the_same_file(scenario: Path, tmp_path: Path) -> None:
    texts = []
    for seed, name in (("5", "a"), ("5", "b"), ("6", "c")):
        out = tmp_path / name
        assert main(["sim", str(scenario), "--seed", seed, "--json", str(out)]) == 0
        texts.append(out.read_text())
    assert texts[0] == texts[1] != texts[2]


def test_an_unknown_key_ends_with_78(scenario: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario.write_text(SCENARIO.replace("ecn", "enc"))
    assert main(["sim", str(scenario)]) == 78
    assert (
        f"{scenario}:9: unknown key flows.video.enc; did you mean ecn?" in capsys.readouterr().err
    )


def test_a_missing_scenario_ends_with_78(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sim", str(tmp_path / "none.toml")]) == 78
    assert "none.toml: cannot be read: No such file" in capsys.readouterr().err


def test_a_result_that_cannot_be_written_is_told_before_the_run(
    scenario: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sim", str(scenario), "--json", str(tmp_path / "no" / "out.json")]) == 3
    assert "there is no folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('ecn = "ect1"', 'source = "none.mp4"', "9: flows.video.source: none.mp4 is no file"),
        ('ecn = "ect1"', "fps = nan", "9: flows.video.fps: Input should be a finite number"),
    ],
)
def test_what_cannot_be_simulated_is_one_line_and_78(
    old: str, new: str, message: str, scenario: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert old in SCENARIO
    scenario.write_text(SCENARIO.replace(old, new))
    assert main(["sim", str(scenario)]) == 78
    said = capsys.readouterr().err
    assert f"{scenario}:{message}" in said
    assert len(said.splitlines()) == 1


def test_a_negative_seed_is_refused(scenario: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", str(scenario), "--seed", "-1"]) == 2
    assert "--seed" in capsys.readouterr().err
