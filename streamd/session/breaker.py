"""The circuit breaker: a bound on the media rate while nobody answers (RFC 8083 in spirit).

The controller stays as its specification says; a controller without feedback
may hold its last rate for ever. So the session bounds the rate from outside:
when packets have gone unanswered for `SILENCE` seconds the limit is half of the
rate then in use, and half of the rate in use again every `STEP` seconds, down to
the minimum. The first new report lifts it.

Silence begins with the first packet sent after the last report: a source that
sends nothing for a while is owed no answer.
"""

SILENCE = 1.5
STEP = 0.5


class CircuitBreaker:
    """Watches the time that packets wait for a report."""

    def __init__(self, *, minimum_bps: float, enabled: bool = True) -> None:
        """`enabled` False: silence is measured, the rate is never bounded."""
        self._minimum = minimum_bps
        self._enabled = enabled
        self._waiting_since: float | None = None
        self._next_at = 0.0
        self.limit_bps: float | None = None
        """The present bound; None = none."""
        self.trips = 0
        """Times a bound was set, however often it was halved then."""

    def on_sent(self, now: float) -> None:
        """A packet was sent: from here on a report is expected."""
        if self._waiting_since is None:
            self._waiting_since = now
            self._next_at = now + SILENCE

    def on_report(self) -> bool:
        """A report with news arrived. True if this lifts a limit."""
        lifted = self.limit_bps is not None
        self.limit_bps = None
        self._waiting_since = None
        return lifted

    def silence(self, now: float) -> float:
        """Seconds that packets have been waiting for a report; 0 when none is owed."""
        return 0.0 if self._waiting_since is None else now - self._waiting_since

    def due(self, now: float) -> bool:
        """Whether `on_timeout` would halve."""
        return self._enabled and self._waiting_since is not None and now >= self._next_at

    def on_timeout(self, rate_bps: float, now: float) -> bool:
        """Halve if due; `rate_bps` is what the controller asks for. True if the limit changed.

        At most one step per call: a sender that was suspended does not go through
        all the steps of that time at once, the answers may be waiting to be read.
        """
        if not self.due(now):
            return False
        self._next_at += STEP
        if self._next_at <= now:
            self._next_at = now + STEP
        if self.limit_bps is None:
            self.trips += 1
        limit = max(self._minimum, self.apply(rate_bps) / 2)
        changed = limit != self.limit_bps
        self.limit_bps = limit
        return changed

    def apply(self, rate_bps: float) -> float:
        """The rate after the limit."""
        return rate_bps if self.limit_bps is None else min(rate_bps, self.limit_bps)
