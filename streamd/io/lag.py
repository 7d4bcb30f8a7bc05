"""How late the event loop runs its callbacks, measured once a second.

A loop that is busy or blocked serves its deadlines late, and everything else
with them; this is the one number that shows it.
"""

import asyncio
from collections.abc import Callable

from streamd.clock import Clock
from streamd.io.timer import DeadlineTimer

OnLag = Callable[[float], None]


class LagMeter:
    """Calls `on_lag(seconds)` about once per `interval` until closed.

    Deadlines are a fixed grid: after a stall that covers several of them the
    stall is reported once and the missed ones are skipped.
    """

    __slots__ = ("_clock_now", "_due", "_interval", "_on_lag", "_timer", "last", "worst")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        on_lag: OnLag | None = None,
        *,
        interval: float = 1.0,
    ) -> None:
        self._clock_now = clock.now
        self._on_lag = on_lag
        self._interval = interval
        self._timer = DeadlineTimer(loop, clock, self._tick)
        self.last = 0.0
        """The latest reading (s)."""
        self.worst = 0.0
        """The largest reading since `take_worst` (s)."""
        self._due = clock.now() + interval
        self._timer.arm(self._due)

    def take_worst(self) -> float:
        """The largest reading since the last call (s), and start over."""
        worst, self.worst = self.worst, 0.0
        return worst

    def close(self) -> None:
        """Measure no more."""
        self._timer.close()

    def _tick(self, now: float) -> None:
        self.last = now - self._due
        self.worst = max(self.worst, self.last)
        if self._on_lag is not None:
            self._on_lag(self.last)
        missed = int(self.last / self._interval)
        self._due += self._interval * (missed + 1)
        self._timer.arm(self._due)
