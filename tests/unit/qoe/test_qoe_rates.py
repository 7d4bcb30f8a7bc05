"""Windowed rates, trace capacity, encoder overshoot: the worked examples."""

import os
from pathlib import Path
from statistics import stdev

import pytest

from streamd.errors import LocalMisuse
from streamd.qoe.rates import (
    TargetIntegral,
    TraceCapacity,
    Window,
    WindowedRate,
    encoder_overshoot,
    frame_overshoot,
    rate_bps,
    utilisation,
)

ROOT = Path(__file__).resolve().parents[3]
VECTORS = Path(os.environ.get("STREAMD_VECTORS", ROOT.parent / "shared" / "reference"))
VERIZON = VECTORS.parent / "traces" / "Verizon-LTE-short.up"


def test_ten_packets_in_a_tenth_of_a_second() -> None:
    assert rate_bps(10 * 1240, 0.0, 0.1) == pytest.approx(992_000)
    meter = WindowedRate(0.1)
    for index in range(10):
        meter.add(index * 0.01, 1240)
    assert meter.series(0.1) == [Window(0.0, 0.1, 12400)]
    assert meter.series(0.1)[0].bps == pytest.approx(992_000)


def test_rate_of_an_empty_interval_is_not_available() -> None:
    assert rate_bps(0, 5.0, 5.0) is None


def test_windows_are_half_open_in_spite_of_floats() -> None:
    meter = WindowedRate(0.1)
    for index in range(10):
        meter.add(index * 0.1, 1)
    assert [window.total_bytes for window in meter.series(1.0)] == [1] * 10


def test_idle_windows_are_zero_and_the_last_is_cut_at_the_end() -> None:
    meter = WindowedRate(2.0)
    meter.add(1.0, 250)
    meter.add(6.5, 1000)
    series = meter.series(7.0)
    assert [window.length for window in series] == [2.0, 2.0, 2.0, 1.0]
    assert [window.bps for window in series] == [1000, 0, 0, 8000]


def test_windows_after_the_last_event_are_idle_too() -> None:
    meter = WindowedRate(1.0)
    meter.add(0.5, 100)
    assert [window.bps for window in meter.series(2.5)] == [800, 0, 0]


def test_warm_up_is_left_out() -> None:
    meter = WindowedRate(1.0, start=5.0)
    meter.add(4.999, 100)
    meter.add(5.0, 200)
    assert meter.series(6.0) == [Window(5.0, 1.0, 200)]
    assert (meter.outside, meter.total_bytes) == (1, 200)


def test_events_may_come_out_of_order() -> None:
    meter = WindowedRate(1.0)
    for at in (2.5, 0.5, 1.5):
        meter.add(at, 1)
    assert [window.total_bytes for window in meter.series(3.0)] == [1, 1, 1]


def test_only_the_last_windows_are_held() -> None:
    meter = WindowedRate(1.0, keep=3)
    for second in range(1000):
        meter.add(second + 0.5, second)
    assert meter.series(1000.0) == [Window(float(at), 1.0, at) for at in (997, 998, 999)]
    meter.add(2000.5, 7)
    assert [window.total_bytes for window in meter.series(2001.0)] == [0, 0, 7]
    meter.add(1000.5, 7)
    assert meter.outside == 1


@pytest.mark.parametrize(("length", "keep"), [(0.0, 1), (1e-10, 1), (-1.0, 1), (1.0, 0)])
def test_windows_need_a_length(length: float, keep: int) -> None:
    with pytest.raises(LocalMisuse):
        WindowedRate(length, keep=keep)


@pytest.mark.parametrize(
    ("start", "end", "count"),
    [
        (0, 3, 3),
        (3, 6, 6),
        (0, 6, 9),
        (0, 0, 0),
        (0, 1, 2),
        (1, 2, 1),
        (2, 3, 0),
        (3, 4, 5),
        (-5, 1, 2),
        (0, 3.5, 8),
        (3000, 3003, 6),
    ],
)
def test_opportunities_of_a_repeating_trace(start: float, end: float, count: int) -> None:
    assert TraceCapacity([0, 0, 1, 3, 3, 3]).opportunities(start, end) == count


@pytest.mark.parametrize("stamps", [[], [0], [0, 0]])
def test_a_trace_that_cannot_repeat_is_refused(stamps: list[int]) -> None:
    with pytest.raises(LocalMisuse):
        TraceCapacity(stamps)


@pytest.mark.skipif(not VERIZON.exists(), reason=f"no {VERIZON.name} beside the reference folder")
def test_published_figures_of_the_verizon_uplink_trace() -> None:
    stamps = [int(line) for line in VERIZON.read_text().split()]
    capacity = TraceCapacity(stamps)
    seconds = stamps[-1] // 1000
    rates = [
        capacity.opportunities(1000 * second, 1000 * second + 1000) * 0.012
        for second in range(seconds)
    ]
    assert seconds == 140
    assert min(rates) == 0.0
    assert max(rates) == pytest.approx(12.95, abs=0.005)
    assert sum(rates) / seconds == pytest.approx(5.946, abs=0.0005)
    assert stdev(rates) == pytest.approx(3.112, abs=0.0005)


def test_utilisation_is_of_totals_and_counts_the_overhead_on_both_sides() -> None:
    assert utilisation(4500, 6) == 0.5
    assert utilisation(3 * 1504, 3, 1504) == 1.0
    assert utilisation(0, 3) == 0.0
    assert utilisation(0, 0) is None
    assert utilisation(1500, 0) is None


def test_target_is_held_between_changes() -> None:
    target = TargetIntegral([(0.0, 1e6), (0.5, 2e6)])
    assert target.between(0.0, 1.0) == 1.5e6
    assert target.between(0.25, 0.75) == 0.75e6
    assert target.between(1.0, 3.0) == 4e6
    assert TargetIntegral([]).between(0.0, 1.0) == 0.0


def test_overshoot_of_one_window() -> None:
    changes = [(0.0, 1e6), (0.5, 2e6)]
    frames = [(0.1, 112_500), (0.999, 112_500), (1.0, 999_999)]
    assert encoder_overshoot(frames, changes, start=0.0, end=1.0) == [pytest.approx(1.2)]


def test_overshoot_without_a_target_is_not_available() -> None:
    frames = [(0.5, 1000), (1.5, 125_000), (2.5, 62_500)]
    overshoot = encoder_overshoot(frames, [(1.0, 1e6)], start=0.0, end=2.5)
    assert overshoot == [None, pytest.approx(1.0), pytest.approx(0.0)]


def test_overshoot_of_a_run_longer_than_the_windows_held_by_default() -> None:
    frames = [(second + 0.5, 125_000) for second in range(5000)]
    overshoot = encoder_overshoot(frames, [(0.0, 1e6)], start=0.0, end=5000.0)
    assert len(overshoot) == 5000
    assert overshoot == pytest.approx([1.0] * 5000)


def test_overshoot_of_one_frame() -> None:
    assert frame_overshoot(5000, 1e6, 30.0) == pytest.approx(1.2)
    assert frame_overshoot(5000, 0.0, 30.0) is None
