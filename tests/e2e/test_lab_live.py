"""The lab with real processes: the same experiment file, live and simulated."""

import json
from pathlib import Path
from statistics import median

import polars
import pytest

from streamd.cli import main

EXPERIMENT = """\
name = "short"
title = "Two seconds"
runs = 1
metrics = ["tx_bps", "frames_decoded_count"]

[scenario]
name = "short"
duration = "2s"

[scenario.paths.up]
capacity = "12Mbps"
delay = "5ms"

[scenario.paths.down]
delay = "5ms"

[[scenario.flows]]
name = "video"
up = "up"
down = "down"
ecn = "ect1"
source = "synthetic"
fps = 50
rate = "1Mbps"
"""


def _run(file: Path, out: Path, *words: str) -> dict[str, object]:
    summary = out.with_suffix(".json")
    assert main(["lab", "run", str(file), "--out", str(out), "--json", str(summary), *words]) == 0
    (cell,) = json.loads(summary.read_text(encoding="utf-8"))["cells"]
    values: dict[str, object] = cell["levels"][""]
    return values


def test_the_same_experiment_live_and_simulated(tmp_path: Path) -> None:
    file = tmp_path / "short.toml"
    file.write_text(EXPERIMENT, encoding="utf-8")
    simulated = _run(file, tmp_path / "simulated")
    live = _run(file, tmp_path / "live", "--live")
    for values in (simulated, live):
        frames = values["frames_decoded_count"]
        assert isinstance(frames, dict)
        assert frames["runs"] == 1
        # Two seconds at 50 frames per second.
        assert 98 <= frames["median"] <= 101
    summaries = [json.loads(path.read_text()) for path in tmp_path.glob("*/runs/*/summary.json")]
    keys = [summary["flows"]["video"].keys() for summary in summaries]
    assert len(keys) == 2
    assert keys[0] == keys[1]
    for path in ("up", "down"):
        assert summaries[0]["paths"][path].keys() == summaries[1]["paths"][path].keys()
    (series,) = tmp_path.glob("live/runs/*/series.parquet")
    rates = polars.read_parquet(series).drop_nans()["rx_bps"].to_list()
    assert 10 <= len(rates) <= 25
    assert 900_000 < median(rates) < 1_300_000
    (packets,) = tmp_path.glob("live/runs/*/packets.parquet")
    rows = polars.read_parquet(packets)
    (summary,) = (found for found in summaries if "events_sha256" not in found)
    sent = summary["flows"]["video"]["packets_count"]
    assert rows["media"].sum() == sent
    assert rows["path"].unique().to_list() == [0]
    simulated_packets = next(tmp_path.glob("simulated/runs/*/packets.parquet"))
    assert set(rows.columns) < set(polars.read_parquet(simulated_packets).columns)
    runs = [json.loads(path.read_text(encoding="utf-8")) for path in tmp_path.glob("*.json")]
    assert sorted(run["live"] for found in runs for run in found["runs"]) == [False, True]


def test_what_cannot_run_live_is_said_before_anything_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "short.toml"
    file.write_text(EXPERIMENT.replace('delay = "5ms"', 'delay = "6ms"', 1), encoding="utf-8")
    assert main(["lab", "run", str(file), "--live"]) == 78
    assert "cannot be run live: the directions have different delays" in capsys.readouterr().err
    assert main(["lab", "run", "table2-ti", "--live"]) == 78
    assert "an experiment of kind clips has nothing to run live" in capsys.readouterr().err
