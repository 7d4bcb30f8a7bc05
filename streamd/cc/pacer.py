"""The pacer: spreads packets along a schedule, in quanta.

Theory of operation. The controller says after each packet how long the link is
"paid for" (an interval). The pacer adds these intervals to a schedule that does
not depend on when the timer really fired, and lets packets go while the
schedule is less than one quantum ahead of now. So a wake-up sends one quantum's
worth in a burst, the mean rate is exact, and a timer that fires late is caught
up, but never by more than `catch_up`: the largest burst is `quantum + catch_up`
of the pacing rate. Idle time earns nothing.

Source: the 0.5 ms micro-bursts of the SCReAM BW tool; RFC 9002 section 7.7.
"""

QUANTUM = 0.0005
CATCH_UP = 0.001


class Pacer:
    """Leaky bucket in the time domain; knows intervals, not packets."""

    __slots__ = ("_catch_up", "_quantum", "next_time")

    def __init__(self, *, quantum: float = QUANTUM, catch_up: float = CATCH_UP) -> None:
        """Both in seconds. `quantum` 0 sends packet by packet."""
        self._quantum = quantum
        self._catch_up = catch_up
        self.next_time = 0.0
        """When the next packet is due by the schedule (s)."""

    def ready(self, now: float) -> bool:
        """Whether a packet may leave now."""
        return self.next_time <= now or self.next_time < now + self._quantum

    def resume(self, now: float) -> None:
        """The queue was empty until now: the schedule starts afresh."""
        if self.next_time < now:
            self.next_time = now

    def hold(self, at: float, now: float) -> bool:
        """Whether `at`, the controller's own time for the next packet, is to be waited for.

        Its schedule and this one differ by a quantum and the catch-up at most when
        they say the same; what lies further away is another demand, and then the
        schedule goes on at `at`.
        """
        if at <= now + self._quantum + self._catch_up:
            return False
        self.next_time = at
        return True

    def on_sent(self, interval: float, now: float) -> None:
        """A packet left that occupies the schedule for `interval` seconds."""
        floor = now - self._catch_up
        self.next_time = (self.next_time if self.next_time > floor else floor) + interval
