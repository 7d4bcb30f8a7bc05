"""The queue delay the SCReAM BW tool reports: an average, printed now and then.

At every rate tick the tool moves an average towards the present estimate and
prints it every two seconds in whole milliseconds; published percentiles are of
those printed values. It is neither true sojourn nor the controller's estimate and
is never mixed with them.
"""

from streamd.qoe.samples import Samples

WEIGHT = 0.98
"""Of the past in the average, per tick."""
PRINT_EVERY = 2.0
TICK = 0.1
"""Between ticks (s) in the version of 2026-07."""
TICK_2026_03 = 0.05


class ToolQueueDelay:
    """Fed with estimates as they come; advances by whole ticks."""

    def __init__(self, *, tick: float, start: float) -> None:
        """`tick` and `start` in seconds."""
        self._tick = tick
        self._start = start
        self._per_print = round(PRINT_EVERY / tick)
        self._ticks = 0
        self._next_at = start + tick
        self._value: float | None = None
        self._average: float | None = None
        self.samples = Samples()
        """The printed values (s)."""

    def on_estimate(self, delay: float, now: float) -> None:
        """The estimate (s) changed at `now`."""
        self.advance(now)
        self._value = delay

    def advance(self, now: float) -> None:
        """Every tick before `now` (s) has passed."""
        while self._next_at < now:
            self._ticks += 1
            self._next_at = self._start + (self._ticks + 1) * self._tick
            self._on_tick()

    def _on_tick(self) -> None:
        if self._value is None:
            return
        if self._average is None:
            self._average = self._value
        else:
            self._average = WEIGHT * self._average + (1 - WEIGHT) * self._value
        if self._ticks % self._per_print == 0:
            self.samples.add(round(1000 * self._average) / 1000)
