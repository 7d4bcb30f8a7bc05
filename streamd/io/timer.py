"""One armed deadline, fired as exactly and as cheaply as the system allows.

Theory of operation. `arm` is called after every turn of a session, mostly with
the deadline that is armed already; that has to cost nothing. When it differs:

- A deadline that is past, or so near that setting an alarm would cost more CPU
  than waiting, is met by turns of the loop (`call_soon`): I/O goes on between,
  nothing recurses.
- An earlier deadline than the armed one sets the alarm.
- A later one need not: the alarm then goes off early once and is set anew. But
  a needless wake-up is dear (in a KVM guest 16 us of CPU, against 1 to 5 us for
  setting the alarm), so the first few moves after each wake-up are made at once
  and only a deadline that keeps moving is followed lazily. Whatever the
  pattern, that costs at most twice the best choice.

The alarm is a timerfd on the clock of `MonotonicClock`: setting it was measured
not to depend on how far away the deadline is, so coarse ones use it too. On
any other clock, or without timerfd, the loop's `call_later` has to do; uvloop
rounds it to whole milliseconds.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol

from streamd.clock import Clock, MonotonicClock
from streamd.io.timerfd import TimerFd, open_timerfd

OnDeadline = Callable[[float], None]

SPIN = 20e-6
"""Seconds for which turning the loop costs no more CPU than an alarm."""
EAGER_MOVES = 4
"""Later deadlines followed at once before the alarm is left to go off early."""


class Timer(Protocol):
    """What a pump needs of a timer."""

    def arm(self, deadline: float | None) -> None:
        """Call back at `deadline` (s of the session clock) instead of any earlier wish."""

    def close(self) -> None:
        """Never call back again."""


class Alarm(Protocol):
    """Goes off once, at or after the time set; the timer decides what that means."""

    def set(self, deadline: float) -> None:
        """Go off at `deadline` instead."""

    def clear(self) -> None:
        """Not go off."""

    def close(self) -> None:
        """Release what it holds."""


class DeadlineTimer:
    """Calls `callback(now)` once per armed deadline, never from within `arm`.

    `now` is `max(deadline, clock.now())`: a session is never told a time before
    the one it asked for.
    """

    __slots__ = (
        "_alarm",
        "_armed",
        "_callback",
        "_clock_now",
        "_deadline",
        "_loop",
        "_moves",
        "_soon",
        "alarms",
        "exact",
        "fired",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock, callback: OnDeadline) -> None:
        self._loop = loop
        self._clock_now = clock.now
        self._callback: OnDeadline | None = callback
        self._deadline: float | None = None
        self._armed: float | None = None
        """What the alarm is set to; None = it is not."""
        self._moves = 0
        self._soon = False
        self.fired = 0
        """Deadlines met."""
        self.alarms = 0
        """Times the alarm went off, early ones included."""
        fd = _timerfd_for(clock)
        self.exact = fd is not None
        """Whether deadlines below a millisecond are kept."""
        self._alarm: Alarm = (
            LoopAlarm(loop, clock, self._on_alarm)
            if fd is None
            else FdAlarm(loop, fd, self._on_alarm)
        )

    def arm(self, deadline: float | None) -> None:
        """See `Timer.arm`."""
        self._deadline = deadline
        armed = self._armed
        if deadline == armed:
            return
        if armed is not None and (deadline is None or deadline > armed):
            if self._moves >= EAGER_MOVES:
                return
            self._moves += 1
            if deadline is None:
                self._armed = None
                self._alarm.clear()
                return
        if deadline is not None:
            self._set(deadline)

    def close(self) -> None:
        """See `Timer.close`."""
        if self._callback is None:
            return
        self._callback = None
        self._deadline = self._armed = None
        self._alarm.close()

    def _set(self, deadline: float) -> None:
        if self._callback is None:
            return
        if deadline - self._clock_now() > SPIN:
            self._armed = deadline
            self._alarm.set(deadline)
        elif not self._soon:
            self._soon = True
            self._loop.call_soon(self._on_turn)

    def _on_turn(self) -> None:
        self._soon = False
        deadline = self._deadline
        if deadline is None or deadline == self._armed:
            return
        now = self._clock_now()
        if now >= deadline:
            self._fire(now)
        else:
            self._set(deadline)

    def _on_alarm(self) -> None:
        self.alarms += 1
        self._moves = 0
        self._armed = None
        deadline = self._deadline
        if deadline is not None:
            now = self._clock_now()
            if now >= deadline - SPIN:
                self._fire(now if now > deadline else deadline)
            else:
                self._set(deadline)
        if self._armed is None:
            self._quieten()

    def _quieten(self) -> None:
        """An alarm that went off and was not set again would go on waking the loop."""
        if self._callback is not None:
            self._alarm.clear()

    def _fire(self, now: float) -> None:
        self._deadline = None
        self.fired += 1
        if self._callback is not None:
            self._callback(now)


class FdAlarm:
    """A timerfd the loop watches."""

    __slots__ = ("_fd", "_loop", "clear", "set")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, fd: TimerFd, callback: Callable[[], None]
    ) -> None:
        self._loop = loop
        self._fd = fd
        self.set: Callable[[float], None] = fd.set
        self.clear: Callable[[], None] = fd.clear
        loop.add_reader(fd.fd, callback)

    def close(self) -> None:
        """See `Alarm.close`."""
        self._loop.remove_reader(self._fd.fd)
        self._fd.close()


class LoopAlarm:
    """The loop's own timer: good to a millisecond or two."""

    _SHORTEST = 0.00051
    """uvloop runs anything shorter at once, which would turn waiting into spinning."""

    __slots__ = ("_callback", "_clock_now", "_handle", "_loop")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, clock: Clock, callback: Callable[[], None]
    ) -> None:
        self._loop = loop
        self._clock_now = clock.now
        self._callback = callback
        self._handle: asyncio.TimerHandle | None = None

    def set(self, deadline: float) -> None:
        """See `Alarm.set`."""
        self.clear()
        delay = max(deadline - self._clock_now(), self._SHORTEST)
        self._handle = self._loop.call_later(delay, self._callback)

    def clear(self) -> None:
        """See `Alarm.clear`."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def close(self) -> None:
        """See `Alarm.close`."""
        self.clear()


def _timerfd_for(clock: Clock) -> TimerFd | None:
    """A timerfd if it keeps the same time as `clock`, and there is one."""
    if not isinstance(clock, MonotonicClock):
        return None
    try:
        return open_timerfd()
    except OSError:
        return None
