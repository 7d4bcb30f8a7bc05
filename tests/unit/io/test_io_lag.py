"""The lag meter, on a clock the test moves."""

from io_fakes import FakeLoop, ManualClock

from streamd.io.lag import LagMeter


class Bench:
    def __init__(self) -> None:
        self.loop = FakeLoop()
        self.clock = ManualClock(100.0)
        self.readings: list[float] = []
        self.meter = LagMeter(self.loop.as_loop(), self.clock, self.readings.append)

    def ring(self, at: float) -> None:
        self.clock.time = at
        self.loop.later[-1].callback()


def test_lag_is_how_late_the_loop_calls_back() -> None:
    bench = Bench()
    bench.ring(101.25)
    bench.ring(102.5)
    bench.ring(103.125)
    assert bench.readings == [0.25, 0.5, 0.125]
    assert bench.meter.last == 0.125


def test_the_grid_does_not_drift() -> None:
    bench = Bench()
    bench.ring(101.25)
    assert bench.loop.later[-1].delay == 0.75


def test_the_worst_reading_is_kept_until_taken() -> None:
    bench = Bench()
    bench.ring(101.5)
    bench.ring(102.25)
    assert bench.meter.take_worst() == 0.5
    assert bench.meter.take_worst() == 0.0


def test_a_stall_over_several_seconds_is_reported_once() -> None:
    bench = Bench()
    bench.ring(104.5)
    assert bench.readings == [3.5]
    assert bench.loop.later[-1].delay == 0.5


def test_a_closed_meter_is_silent() -> None:
    bench = Bench()
    bench.meter.close()
    assert bench.loop.later[-1].cancelled


def test_nobody_needs_to_listen() -> None:
    loop, clock = FakeLoop(), ManualClock(100.0)
    meter = LagMeter(loop.as_loop(), clock)
    clock.time = 101.5
    loop.later[-1].callback()
    assert meter.last == 0.5
