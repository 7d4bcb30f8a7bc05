"""timerfd (timerfd_create(2)): a one-shot alarm on CLOCK_MONOTONIC that a loop can watch.

Python has it from 3.13 on; before that it is called through ctypes. Opening
raises OSError where the system has none.
"""

import ctypes
import os
import struct
import sys
from typing import Any, Protocol

CLOCK_MONOTONIC = 1
ABSOLUTE = 1
"""TFD_TIMER_ABSTIME."""
_FLAGS = os.O_NONBLOCK | getattr(os, "O_CLOEXEC", 0)
"""TFD_NONBLOCK | TFD_CLOEXEC: the same values as the open(2) flags."""
_ITIMERSPEC = struct.Struct("@4l")


class TimerFd(Protocol):
    """One alarm. Its descriptor is readable from the deadline on, until set or cleared."""

    fd: int

    def set(self, deadline: float) -> None:
        """Go off at `deadline` (s of CLOCK_MONOTONIC, > 0), at once if that is past."""

    def clear(self) -> None:
        """Neither go off nor stay readable."""

    def close(self) -> None:
        """Release the descriptor."""


class CtypesTimerFd:
    """Through the C library: arguments are built once and overwritten, 1.2 us a call."""

    __slots__ = ("_arguments", "_settime", "_spec", "fd")

    def __init__(self) -> None:
        if not sys.platform.startswith("linux"):
            raise OSError("this system has no timerfd")
        create = ctypes.CDLL(None, use_errno=True).timerfd_create
        self.fd: int = create(CLOCK_MONOTONIC, _FLAGS)
        if self.fd < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        # PyDLL keeps the interpreter lock, which saves 0.05 us; the call never blocks.
        self._settime: Any = ctypes.PyDLL(None).timerfd_settime
        self._spec = bytearray(_ITIMERSPEC.size)
        pinned = (ctypes.c_char * len(self._spec)).from_buffer(self._spec)
        self._arguments = (
            ctypes.c_int(self.fd),
            ctypes.c_int(ABSOLUTE),
            ctypes.byref(pinned),
            ctypes.c_void_p(0),
        )
        """Built once: converting Python ints at each call costs more than the call."""

    def set(self, deadline: float) -> None:
        """See `TimerFd.set`."""
        seconds = int(deadline)
        # All zero would mean "never".
        _ITIMERSPEC.pack_into(self._spec, 0, 0, 0, seconds, int((deadline - seconds) * 1e9) or 1)
        self._call()

    def clear(self) -> None:
        """See `TimerFd.clear`."""
        _ITIMERSPEC.pack_into(self._spec, 0, 0, 0, 0, 0)
        self._call()

    def close(self) -> None:
        """See `TimerFd.close`."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def _call(self) -> None:
        if self._settime(*self._arguments):
            raise OSError(f"timerfd_settime refused {_ITIMERSPEC.unpack(self._spec)[2:]}")


class OsTimerFd:
    """Through the os module, Python 3.13 and later."""

    __slots__ = ("_settime_ns", "fd")

    def __init__(self) -> None:
        create: Any = getattr(os, "timerfd_create", None)
        self._settime_ns: Any = getattr(os, "timerfd_settime_ns", None)
        if create is None or self._settime_ns is None:
            raise OSError("this Python has no timerfd")
        self.fd: int = create(CLOCK_MONOTONIC, flags=_FLAGS)

    def set(self, deadline: float) -> None:
        """See `TimerFd.set`."""
        self._settime_ns(self.fd, flags=ABSOLUTE, initial=int(deadline * 1e9) or 1)

    def clear(self) -> None:
        """See `TimerFd.clear`."""
        self._settime_ns(self.fd, flags=ABSOLUTE, initial=0)

    def close(self) -> None:
        """See `TimerFd.close`."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def open_timerfd() -> TimerFd:
    """The cheapest timerfd there is; OSError where there is none."""
    if hasattr(os, "timerfd_create"):
        return OsTimerFd()
    try:
        return CtypesTimerFd()
    except AttributeError:
        raise OSError("the C library has no timerfd") from None
