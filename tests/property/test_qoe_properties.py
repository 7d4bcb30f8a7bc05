"""QoE accumulators against the plain definitions they stand for."""

from math import floor
from statistics import quantiles

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamd.qoe.frames import FrameLedger, FrameStatus
from streamd.qoe.freeze import FreezeDetector, FreezeMode
from streamd.qoe.percentile import percentile
from streamd.qoe.rates import TraceCapacity, WindowedRate
from streamd.qoe.samples import Samples

VALUES = st.floats(-1e9, 1e9)
gap_lists = st.lists(
    st.one_of(st.integers(0, 60), st.integers(90, 700), st.integers(4990, 7000)), max_size=80
)


@given(values=st.lists(VALUES, min_size=2, max_size=50))
def test_percentiles_agree_with_the_standard_library(values: list[float]) -> None:
    expected = quantiles(values, n=20, method="inclusive")
    actual = [percentile(values, 5 * step) for step in range(1, 20)]
    assert actual == pytest.approx(expected, rel=1e-9, abs=1e-6)


@given(values=st.lists(VALUES, min_size=1, max_size=300), half=st.integers(1, 20))
def test_samples_keep_evenly_spaced_values_and_exact_totals(values: list[float], half: int) -> None:
    samples = Samples(capacity=2 * half)
    for value in values:
        samples.add(value)
    assert samples.values() == values[:: samples.stride]
    assert len(samples) <= 2 * half
    assert samples.stride == 1 or len(samples) > half - 1
    assert samples.count == len(values)
    assert (samples.minimum, samples.maximum) == (min(values), max(values))
    assert samples.total == pytest.approx(sum(values), rel=1e-9, abs=1e-3)
    assert samples.percentile(50) == percentile(values[:: samples.stride], 50)


def _freezes(gaps: list[int], mode: FreezeMode) -> list[int]:
    """The gaps that are freezes, straight from the definition."""
    frozen = []
    for index, gap in enumerate(gaps):
        if mode == "webrtc":
            window = gaps[max(0, index - 29) : index + 1]
            average: float = floor(sum(window) / len(window))
            if len(window) >= 5 and gap >= max(3 * average, average + 150):
                frozen.append(gap)
        elif index:
            window = gaps[max(0, index - 30) : index]
            if gap * len(window) > max(3 * sum(window), sum(window) + 150 * len(window)):
                frozen.append(gap)
    return frozen


@pytest.mark.parametrize("mode", ["webrtc", "formula"])
@given(gaps=gap_lists, start=st.integers(0, 10**9))
def test_freezes_follow_the_definition(mode: FreezeMode, gaps: list[int], start: int) -> None:
    detector = FreezeDetector(mode)
    now = start
    detector.on_frame(now / 1000)
    for gap in gaps[:-1]:
        now += gap
        detector.on_frame(now / 1000)
    expected = _freezes(gaps[:-1], mode)
    assert detector.freeze_count == len(expected)
    assert detector.freeze_duration == sum(expected) / 1000
    assert detector.pause_count == sum(gap > 5000 for gap in gaps[:-1])
    if gaps:
        # The tail is judged as the next frame would be.
        tail = detector.tail((now + gaps[-1]) / 1000)
        assert detector.on_frame((now + gaps[-1]) / 1000) == bool(tail.freeze_count)
        assert tail.freeze_duration in (0.0, gaps[-1] / 1000)


@given(
    events=st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 5000)), max_size=60),
    length_ms=st.integers(1, 3000),
    start_ms=st.integers(0, 3000),
)
def test_windows_hold_every_byte_once(
    events: list[tuple[int, int]], length_ms: int, start_ms: int
) -> None:
    meter = WindowedRate(length_ms / 1000, start_ms / 1000, keep=20_000)
    for at_ms, size in events:
        meter.add(at_ms / 1000, size)
    series = meter.series(10.001)
    inside = [(at_ms, size) for at_ms, size in events if at_ms >= start_ms]
    assert sum(window.total_bytes for window in series) == sum(size for _, size in inside)
    assert meter.total_bytes == sum(size for _, size in inside)
    assert meter.outside == len(events) - len(inside)
    for index, window in enumerate(series):
        first = start_ms + index * length_ms
        expected = sum(size for at_ms, size in inside if first <= at_ms < first + length_ms)
        assert window.total_bytes == expected


@given(
    stamps=st.lists(st.integers(0, 40), min_size=1, max_size=20).map(sorted),
    last=st.integers(1, 50),
    start=st.integers(0, 200),
    span=st.integers(0, 200),
)
def test_opportunities_agree_with_writing_the_loops_out(
    stamps: list[int], last: int, start: int, span: int
) -> None:
    stamps = [*stamps, stamps[-1] + last]
    written_out = [
        loop * stamps[-1] + stamp for loop in range(500 // stamps[-1] + 1) for stamp in stamps
    ]
    expected = sum(start <= at < start + span for at in written_out)
    assert TraceCapacity(stamps).opportunities(start, start + span) == expected


@given(
    steps=st.lists(
        st.tuples(st.booleans(), st.integers(0, 30), st.sampled_from(FrameStatus)), max_size=80
    ),
    max_open=st.integers(1, 8),
)
def test_frame_counts_always_add_up(
    steps: list[tuple[bool, int, FrameStatus]], max_open: int
) -> None:
    ledger = FrameLedger(max_open)
    decided = captured = 0
    for capture, frame_id, status in steps:
        if capture:
            ledger.capture(captured, float(captured))
            captured += 1
        elif ledger.decide(frame_id, status) is not None:
            decided += 1
        counts = ledger.counts()
        assert sum(counts.values()) == ledger.captured == captured
        assert all(count >= 0 for count in counts.values())
    assert captured >= decided
