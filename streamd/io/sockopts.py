"""Making a UDP socket ready: the options, and what of them this system grants.

Python's socket module lacks several of Linux's numbers; they are here, and are
the same on every architecture with the generic socket ABI (x86, Arm, RISC-V).
On other systems what is missing is left out and the endpoint does without.
"""

import errno
import os
import re
import socket
import struct
import sys

from streamd.datagram import Address
from streamd.errors import StartupError
from streamd.io.address import format_address

IS_LINUX = sys.platform.startswith("linux")

SO_SNDBUFFORCE = 32
SO_RCVBUFFORCE = 33
SO_TIMESTAMPNS = 35
SO_RXQ_OVFL = 40
SO_MEMINFO = 55
SOL_UDP = 17
UDP_SEGMENT = 103
UDP_GRO = 104
IP_RECVERR = 11
IPV6_RECVERR = 25

IP_RECVTOS = getattr(socket, "IP_RECVTOS", None)
IPV6_RECVTCLASS = getattr(socket, "IPV6_RECVTCLASS", None)

_MEMINFO = struct.Struct("=9I")
"""linux/sock_diag.h: nine counters, the drops last."""
_ABSENT = frozenset({errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL, errno.EPROTONOSUPPORT})
_GRO_KEEPS_ECN_SINCE = (6, 9)


def try_option(sock: socket.socket, level: int, name: int | None, value: int) -> bool:
    """Set an option that may not exist here; whether it was taken."""
    if name is None:
        return False
    try:
        sock.setsockopt(level, name, value)
    except OSError:
        return False
    return True


# ---- opening


class _NotHere(StartupError):
    """This machine lacks the family or the address."""


def open_socket(local: Address) -> socket.socket:
    """A bound, non-blocking UDP socket; StartupError in one line naming the address.

    An IPv6 socket is dual-stack: it serves IPv4 peers in mapped form. Host ""
    is every address of both families, or of IPv4 alone where there is no IPv6.
    """
    if local[0]:
        return _open(local)
    try:
        return _open(("::", local[1]))
    except _NotHere:
        return _open(("0.0.0.0", local[1]))


def _open(local: Address) -> socket.socket:
    family, address = _numeric(local)
    try:
        sock = socket.socket(family, socket.SOCK_DGRAM)
    except OSError as error:
        raise _cannot_open(local, error) from None
    try:
        sock.setblocking(False)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        sock.bind(address)
    except OSError as error:
        sock.close()
        raise _cannot_open(local, error) from None
    return sock


def _numeric(local: Address) -> tuple[int, Address]:
    """Family and bind address; a name is refused, since looking it up would block the loop."""
    host, port = local[0], local[1]
    if not 0 <= port <= 65535:
        raise StartupError(f"cannot open UDP {format_address(local)}: ports are 0 to 65535")
    try:
        found = socket.getaddrinfo(
            host, port, type=socket.SOCK_DGRAM, flags=socket.AI_NUMERICHOST | socket.AI_PASSIVE
        )
    except (OSError, UnicodeError):
        raise StartupError(
            f"cannot open UDP {format_address(local)}: not a numeric address"
        ) from None
    family, _, _, _, address = found[0]
    return family, local if len(local) == 4 else address


def _cannot_open(local: Address, error: OSError) -> StartupError:
    kind = _NotHere if error.errno in _ABSENT else StartupError
    reason = os.strerror(error.errno) if error.errno else str(error)
    return kind(f"cannot open UDP {format_address(local)}: {reason}")


# ---- options


def ask_ecn(sock: socket.socket) -> None:
    """Have the TOS byte or traffic class come with every datagram, of either family."""
    try_option(sock, socket.IPPROTO_IP, IP_RECVTOS, 1)
    if sock.family == socket.AF_INET6:
        try_option(sock, socket.IPPROTO_IPV6, IPV6_RECVTCLASS, 1)


def ask_errors(sock: socket.socket) -> bool:
    """Have ICMP errors reported although the socket is not connected.

    On Linux the same option makes a full device queue show as ENOBUFS, which
    is silent loss otherwise (ip(7), IP_RECVERR).
    """
    if not IS_LINUX:
        return False
    granted = try_option(sock, socket.IPPROTO_IP, IP_RECVERR, 1)
    if sock.family == socket.AF_INET6:
        granted = try_option(sock, socket.IPPROTO_IPV6, IPV6_RECVERR, 1) and granted
    return granted


def ask_buffer(sock: socket.socket, option: int, force: int, wanted: int) -> int:
    """Ask for `wanted` bytes (0: leave alone), past the system's limit if we may.

    Returns the bytes granted, read back. Linux books twice that to cover its
    own overhead per datagram, and reports the double; the answer here is in
    the unit of the question.
    """
    if wanted and not (IS_LINUX and try_option(sock, socket.SOL_SOCKET, force, wanted)):
        try_option(sock, socket.SOL_SOCKET, option, wanted)
    granted = sock.getsockopt(socket.SOL_SOCKET, option)
    return granted // 2 if IS_LINUX else granted


def ask_timestamps(sock: socket.socket) -> bool:
    """Have the kernel stamp each datagram's arrival; whether it will."""
    return IS_LINUX and try_option(sock, socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)


def ask_drop_counts(sock: socket.socket) -> bool:
    """Find a way to learn of receive-buffer overflow: True = ask `read_drops` at any time.

    Where the kernel is too old for that the count comes with the datagrams
    (SO_RXQ_OVFL), one datagram late.
    """
    if read_drops(sock) is not None:
        return True
    if IS_LINUX:
        try_option(sock, socket.SOL_SOCKET, SO_RXQ_OVFL, 1)
    return False


def read_drops(sock: socket.socket) -> int | None:
    """Datagrams dropped for a full receive buffer so far, modulo 2**32; None = cannot tell."""
    if not IS_LINUX:
        return None
    try:
        info = sock.getsockopt(socket.SOL_SOCKET, SO_MEMINFO, _MEMINFO.size)
    except OSError:
        return None
    if len(info) < _MEMINFO.size:
        return None
    drops: int = _MEMINFO.unpack(info)[-1]
    return drops


# ---- batching


def has_gso(sock: socket.socket) -> bool:
    """Whether the kernel knows UDP_SEGMENT."""
    if not IS_LINUX:
        return False
    try:
        sock.getsockopt(SOL_UDP, UDP_SEGMENT)
    except OSError:
        return False
    return True


def ask_gro(sock: socket.socket, wanted: bool | None) -> bool:
    """Turn on UDP_GRO if `wanted`, or by itself where it cannot spoil ECN; whether it is on.

    Before Linux 6.9 the receive path merged datagrams of different codepoints
    and showed only the first one's. Loopback never merges.
    """
    if not IS_LINUX or wanted is False:
        return False
    if wanted is None and not (_is_loopback(sock) or gro_keeps_ecn(os.uname().release)):
        return False
    return try_option(sock, SOL_UDP, UDP_GRO, 1)


def gro_keeps_ecn(release: str) -> bool:
    """Whether a kernel of this release never merges datagrams of different ECN."""
    match = re.match(r"(\d+)\.(\d+)", release)
    return match is not None and tuple(map(int, match.groups())) >= _GRO_KEEPS_ECN_SINCE


def _is_loopback(sock: socket.socket) -> bool:
    host = str(sock.getsockname()[0])
    return host == "::1" or host.startswith(("127.", "::ffff:127."))
