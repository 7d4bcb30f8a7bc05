"""Control messages of UDP: the items to attach to a send, and what came with a read.

Facts behind the choices (measured, Linux 6.18): the TOS item of IPv4 and the
traffic class item of IPv6 live apart, also on a dual-stack socket; the item of
the wrong family is ignored without error. So a dual-stack socket attaches both
and asks for both. A present item replaces the whole byte, hence the DSCP.
"""

import socket
import struct
import sys
from collections.abc import Callable

from streamd.clock import Clock
from streamd.io.sockopts import IP_RECVERR, IPV6_RECVERR, SOL_UDP, UDP_SEGMENT

Item = tuple[int, int, bytes]

CONTROL_BYTES = 128
"""Room for one of each item; a buffer too small loses the TOS item first."""

IP_TOS = socket.IP_TOS
IP_RECVTOS = getattr(socket, "IP_RECVTOS", IP_TOS)
"""BSD and macOS name the received item by the option that asked for it."""
IPV6_TCLASS = getattr(socket, "IPV6_TCLASS", 67)

LOW_BYTE = 0 if sys.byteorder == "little" else -1
"""Where an int of the kernel's keeps its low byte; right for a one-byte item too."""

TIMESPEC = struct.Struct("@ll")
INT = struct.Struct("=i")
UINT = struct.Struct("=I")
_U16 = struct.Struct("=H")


def send_items(family: int, tos: int, segment_size: int) -> list[Item]:
    """Items for a send with this TOS byte, as a run of `segment_size` pieces (0: one datagram)."""
    value = INT.pack(tos)
    items = [(int(socket.IPPROTO_IP), int(IP_TOS), value)]
    if family == socket.AF_INET6:
        items.append((int(socket.IPPROTO_IPV6), int(IPV6_TCLASS), value))
    if segment_size:
        items.append((SOL_UDP, UDP_SEGMENT, _U16.pack(segment_size)))
    return items


class StampClock:
    """Turns the kernel's arrival stamps, on the real-time clock, into session time.

    The real-time clock is slewed and stepped while a daemon runs for weeks, so
    the distance between the two has to be measured again and again.
    """

    _GOOD = 5e-6
    """A sample whose two session readings are this close was not interrupted."""

    __slots__ = ("_now", "_real")

    def __init__(self, clock: Clock, realtime: Callable[[], float]) -> None:
        self._now = clock.now
        self._real = realtime

    def sample(self) -> float:
        """Session time minus real time (s), the best of up to four readings."""
        best, offset = float("inf"), 0.0
        for _ in range(4):
            before = self._now()
            real = self._real()
            after = self._now()
            if after - before < best:
                best = after - before
                offset = (before + after) / 2 - real
            if best <= self._GOOD:
                break
        return offset


_EXTENDED_ERROR = struct.Struct("=IBBB")
"""sock_extended_err (linux/errqueue.h): errno, origin, ICMP type, ICMP code."""
_FROM_ICMP = (2, 3)


def icmp_errno(items: list[Item]) -> int:
    """The errno an ICMP or ICMPv6 message in the error queue stands for; 0 = it is none."""
    for level, kind, value in items:
        if (level, kind) not in (
            (socket.IPPROTO_IP, IP_RECVERR),
            (socket.IPPROTO_IPV6, IPV6_RECVERR),
        ):
            continue
        if len(value) >= _EXTENDED_ERROR.size:
            code, origin, _, _ = _EXTENDED_ERROR.unpack_from(value)
            return int(code) if origin in _FROM_ICMP else 0
    return 0
