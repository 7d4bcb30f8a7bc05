"""The socket benchmark runs and reports; what it reports is the machine's business."""

import json
from pathlib import Path

import pytest
from io_loopback import needs_linux

from streamd.bench import io as bench


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """As little work as gives every figure."""
    for name in ("_BURST", "_BURSTS", "_ROUNDS"):
        monkeypatch.setattr(bench, name, 2)
    for name in ("_TIMER_SHOTS", "_ARMINGS"):
        monkeypatch.setattr(bench, name, 10)


@needs_linux
@pytest.mark.usefixtures("brief")
def test_every_figure_is_there_and_in_the_table(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "io.json"
    monkeypatch.setattr("sys.argv", ["bench", "--json", str(path)])
    bench.main()
    result = json.loads(path.read_text())
    ways = ("send", "send_bare", "receive", "receive_alone", "receive_bare")
    sockets = {f"{way}_run{run}_s" for way in ways for run in (1, 4, 16)}
    timers = {"arm_same_s", "arm_earlier_s", "arm_later_s", "timer_wakeup_s", "timer_past_s"}
    late = {f"timer_late_{which}_s" for which in ("p50", "p99", "max")}
    assert set(result) == sockets | timers | late
    table = capsys.readouterr().out
    assert table.count("run of 16") == 3
    assert "timer_late_p99" in table
