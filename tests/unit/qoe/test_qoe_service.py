"""Section 6 of the specification of metrics, with its numbers."""

import pytest

from streamd.qoe.service import CallQuality, call_quality, completion_rate, completions, playback

TARGET = 5_000_000


def call(size: int, rtt: float | None, intervals: int = 1) -> CallQuality:
    """The same bytes and round trip in each interval."""
    arrivals = [(100_000 * n + 50_000, size) for n in range(intervals)]
    rtts = [] if rtt is None else [(100_000 * n + 60_000, rtt) for n in range(intervals)]
    return call_quality(arrivals, rtts, begin_us=0, end_us=100_000 * intervals, target_bps=TARGET)


@pytest.mark.parametrize(
    ("size", "rtt", "bad"),
    [(56_250, 0.02, 0), (56_249, 0.02, 1), (60_000, 0.151, 1), (60_000, 0.150, 0), (0, 0.02, 1)],
)
def test_the_limits_of_a_bad_interval(size: int, rtt: float, bad: int) -> None:
    assert call(size, rtt).bad == bad


def test_an_interval_without_a_round_trip_takes_the_last_one_for_a_second() -> None:
    arrivals = [(100_000 * n, 62_500) for n in range(20)]
    found = call_quality(
        arrivals, [(50_000, 0.02)], begin_us=0, end_us=2_000_000, target_bps=TARGET
    )
    # the sample of 0.05 s is less than a second old until the interval that ends at 1.0 s
    assert found == CallQuality(20, 10, 10)
    assert call(62_500, None).bad == 1


def test_a_call_shorter_than_an_interval_has_no_share() -> None:
    found = call_quality([], [], begin_us=0, end_us=99_999, target_bps=TARGET)
    assert found.bad_ratio is None


def test_the_longest_bad_run() -> None:
    sizes = [1, 62_500, 1, 1, 62_500]
    arrivals = [(100_000 * n, size) for n, size in enumerate(sizes)]
    rtts = [(100_000 * n, 0.02) for n in range(5)]
    found = call_quality(arrivals, rtts, begin_us=0, end_us=500_000, target_bps=TARGET)
    assert found == CallQuality(5, 3, 2)
    assert found.bad_ratio == 0.6


def test_the_worked_playback() -> None:
    there = [1.0, 2.5, 4.0, 9.0, 10.0]
    without = playback(there, 2.0, start_delay=0.0)
    assert (without.start, without.rebuffer_seconds, without.events) == (2.5, 0.5, 1)
    assert without.end == 13.0
    assert without.event_ratio(5) == 0.2
    delayed = playback(there, 2.0)
    assert (delayed.start, delayed.rebuffer_seconds, delayed.end) == (5.0, 0.0, 15.0)


def test_a_stream_that_never_started_and_one_that_broke_off() -> None:
    assert playback([1.0], 2.0, chunks=5, end=60.0) == (None, None, None, None, True)
    assert playback([1.0], 2.0, chunks=5, end=60.0).event_ratio(5) is None
    broken = playback([1.0, 2.0], 2.0, chunks=5, start_delay=0.0, end=10.0)
    assert broken.unfinished
    assert broken.rebuffer_seconds == 4.0
    assert broken.events == 1


def test_the_worked_transfer() -> None:
    rate = completion_rate(10 * 1024 * 1024, 5.8)
    assert rate is not None
    assert rate / 1e6 == pytest.approx(14.46, abs=0.005)


def test_unfinished_transfers_are_counted_apart() -> None:
    found = completions([(0.0, 2.0), (1.0, 5.0), (4.0, None)], end=10.0)
    assert found == (3.0, 1, 4.0)
    assert completions([], end=1.0) == (None, 0, None)
