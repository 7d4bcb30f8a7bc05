"""Traces: the rules of the format, the walk through them, repetition and jumps."""

import hashlib
from itertools import islice
from pathlib import Path

import pytest

from streamd.errors import ConfigError
from streamd.link.trace import MAX_MS, Trace


def test_a_line_is_an_opportunity_and_the_last_one_the_period() -> None:
    trace = Trace.parse(b"0\n5\n5\n12\n", name="t")
    assert list(trace.times_ms) == [0, 5, 5, 12]
    assert trace.period_ms == 12
    assert len(trace) == 4


def test_after_the_last_line_the_list_starts_again() -> None:
    trace = Trace([0, 5, 5, 12], name="t")
    times = list(islice(trace.opportunities(base=1.0), 9))
    assert times == [1.0, 1.005, 1.005, 1.012, 1.012, 1.017, 1.017, 1.024, 1.024]


def test_without_repetition_it_ends() -> None:
    assert list(Trace([1, 3], name="t").opportunities(repeat=False)) == [0.001, 0.003]


def test_one_line_of_1_is_an_opportunity_every_millisecond() -> None:
    trace = Trace([1], name="t")
    assert list(islice(trace.opportunities(), 3)) == [0.001, 0.002, 0.003]
    assert trace.mean_bps == 12_000_000


def test_a_second_without_lines_has_no_capacity() -> None:
    trace = Trace.parse(b"1\n999\n2000\n2000\n3500\n", name="t")
    assert trace.per_second_bps() == [24_000, 0, 24_000]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "t:1: a trace needs at least one delivery opportunity"),
        (b"\n", "t:1: empty line"),
        (b"1\n\n2\n", "t:2: empty line"),
        (b"1\n2\n \n", "t:3: empty line"),
        (b"1\n2\n\n", "t:3: empty line"),
        (b"5\n4\n", "t:2: 4 ms is before the 5 ms above"),
        (b"0\n0\n", "t:2: the last value is 0; a trace must span some time"),
        (b"1\n-2\n", "t:2: '-2' is not a whole number of milliseconds"),
        (b"1\n2.5\n", "t:2: '2.5' is not a whole number of milliseconds"),
        (b"1\nx\xff\n", "t:2: 'x\\xff' is not a whole number of milliseconds"),
        (b"1\n 2\n", "t:2: ' 2' is not a whole number of milliseconds"),
        (b"9999999999999\n", "t:1: 9999999999999 is not between 0 and 1000000000000 ms"),
        (b"1" * 5000 + b"\n", "t:1: '" + "1" * 40 + "' is not a whole number of milliseconds"),
    ],
)
def test_a_malformed_trace_names_file_and_line(data: bytes, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Trace.parse(data, name="t")
    assert str(caught.value) == message


def test_windows_line_ends_and_a_missing_last_one_are_accepted() -> None:
    assert list(Trace.parse(b"1\r\n2\r\n7", name="t").times_ms) == [1, 2, 7]


def test_a_file_that_cannot_be_read_is_a_configuration_error(tmp_path: Path) -> None:
    missing = tmp_path / "none.trace"
    with pytest.raises(ConfigError, match=r"cannot read trace .*none\.trace: No such file"):
        Trace.load(missing)


def test_what_is_written_reads_back_with_the_digest_of_the_file(tmp_path: Path) -> None:
    trace = Trace([0, 7, 7, 9], name="mine")
    path = tmp_path / "a.trace"
    trace.write(path)
    assert path.read_bytes() == b"0\n7\n7\n9\n"
    again = Trace.load(path)
    assert list(again.times_ms) == [0, 7, 7, 9]
    assert again.name == str(path)
    assert again.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_largest_value_is_accepted() -> None:
    assert Trace([MAX_MS], name="t").period_ms == MAX_MS


def test_four_subticks_spread_the_opportunities_of_a_millisecond() -> None:
    trace = Trace([0, 0, 3, 3, 3, 3, 3, 3], name="t")
    times = [round(at * 1e6) for at in trace.opportunities(subticks=4, repeat=False)]
    assert times == [0, 250, 2250, 2250, 2500, 2500, 2750, 3000]


def test_subticks_of_neighbouring_milliseconds_stay_in_order() -> None:
    trace = Trace([0, 0, 0, 0, 1, 1, 1, 1], name="t")
    times = [round(at * 1e6) for at in trace.opportunities(subticks=4, repeat=False)]
    assert times == [0, 250, 250, 500, 500, 750, 750, 1000]


def test_other_subticks_are_refused() -> None:
    with pytest.raises(ConfigError, match="subticks must be 1 or 4, got 2"):
        Trace([1], name="t").cursor(base=0.0, subticks=2)


def test_a_skip_lands_on_the_first_opportunity_after_the_time() -> None:
    cursor = Trace([0, 5, 5, 12], name="t").cursor(base=0.0)
    cursor.skip(0.005)
    assert cursor.next_at == 0.012
    cursor.skip(12.0)
    assert cursor.next_at == 12.005
    cursor.step()
    cursor.step()
    assert cursor.next_at == 12.012
    cursor.skip(3.0)
    assert cursor.next_at == 12.012


def test_a_skip_beyond_a_trace_that_is_not_repeated_ends_it() -> None:
    cursor = Trace([1, 2, 3, 4, 5, 6, 7], name="t").cursor(base=0.0, repeat=False)
    cursor.skip(99.0)
    assert cursor.next_at == float("inf")
    assert cursor.count(99.0) == 7


@pytest.mark.parametrize(
    ("now", "count"), [(-1.0, 0), (0.0, 1), (0.004, 1), (0.005, 3), (0.012, 5), (1.2, 401)]
)
def test_opportunities_up_to_and_including_a_time(now: float, count: int) -> None:
    assert Trace([0, 5, 5, 12], name="t").cursor(base=0.0).count(now) == count


def test_times_do_not_drift_over_a_million_periods() -> None:
    cursor = Trace([7], name="t").cursor(base=0.0)
    cursor.skip(7000.0)
    assert cursor.next_at == 7000.007


def test_a_jump_to_the_last_instant_before_an_opportunity_stays_before_it() -> None:
    just_before = 0.034999999999999996
    assert just_before * 1e6 == 35_000
    cursor = Trace([1, 2, 3, 4, 5, 35], name="t").cursor(base=0.0)
    cursor.skip(just_before)
    assert cursor.next_at == 0.035
    assert cursor.count(just_before) == 5
