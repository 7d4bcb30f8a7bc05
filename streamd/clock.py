"""Where real time enters. The core never imports this: it is given `now`."""

import time
from typing import Protocol


class Clock(Protocol):
    """A source of time; daemons get a real one, tests a hand-driven one."""

    def now(self) -> float:
        """Seconds since an arbitrary epoch; never goes back."""

    def unix(self) -> float:
        """Seconds since 1970-01-01 UTC, for RTCP sender reports and log stamps."""


READINGS = 10
"""Of both clocks at the start: the quickest one counts, so that a program that was interrupted
between them, or reads them for the first time, is not off by some tenths of a millisecond."""


def _read_offset() -> tuple[float, float]:
    """How long reading both clocks took (s), and wall time minus monotonic time."""
    before, wall, after = time.monotonic(), time.time(), time.monotonic()
    return after - before, wall - (before + after) / 2


class MonotonicClock:
    """CLOCK_MONOTONIC, and wall time as one fixed offset from it.

    The offset is taken once: a wall clock stepped while streaming must not
    move RTCP timestamps against the media clock.
    """

    def __init__(self) -> None:
        self._unix_offset = min(_read_offset() for _ in range(READINGS))[1]

    now = staticmethod(time.monotonic)

    def unix(self) -> float:
        return time.monotonic() + self._unix_offset
