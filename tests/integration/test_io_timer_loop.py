"""Deadlines on a real clock and a real loop. Nothing here depends on how late they are."""

import asyncio

import pytest
from io_loopback import PATIENCE

from streamd.clock import MonotonicClock
from streamd.io.lag import LagMeter
from streamd.io.timer import DeadlineTimer

pytestmark = pytest.mark.asyncio


class Shots:
    """Collects the times a timer called back, and what the clock said then."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.clock = MonotonicClock()
        self.shots: list[tuple[float, float]] = []
        self._changed = asyncio.Event()
        self.timer = DeadlineTimer(self.loop, self.clock, self._fire)

    def _fire(self, now: float) -> None:
        self.shots.append((now, self.clock.now()))
        self._changed.set()

    async def shot(self) -> float:
        """Wait for the next shot; the `now` it came with."""
        count = len(self.shots)
        async with asyncio.timeout(PATIENCE):
            while len(self.shots) == count:
                self._changed.clear()
                await self._changed.wait()
        return self.shots[-1][0]


@pytest.mark.parametrize("ahead", [-1.0, 0.0, 1e-6, 15e-6, 100e-6, 0.5e-3, 3e-3, 30e-3])
async def test_a_deadline_fires_once_and_never_early(ahead: float) -> None:
    shots = Shots()
    deadline = shots.clock.now() + ahead
    shots.timer.arm(deadline)
    assert shots.shots == []
    now = await shots.shot()
    assert now >= deadline
    follow_up = shots.clock.now() + 1e-3
    shots.timer.arm(follow_up)
    assert await shots.shot() >= follow_up
    assert len(shots.shots) == 2
    shots.timer.close()


async def test_times_told_follow_the_clock() -> None:
    shots = Shots()
    for _ in range(50):
        shots.timer.arm(shots.clock.now() + 200e-6)
        await shots.shot()
    assert all(told <= seen for told, seen in shots.shots)
    shots.timer.close()


async def test_a_deadline_taken_back_stays_silent() -> None:
    shots = Shots()
    for _ in range(20):
        shots.timer.arm(shots.clock.now() + 300e-6)
        shots.timer.arm(None)
    last = shots.clock.now() + 2e-3
    shots.timer.arm(last)
    assert await shots.shot() >= last
    assert len(shots.shots) == 1
    shots.timer.close()


async def test_a_deadline_moved_later_fires_at_the_last_one_only() -> None:
    shots = Shots()
    start = shots.clock.now()
    for step in range(50):
        shots.timer.arm(start + 1e-3 + step * 100e-6)
    assert await shots.shot() >= start + 1e-3 + 49 * 100e-6
    assert len(shots.shots) == 1
    shots.timer.close()


async def test_after_a_shot_an_idle_timer_does_not_wake_the_loop() -> None:
    shots = Shots()
    shots.timer.arm(shots.clock.now() + 200e-6)
    await shots.shot()
    other = Shots()
    other.timer.arm(other.clock.now() + 5e-3)
    await other.shot()
    assert shots.timer.alarms <= 1
    shots.timer.close()
    other.timer.close()


async def test_past_deadlines_leave_the_loop_its_turn() -> None:
    loop, clock = asyncio.get_running_loop(), MonotonicClock()
    count = 0

    def on_deadline(now: float) -> None:
        nonlocal count
        count += 1
        timer.arm(now - 1.0)

    timer = DeadlineTimer(loop, clock, on_deadline)
    timer.arm(clock.now())
    for _ in range(50):
        before = count
        await asyncio.sleep(0)
        assert count - before <= 1
    assert count > 10
    timer.close()


async def test_closing_from_the_callback_is_safe() -> None:
    loop, clock = asyncio.get_running_loop(), MonotonicClock()
    done: asyncio.Future[float] = loop.create_future()

    def on_deadline(now: float) -> None:
        timer.close()
        done.set_result(now)

    timer = DeadlineTimer(loop, clock, on_deadline)
    timer.arm(clock.now() + 200e-6)
    await asyncio.wait_for(done, PATIENCE)


async def test_the_lag_meter_reads_what_the_loop_does() -> None:
    loop, clock = asyncio.get_running_loop(), MonotonicClock()
    three: asyncio.Future[None] = loop.create_future()
    readings: list[float] = []

    def on_lag(lag: float) -> None:
        readings.append(lag)
        if len(readings) == 3:
            three.set_result(None)

    meter = LagMeter(loop, clock, on_lag, interval=2e-3)
    await asyncio.wait_for(three, PATIENCE)
    meter.close()
    assert all(lag >= 0.0 for lag in readings)
    assert meter.worst == max(readings)
