"""The receiver's 32-bit report clock as seconds that grow with ours.

Theory of operation. The clock counts 1/65536 s and wraps after 18.2 h. A report
is unwrapped to the value nearest to what our own clock says must have gone by,
so silence may last as long as it likes.

A report takes its time, and may have waited for long: behind a full queue, in
an outage, or in our own socket buffer while this process was stopped. So its
*lag*, our time minus its time, may exceed the least one seen lately by up to
`MAX_LAG`; this changes no mapping. A report a little older than the newest is a
reordered one.

What fits neither is another clock: the receiver was restarted. The new clock
is laid over the old one so that its first report has the least lag known.
One-way delays stay comparable that way, and no base delay is spoiled.
"""

from streamd.cc.filters import WindowedMin

MAX_LAG = 60.0
"""A report may be this much later than the quickest one (s)."""
MAX_LEAD = 5.0
"""... or this much quicker: the first ones may all have been late (s)."""
MAX_BACK = 5.0
"""A report this much older than the newest was overtaken by it (s)."""
LAG_PERIOD = 60.0
"""The least lag is forgotten after one to two of these (s): clocks drift."""
_TICKS = 65536.0


class ReceiverClock:
    """Unwraps the timestamps of one receiver's reports."""

    __slots__ = ("_before", "_heard_at", "_least_lag", "_ticks", "_time", "jumps")

    def __init__(self) -> None:
        self.jumps = 0
        """Times another clock was found."""
        self._ticks: int | None = None
        self._time = 0.0
        self._heard_at = 0.0
        self._least_lag = WindowedMin(LAG_PERIOD)
        self._before: tuple[int | None, float, float] = (None, 0.0, 0.0)

    def unwrap(self, ticks: int, now: float) -> float:
        """The report timestamp in seconds, unwrapped; a reordered report goes back a little."""
        if self._ticks is None:
            return self._set(ticks, ticks / _TICKS, now)
        expected = int((now - self._heard_at) * _TICKS)
        drift = (ticks - self._ticks - expected + 0x80000000 & 0xFFFFFFFF) - 0x80000000
        step = (expected + drift) / _TICKS
        time = self._time + step
        if step < 0:
            if step >= -MAX_BACK:
                return time
        elif -MAX_LEAD <= now - time - (self._least_lag.value or 0.0) <= MAX_LAG:
            return self._set(ticks, time, now)
        self.jumps += 1
        self._before = (self._ticks, self._time, self._heard_at)
        return self._set(ticks, max(self._time, now - (self._least_lag.value or 0.0)), now)

    def take_back(self) -> None:
        """The report that made the last jump proved nothing: go on with the clock before it."""
        self._ticks, self._time, self._heard_at = self._before

    def _set(self, ticks: int, time: float, now: float) -> float:
        self._ticks, self._time, self._heard_at = ticks, time, now
        self._least_lag.update(now - time, now)
        return time
