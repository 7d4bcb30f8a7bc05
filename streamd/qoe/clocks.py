"""Clocks of two machines: offset from two-way exchanges, skew from one-way delays.

Offset: t1 sent here, t2 received there, t3 sent there, t4 received here. With equal
delays both ways the other clock is ahead by ((t2 - t1) + (t3 - t4)) / 2; whatever the
delays, the error is at most half of the round trip. The exchange with the smallest round
trip of the last ten seconds is the one to believe.

Skew: delays only ever add to the smallest one, so the lower edge of the cloud of
one-way delays shows how the clocks drift. Source: specification of metrics, section
5.1; RFC 5905 section 8.
"""

from collections import deque
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

MEMORY: Final = 10.0
"""How long an exchange is believed (s)."""
MIN_DRIFT: Final = 0.0005
"""Drift over a run below which nothing is removed (s)."""

Point = tuple[float, float]
"""Time and one-way delay (s)."""


class Exchange(NamedTuple):
    """What one exchange tells (s)."""

    offset: float
    """The other clock minus ours."""
    rtt: float

    @property
    def bound(self) -> float:
        """The offset is wrong by no more than this."""
        return self.rtt / 2


def exchange(t1: float, t2: float, t3: float, t4: float) -> Exchange:
    """Of the four times (s); t1 and t4 of our clock, t2 and t3 of the other."""
    return Exchange(((t2 - t1) + (t3 - t4)) / 2, (t4 - t1) - (t3 - t2))


class OffsetEstimator:
    """Keeps the exchange with the smallest round trip of the last `MEMORY` seconds."""

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: deque[tuple[float, Exchange]] = deque()
        """Of growing round trip: whoever is older and longer is never needed."""

    def add(self, found: Exchange, now: float) -> None:
        """An exchange ended at `now` (s)."""
        while self._kept and self._kept[-1][1].rtt >= found.rtt:
            self._kept.pop()
        self._kept.append((now, found))

    def best(self, now: float) -> Exchange | None:
        """The one to believe; None before the first and after `MEMORY` without any."""
        while self._kept and now - self._kept[0][0] > MEMORY:
            self._kept.popleft()
        return self._kept[0][1] if self._kept else None


def lower_hull(points: Sequence[Point]) -> list[Point]:
    """The lower convex hull of points in order of time."""
    hull: list[Point] = []
    for point in points:
        while len(hull) > 1 and _turns_down(hull[-2], hull[-1], point):
            hull.pop()
        hull.append(point)
    return hull


def _turns_down(a: Point, b: Point, c: Point) -> bool:
    # points on one line, up to rounding, need not be corners
    return (b[0] - a[0]) * (c[1] - a[1]) <= (c[0] - a[0]) * (b[1] - a[1]) + 1e-12


def skew(points: Sequence[Point]) -> float:
    """Seconds per second by which delays drift: the hull's edge over the mean time; 0 of few."""
    hull = lower_hull(points)
    if len(hull) < 2:
        return 0.0
    middle = sum(time for time, _ in points) / len(points)
    for before, after in pairwise(hull):
        if before[0] <= middle <= after[0] and after[0] > before[0]:
            return (after[1] - before[1]) / (after[0] - before[0])
    return 0.0


def without_skew(points: Sequence[Point]) -> list[float]:
    """Delays above the smallest, with the drift removed if it matters over the run (s)."""
    if not points:
        return []
    slope, start = skew(points), points[0][0]
    if abs(slope) * (points[-1][0] - start) <= MIN_DRIFT:
        slope = 0.0
    level = [delay - slope * (time - start) for time, delay in points]
    least = min(level)
    return [delay - least for delay in level]
