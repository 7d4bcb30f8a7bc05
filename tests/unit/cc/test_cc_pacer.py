"""The pacer: quanta, exact mean rate, bounded catch-up, nothing earned by being idle."""

import pytest

from streamd.cc.pacer import Pacer


def drain(pacer: Pacer, interval: float, now: float, most: int = 1000) -> int:
    """Packets that leave at `now`."""
    count = 0
    while count < most and pacer.ready(now):
        pacer.on_sent(interval, now)
        count += 1
    return count


def test_a_wake_up_sends_one_quantum_ahead() -> None:
    pacer = Pacer(quantum=0.5, catch_up=1.0)
    pacer.resume(10.0)
    # due at 10, 10.125, 10.25, 10.375; the next at 10.5 is a quantum away
    assert drain(pacer, 0.125, 10.0) == 4
    assert pacer.next_time == 10.5
    assert drain(pacer, 0.125, 10.0) == 0
    assert drain(pacer, 0.125, 10.5) == 4


def test_packets_further_apart_than_a_quantum_leave_one_by_one() -> None:
    pacer = Pacer(quantum=0.5, catch_up=1.0)
    pacer.resume(10.0)
    assert drain(pacer, 2.0, 10.0) == 1
    assert not pacer.ready(11.5)
    assert pacer.ready(11.5625)
    assert drain(pacer, 2.0, 12.0) == 1
    assert pacer.next_time == 14.0


def test_quantum_zero_keeps_every_interval() -> None:
    pacer = Pacer(quantum=0.0, catch_up=1.0)
    pacer.resume(10.0)
    assert drain(pacer, 0.125, 10.0) == 1
    assert not pacer.ready(10.0625)
    assert drain(pacer, 0.125, 10.125) == 1


def test_a_late_timer_does_not_change_the_mean_rate() -> None:
    pacer = Pacer(quantum=0.5, catch_up=1.0)
    pacer.resume(0.0)
    sent = 0
    for wake in (0.0, 0.5, 1.25, 1.5, 2.0, 2.75, 3.0, 3.5):
        sent += drain(pacer, 0.125, wake)
    # everything due before 3.5 + 0.5
    assert sent == 32
    assert pacer.next_time == 4.0


def test_catching_up_is_bounded() -> None:
    pacer = Pacer(quantum=0.5, catch_up=1.0)
    pacer.resume(0.0)
    drain(pacer, 0.125, 0.0)
    # eight seconds late: one second of the past and half a second ahead, 12 packets and no more
    assert drain(pacer, 0.125, 8.5) == 12
    assert pacer.next_time == 9.0


def test_idle_time_earns_nothing() -> None:
    pacer = Pacer(quantum=0.5, catch_up=1.0)
    pacer.resume(0.0)
    drain(pacer, 0.125, 0.0)
    pacer.resume(100.0)
    assert drain(pacer, 0.125, 100.0) == 4


def test_resuming_does_not_forget_what_is_owed() -> None:
    pacer = Pacer(quantum=0.5, catch_up=1.0)
    pacer.resume(0.0)
    pacer.on_sent(3.0, 0.0)
    pacer.resume(1.0)
    assert pacer.next_time == 3.0
    assert not pacer.ready(2.5)


def test_the_controllers_own_time_is_waited_for_when_it_says_something_else() -> None:
    pacer = Pacer(quantum=0.5, catch_up=1.0)
    pacer.resume(10.0)
    # the same schedule, read without quantum and catch-up
    assert not pacer.hold(11.5, 10.0)
    assert pacer.next_time == 10.0
    assert pacer.hold(12.0, 10.0)
    assert pacer.next_time == 12.0
    assert not pacer.ready(11.5)
    assert pacer.ready(12.0)


@pytest.mark.parametrize("start", [0.0, 1e6, 1e7])
def test_the_defaults_hold_the_rate_at_any_clock_value(start: float) -> None:
    pacer = Pacer()
    pacer.resume(start)
    interval = 1212 * 8 / 75_000_000
    sent = sum(drain(pacer, interval, start + step * 0.0005) for step in range(2000))
    # one second at 75 Mbit/s, within a packet
    assert abs(sent - 1.0 / interval) <= 1.0
