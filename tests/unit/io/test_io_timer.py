"""The deadline timer's decisions, on a clock the test moves; and its alarms."""

import ctypes
import os
import select

import pytest
from io_fakes import FakeHandle, FakeLoop, ManualClock

from streamd.clock import MonotonicClock
from streamd.io import timer as timer_module
from streamd.io import timerfd
from streamd.io.timer import DeadlineTimer


class Bench:
    def __init__(self) -> None:
        self.loop = FakeLoop()
        self.clock = ManualClock(100.0)
        self.fired: list[float] = []
        self.timer = DeadlineTimer(self.loop.as_loop(), self.clock, self.fired.append)

    @property
    def alarms(self) -> list[float]:
        """Delays asked of the loop and not taken back."""
        return [handle.delay for handle in self.loop.later if not handle.cancelled]

    def ring(self, at: float) -> None:
        """The latest alarm goes off at `at`."""
        handle: FakeHandle = self.loop.later[-1]
        assert not handle.cancelled
        self.clock.time = at
        handle.callback()


def test_a_foreign_clock_is_served_by_the_loop() -> None:
    bench = Bench()
    assert not bench.timer.exact
    bench.timer.arm(100.5)
    assert bench.alarms == [0.5]
    bench.ring(100.5)
    assert bench.fired == [100.5]


def test_the_callback_is_told_the_real_time_when_late() -> None:
    bench = Bench()
    bench.timer.arm(100.5)
    bench.ring(100.75)
    assert bench.fired == [100.75]


def test_an_alarm_a_hair_early_counts_as_the_deadline() -> None:
    bench = Bench()
    bench.timer.arm(100.5)
    bench.ring(100.499999)
    assert bench.fired == [100.5]


def test_an_alarm_well_early_is_set_again() -> None:
    bench = Bench()
    bench.timer.arm(100.5)
    bench.ring(100.25)
    assert bench.fired == []
    assert bench.loop.later[-1].delay == 0.25


def test_the_same_deadline_again_costs_nothing() -> None:
    bench = Bench()
    for _ in range(100):
        bench.timer.arm(100.5)
    assert len(bench.loop.later) == 1


def test_an_earlier_deadline_moves_the_alarm() -> None:
    bench = Bench()
    bench.timer.arm(100.5)
    bench.timer.arm(100.25)
    assert bench.alarms == [0.25]


def test_a_deadline_that_keeps_moving_later_is_followed_lazily() -> None:
    bench = Bench()
    for step in range(100):
        bench.timer.arm(101.0 + step)
    assert len(bench.loop.later) == 5
    assert bench.alarms == [5.0]
    bench.ring(105.0)
    assert bench.fired == []
    assert bench.loop.later[-1].delay == 95.0
    bench.ring(200.0)
    assert bench.fired == [200.0]
    assert bench.timer.alarms == 2


def test_a_deadline_taken_back_does_not_fire() -> None:
    bench = Bench()
    bench.timer.arm(100.5)
    bench.timer.arm(None)
    assert bench.alarms == []


def test_a_deadline_often_taken_back_is_left_to_ring_once() -> None:
    bench = Bench()
    for _ in range(10):
        bench.timer.arm(100.5)
        bench.timer.arm(None)
    assert len(bench.alarms) == 1
    bench.ring(100.5)
    assert bench.fired == []
    bench.timer.arm(101.0)
    assert bench.loop.later[-1].delay == 0.5


@pytest.mark.parametrize("deadline", [100.0, 99.0, -5.0, 100.00001])
def test_a_past_or_imminent_deadline_waits_for_the_next_turn(deadline: float) -> None:
    bench = Bench()
    bench.timer.arm(deadline)
    assert bench.fired == []
    assert bench.loop.later == []
    bench.clock.time = 100.00002
    bench.loop.turn()
    assert bench.fired == [100.00002]
    assert bench.loop.soon == []


def test_an_imminent_deadline_is_not_met_early() -> None:
    bench = Bench()
    bench.timer.arm(100.00001)
    bench.loop.turn()
    assert bench.fired == []
    bench.clock.time = 100.00001
    bench.loop.turn()
    assert bench.fired == [100.00001]


def test_a_past_deadline_may_still_be_moved() -> None:
    bench = Bench()
    bench.timer.arm(99.0)
    bench.timer.arm(101.0)
    bench.loop.turn()
    assert bench.fired == []
    bench.ring(101.0)
    assert bench.fired == [101.0]


def test_rearming_in_the_past_from_the_callback_never_recurses() -> None:
    loop, clock = FakeLoop(), ManualClock(100.0)
    depth: list[int] = []

    def on_deadline(now: float) -> None:
        depth.append(1)
        timer.arm(now)
        assert len(depth) == turns

    timer = DeadlineTimer(loop.as_loop(), clock, on_deadline)
    timer.arm(100.0)
    for turns in range(1, 6):
        loop.turn()
        assert len(depth) == turns
    assert len(loop.soon) == 1


def test_a_closed_timer_is_silent_whatever_is_asked_of_it() -> None:
    bench = Bench()
    bench.timer.arm(100.5)
    handle = bench.loop.later[-1]
    bench.timer.arm(99.0)
    bench.timer.close()
    bench.timer.close()
    bench.timer.arm(100.75)
    bench.timer.arm(None)
    bench.clock.time = 101.0
    bench.loop.turn()
    handle.callback()
    assert bench.fired == []
    assert bench.alarms == []


def test_the_loops_alarm_is_never_shorter_than_what_uvloop_waits_for() -> None:
    bench = Bench()
    bench.timer.arm(100.0001)
    assert bench.alarms == [0.00051]


def test_without_timerfd_the_loop_serves_the_real_clock_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def none_here() -> timerfd.TimerFd:
        raise OSError("no timerfd")

    monkeypatch.setattr(timer_module, "open_timerfd", none_here)
    loop = FakeLoop()
    timer = DeadlineTimer(loop.as_loop(), MonotonicClock(), lambda now: None)
    assert not timer.exact
    timer.close()


# ---- timerfd


def readable(fd: int, timeout_ms: int) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(timeout_ms))


@pytest.fixture
def no_os_timerfd(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Python before 3.13."""
    monkeypatch.delattr(os, "timerfd_create", raising=False)


linux_timerfd = pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "timerfd_create"), reason="this system has no timerfd"
)


@linux_timerfd
@pytest.mark.usefixtures("no_os_timerfd")
def test_ctypes_timerfd_goes_off_at_the_deadline() -> None:
    alarm = timerfd.open_timerfd()
    clock = MonotonicClock()
    deadline = clock.now() + 0.002
    alarm.set(deadline)
    assert readable(alarm.fd, 10_000)
    assert clock.now() >= deadline
    alarm.close()
    alarm.close()


@linux_timerfd
@pytest.mark.usefixtures("no_os_timerfd")
def test_ctypes_timerfd_can_be_cleared_and_set_anew() -> None:
    alarm = timerfd.open_timerfd()
    now = MonotonicClock().now()
    alarm.set(now - 1.0)
    assert readable(alarm.fd, 10_000)
    alarm.set(now + 3600.0)
    assert not readable(alarm.fd, 0)
    alarm.set(now - 1.0)
    assert readable(alarm.fd, 10_000)
    alarm.clear()
    assert not readable(alarm.fd, 0)
    alarm.close()


@linux_timerfd
@pytest.mark.usefixtures("no_os_timerfd")
def test_a_time_the_kernel_refuses_is_an_error() -> None:
    alarm = timerfd.open_timerfd()
    with pytest.raises(OSError, match="timerfd_settime refused"):
        alarm.set(-5.0)
    alarm.close()


def test_from_python_3_13_the_os_module_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[int, int, int]] = []
    ends = os.pipe()

    def create(clock: int, /, *, flags: int) -> int:
        assert (clock, flags) == (1, os.O_NONBLOCK | os.O_CLOEXEC)
        return ends[0]

    def settime_ns(fd: int, /, *, flags: int = 0, initial: int = 0, interval: int = 0) -> None:
        assert interval == 0
        calls.append((fd, flags, initial))

    monkeypatch.setattr(os, "timerfd_create", create, raising=False)
    monkeypatch.setattr(os, "timerfd_settime_ns", settime_ns, raising=False)
    alarm = timerfd.open_timerfd()
    alarm.set(12.5)
    alarm.clear()
    assert calls == [(ends[0], 1, 12_500_000_000), (ends[0], 1, 0)]
    alarm.close()
    alarm.close()
    os.close(ends[1])
