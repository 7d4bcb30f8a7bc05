"""The circuit breaker: a bound on the media rate while nobody answers (RFC 8083 in spirit).

The controller stays as its specification says; a controller without feedback
may hold its last rate for ever. So the session bounds the rate from outside:
after `SILENCE` seconds without a report the limit is half of the rate then in
use, and half again every `STEP` seconds, down to the minimum. The first new
report lifts it.
"""

SILENCE = 1.5
STEP = 0.5


class CircuitBreaker:
    """Watches the time since the last report."""

    def __init__(self, *, minimum_bps: float, enabled: bool = True) -> None:
        self._minimum = minimum_bps
        self._enabled = enabled
        self._next_at: float | None = None
        self.limit_bps: float | None = None
        """The present bound; None = none."""
        self.trips = 0

    def start(self, now: float) -> None:
        """The first packet was sent: from here on reports are expected."""
        if self._enabled and self._next_at is None:
            self._next_at = now + SILENCE

    def on_report(self, now: float) -> bool:
        """A report with news arrived. True if this lifts a limit."""
        lifted = self.limit_bps is not None
        self.limit_bps = None
        if self._next_at is not None:
            self._next_at = now + SILENCE
        return lifted

    def on_timeout(self, rate_bps: float, now: float) -> bool:
        """Halve if due; `rate_bps` is the rate in use. True if the limit changed."""
        if self._next_at is None or now < self._next_at:
            return False
        self._next_at += STEP
        if self.limit_bps is None:
            self.trips += 1
        base = rate_bps if self.limit_bps is None else self.limit_bps
        limit = max(self._minimum, base / 2)
        changed = limit != self.limit_bps
        self.limit_bps = limit
        return changed

    def apply(self, rate_bps: float) -> float:
        """The rate after the limit."""
        return rate_bps if self.limit_bps is None else min(rate_bps, self.limit_bps)
