"""From capture to picture, across machines: latency on one clock, and how far to trust it.

Capture times are of the sender's clock. Until it is known how far that is from ours
frames wait to be counted; if it stays unknown, because the sender does not answer, the
two wall clocks are taken to agree, and no bound is given.
"""

from collections import deque
from typing import NamedTuple

from streamd.qoe.causes import LATE
from streamd.session.clock_offset import ClockOffset, Mapping
from streamd.session.stats import ReceiverStats

PATIENCE = 3.0
"""How long a latency waits for the clocks to be compared (s)."""
MAX_WAITING = 1024
ROUNDING = 60e-6
"""On top of the clocks' bound (s): times on the wire are cut to ticks of 90 kHz, and deadlines
are met up to 20 us early, so that what either end calls now may be ahead of its clock."""


class _Waiting(NamedTuple):
    difference: float
    """Shown by our clock, minus captured by the sender's."""
    mended: bool
    at: float


class LatencyMeter:
    """Counts the latency of pictures shown."""

    def __init__(self, stats: ReceiverStats, clock: ClockOffset, *, unix_offset: float) -> None:
        """`unix_offset`: Unix time minus session time (s)."""
        self._stats = stats
        self._clock = clock
        self._unix_offset = unix_offset
        self._waiting: deque[_Waiting] = deque(maxlen=MAX_WAITING)

    def shown(self, captured: float, *, mended: bool, now: float) -> None:
        """A picture captured at Unix time `captured` of the sender was shown at `now`."""
        difference = now + self._unix_offset - captured
        self._waiting.append(_Waiting(difference, mended, now))
        self.settle(now)

    def settle(self, now: float, *, final: bool = False) -> None:
        """Count what waited, if the clocks have been compared or will not be.

        `final`: nothing more will be learned.
        """
        mapping, waiting, stats = self._clock.mapping(now), self._waiting, self._stats
        if mapping is not None:
            mapping = Mapping(mapping.offset, mapping.bound + ROUNDING)
        stats.clock_offset, stats.clock_bound = mapping or (None, None)
        while waiting and (mapping is not None or final or now - waiting[0].at >= PATIENCE):
            first = waiting.popleft()
            self._count(first.difference, first.mended, mapping)

    def _count(self, difference: float, mended: bool, mapping: Mapping | None) -> None:
        stats = self._stats
        offset, bound = mapping or (0.0, ROUNDING)
        latency = difference + offset
        if latency < -bound:
            stats.frames_negative_latency += 1
        if mapping is not None:
            stats.clock_error_bound = max(bound, stats.clock_error_bound or 0.0)
        latency = max(0.0, latency)
        stats.frame_latency.add(latency)
        stats.frame_latency_histogram.observe(latency)
        if latency > LATE:
            stats.frames_late["repair" if mended else "delay"] += 1
