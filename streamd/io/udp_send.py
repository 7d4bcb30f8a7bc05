"""The sending half of a UDP endpoint: runs out, in as few system calls as the kernel allows.

A send happens at once, in the caller's turn. It never raises for what the
network or the kernel does: a full send buffer makes runs wait in a bounded
backlog (its oldest datagrams go first, since late video is worth least), and
everything else that keeps a datagram from leaving is counted.

Handing the segments over as a vector was measured to beat joining them first.
"""

import asyncio
import errno
import socket
from collections import deque

from streamd.datagram import Address, Transmit
from streamd.io.cmsg import Item, send_items
from streamd.io.net import EndpointStats

MAX_SEGMENTS = 64
"""Of one UDP_SEGMENT call: older kernels' limit (newer ones take 128)."""
MAX_RUN_BYTES = 65000
"""Of one UDP_SEGMENT call: below the 65507 of IPv4."""
_ITEMS_CACHED = 1024
"""Sizes times codepoints; a stream uses a few dozen. Beyond it the cache starts anew."""

_AGAIN = frozenset({errno.EAGAIN, errno.EWOULDBLOCK, errno.EINTR})
_NO_BUFFERS = frozenset({errno.ENOBUFS, errno.ENOMEM})
_GSO_REFUSED = frozenset({errno.EIO, errno.EINVAL, errno.EMSGSIZE, errno.EOPNOTSUPP})

_Run = tuple[list[bytes], int, Address]
"""Segments of one size, TOS byte, where to."""


class UdpSender:
    """Sends on one socket. Counts in the endpoint's `stats`."""

    __slots__ = (
        "_backlog",
        "_backlog_limit",
        "_family",
        "_gso_limit",
        "_items",
        "_loop",
        "_sendmsg",
        "_sock",
        "_stats",
        "_watching",
        "waiting",
    )

    def __init__(
        self,
        sock: socket.socket,
        *,
        loop: asyncio.AbstractEventLoop,
        stats: EndpointStats,
        gso: bool,
        backlog_limit: int,
    ) -> None:
        self._sock = sock
        self._loop = loop
        self._stats = stats
        self._family: int = sock.family
        self._sendmsg = sock.sendmsg
        self._gso_limit = MAX_RUN_BYTES if gso else 0
        """Largest segment the kernel is known or hoped to take in a run."""
        self._items: dict[int, list[Item]] = {}
        """Control messages by segment size << 8 | TOS byte, size 0 = a lone datagram."""
        self._backlog: deque[_Run] = deque()
        self._backlog_limit = backlog_limit
        self._watching = False
        self.waiting = 0
        """Datagrams in the backlog."""

    def send(self, transmit: Transmit) -> None:
        """See `Endpoint.send`."""
        segments = transmit.segments
        tos = transmit.dscp << 2 | transmit.ecn
        count = len(segments)
        if count > 1:
            size = len(segments[0])
            if count > MAX_SEGMENTS or count * size > MAX_RUN_BYTES or size > self._gso_limit:
                self._send_split(segments, tos, transmit.address)
                return
        self._submit(segments, tos, transmit.address)

    def close(self) -> None:
        """One last try for what waits; the rest is counted as dropped. The socket stays open."""
        if self._backlog:
            self._flush()
        if self._watching:
            self._loop.remove_writer(self._sock.fileno())
            self._watching = False
        self._stats.send_dropped += self.waiting
        self._backlog.clear()
        self.waiting = 0

    # ---- one call

    def _attempt(self, run: list[bytes], tos: int, address: Address) -> int:
        """One system call. Returns 0, or the error number."""
        key = len(run[0]) << 8 | tos if len(run) > 1 else tos
        items = self._items.get(key)
        if items is None:
            items = self._make_items(key)
        try:
            sent = self._sendmsg(run, items, 0, address)
        except OSError as error:
            return error.errno or errno.EIO
        stats = self._stats
        stats.send_calls += 1
        stats.datagrams_sent += len(run)
        stats.bytes_sent += sent
        return 0

    def _make_items(self, key: int) -> list[Item]:
        if len(self._items) >= _ITEMS_CACHED:
            self._items.clear()
        items = self._items[key] = send_items(self._family, key & 0xFF, key >> 8)
        return items

    def _submit(self, run: list[bytes], tos: int, address: Address) -> None:
        if self._backlog:
            self._queue(run, tos, address)
            return
        code = self._attempt(run, tos, address)
        if code:
            self._settle(code, run, tos, address)

    def _send_split(self, segments: list[bytes], tos: int, address: Address) -> None:
        size = len(segments[0])
        per_call = 1
        if 0 < size <= self._gso_limit:
            per_call = max(1, min(MAX_SEGMENTS, MAX_RUN_BYTES // size))
        for start in range(0, len(segments), per_call):
            self._submit(segments[start : start + per_call], tos, address)

    # ---- when it fails

    def _settle(self, code: int, run: list[bytes], tos: int, address: Address) -> bool:
        """Deal with a failed call. False: the send buffer is full and the run now waits first."""
        if code not in _AGAIN and code not in _NO_BUFFERS:
            # An ICMP error about an earlier datagram is reported in place of sending this one.
            again = self._attempt(run, tos, address)
            if again != code:
                self._stats.pending_errors += 1
            code = again
            if not code:
                return True
        if code in _AGAIN:
            self._stats.send_would_block += 1
            self._wait_first(run, tos, address)
            return False
        if len(run) > 1 and code in _GSO_REFUSED:
            return self._send_apart(code, run, tos, address)
        self._drop(code, len(run))
        return True

    def _send_apart(self, code: int, run: list[bytes], tos: int, address: Address) -> bool:
        """The kernel refused the run as one call: send its segments one by one, and remember.

        EIO: the device cannot checksum for us, no run will ever pass. Else the
        segments are too large for the path, smaller ones may pass.
        """
        self._stats.gso_fallbacks += 1
        for index, segment in enumerate(run):
            failed = self._attempt([segment], tos, address)
            if failed and not self._settle(failed, [segment], tos, address):
                rest = run[index + 1 :]
                if rest:
                    self._backlog.insert(1, (rest, tos, address))
                    self.waiting += len(rest)
                return False
            if index == 0 and not failed:
                self._gso_limit = 0 if code == errno.EIO else len(segment) - 1
        return True

    def _drop(self, code: int, count: int) -> None:
        stats = self._stats
        stats.send_dropped += count
        if code in _NO_BUFFERS:
            stats.send_no_buffers += 1
        elif code == errno.EMSGSIZE:
            stats.send_too_big += 1
        else:
            stats.send_errors += 1

    # ---- the backlog

    def _queue(self, run: list[bytes], tos: int, address: Address) -> None:
        self._backlog.append((run, tos, address))
        self.waiting += len(run)
        stats = self._stats
        while self.waiting > self._backlog_limit:
            lost = len(self._backlog.popleft()[0])
            self.waiting -= lost
            stats.backlog_drops += lost
            stats.send_dropped += lost

    def _wait_first(self, run: list[bytes], tos: int, address: Address) -> None:
        self._backlog.appendleft((run, tos, address))
        self.waiting += len(run)
        if not self._watching:
            self._watching = True
            self._loop.add_writer(self._sock.fileno(), self._writable)

    def _writable(self) -> None:
        # Registered anew each time: after POLLERR libuv watches no longer, without saying so.
        self._loop.remove_writer(self._sock.fileno())
        self._watching = False
        self._flush()

    def _flush(self) -> None:
        """Send what waits until it is gone or the buffer is full again."""
        backlog = self._backlog
        while backlog:
            run, tos, address = backlog.popleft()
            self.waiting -= len(run)
            code = self._attempt(run, tos, address)
            if code and not self._settle(code, run, tos, address):
                return
