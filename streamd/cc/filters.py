"""Small estimators that controllers and the session share."""

from collections.abc import Iterable


def total(values: Iterable[float]) -> float:
    """The sum, added from the first to the last.

    The built-in one compensates for rounding from Python 3.12 on; a controller must
    decide alike on every version.
    """
    result = 0.0
    for value in values:
        result += value
    return result


class WindowedMin:
    """Minimum over the last one to two periods, in constant space.

    Two slots: the present one and the one before; after a period the older is
    dropped. Clock drift between two hosts can so never pin an old minimum.
    """

    __slots__ = ("_current", "_period", "_previous", "_since")

    def __init__(self, period: float) -> None:
        """`period` in seconds."""
        self._period = period
        self._current: float | None = None
        self._previous: float | None = None
        self._since = 0.0

    def update(self, value: float, now: float) -> None:
        if self._current is None:
            self._current, self._since = value, now
        elif now - self._since >= self._period:
            stale = now - self._since >= 2 * self._period
            self._previous = None if stale else self._current
            self._current, self._since = value, now
        elif value < self._current:
            self._current = value

    @property
    def value(self) -> float | None:
        """None before the first update."""
        if self._previous is None or self._current is None:
            return self._current
        return min(self._previous, self._current)
