"""The receiver's clock: wraps, reordered and delayed reports, restarts."""

import pytest

from streamd.session.receiver_clock import ReceiverClock


def ticks(seconds: float) -> int:
    return int(seconds * 65536) & 0xFFFFFFFF


@pytest.mark.parametrize("start", [0.0, 1234.5, 65_535.5, 65_535.9375, 1_000_000.25])
def test_the_wrap_after_18_hours_is_not_seen(start: float) -> None:
    clock = ReceiverClock()
    first = clock.unwrap(ticks(start), 7.0)
    assert first == start % 65536
    for step in range(1, 20):
        assert clock.unwrap(ticks(start + step / 8), 7.0 + step / 8) == first + step / 8
    assert clock.jumps == 0


def test_hours_of_silence_are_bridged_by_our_own_clock() -> None:
    clock = ReceiverClock()
    clock.unwrap(ticks(100.0), 5.0)
    for hours in (10.0, 30.0, 90.0):
        now = 5.0 + hours * 3600
        assert clock.unwrap(ticks(100.0 + hours * 3600 + 0.5), now) == 100.0 + hours * 3600 + 0.5
    assert clock.jumps == 0


def test_a_reordered_report_goes_back_and_the_next_goes_on() -> None:
    clock = ReceiverClock()
    clock.unwrap(ticks(50.0), 1.0)
    clock.unwrap(ticks(50.5), 1.5)
    assert clock.unwrap(ticks(50.25), 1.5) == 50.25
    assert clock.unwrap(ticks(50.75), 1.75) == 50.75
    assert clock.jumps == 0


def test_a_drifting_clock_is_followed() -> None:
    clock = ReceiverClock()
    for step in range(0, 40_000, 10):
        # 1000 ppm, for eleven hours
        assert clock.unwrap(ticks(step * 1.001), float(step)) == pytest.approx(
            step * 1.001, abs=2e-5
        )
    assert clock.jumps == 0


def test_reports_that_waited_for_ten_seconds_are_late_not_of_another_clock() -> None:
    clock = ReceiverClock()
    clock.unwrap(ticks(200.0), 1.0)
    # everything of the next ten seconds arrives at once, as after a stop of this process
    for step in range(1, 101):
        assert clock.unwrap(ticks(200.0 + step / 10), 11.125) == pytest.approx(
            200.0 + step / 10, abs=2e-5
        )
    assert clock.unwrap(ticks(210.125), 11.125) == 210.125
    assert clock.unwrap(ticks(211.125), 12.125) == 211.125
    assert clock.jumps == 0


def test_a_first_report_that_was_late_itself() -> None:
    clock = ReceiverClock()
    clock.unwrap(ticks(200.0), 5.0)
    assert clock.unwrap(ticks(204.0), 5.5) == 204.0
    assert clock.unwrap(ticks(204.5), 6.0) == 204.5
    assert clock.jumps == 0


@pytest.mark.parametrize("new_clock", [0.0, 3.0, 40_000.0, 65_535.0])
def test_a_restarted_receiver_is_laid_over_the_old_clock(new_clock: float) -> None:
    clock = ReceiverClock()
    for step in range(9):
        clock.unwrap(ticks(1000.0 + step), 20.0 + step)
    # one second of silence, then another clock
    assert clock.unwrap(ticks(new_clock), 29.0) == 1009.0
    assert clock.unwrap(ticks(new_clock + 0.5), 29.5) == 1009.5
    assert clock.unwrap(ticks(new_clock + 2.5), 31.5) == 1011.5
    assert clock.jumps == 1


def test_a_restart_is_laid_at_the_least_lag_not_at_that_of_a_late_report() -> None:
    clock = ReceiverClock()
    clock.unwrap(ticks(1000.0), 20.0)
    clock.unwrap(ticks(1001.0), 21.0)
    clock.unwrap(ticks(1002.0), 30.0)
    assert clock.unwrap(ticks(50_000.0), 31.0) == 1011.0


def test_one_mad_timestamp_does_not_stay() -> None:
    clock = ReceiverClock()
    clock.unwrap(ticks(1000.0), 20.0)
    clock.unwrap(ticks(31_000.0), 21.0)
    assert clock.unwrap(ticks(1002.0), 22.0) == 1002.0
    assert clock.unwrap(ticks(1003.0), 23.0) == 1003.0
    assert clock.jumps == 2
