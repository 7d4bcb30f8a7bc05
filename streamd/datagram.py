"""The two values that cross the seam between core and shell.

Both stand for a *run* of UDP payloads of one size and one codepoint (the last
may be shorter), because that is what UDP_GRO reads and UDP_SEGMENT sends in
one system call. A lone datagram is a run of one.
"""

from collections.abc import Iterator
from typing import Any

Address = tuple[Any, ...]
"""A socket address as the socket module gives it: (host, port[, flow, scope])."""


class Datagram:
    """One read: payloads of `segment_size` bytes each, all with one TOS byte."""

    __slots__ = ("address", "data", "dscp", "ecn", "received_at", "segment_size")

    def __init__(
        self,
        data: bytes,
        address: Address,
        ecn: int | None,
        received_at: float,
        segment_size: int = 0,
        dscp: int = 0,
    ) -> None:
        """`ecn` None: the kernel gave no TOS item, so the codepoint is unknown.

        `received_at` is in seconds of the session clock, as early as it could
        be stamped. `segment_size` 0 means the payload is one datagram.
        """
        self.data = data
        self.address = address
        self.ecn = ecn
        self.received_at = received_at
        self.segment_size = segment_size or len(data)
        self.dscp = dscp

    def segments(self) -> Iterator[bytes]:
        """Each datagram of the run, in order. An empty datagram gives one empty payload."""
        data, size = self.data, self.segment_size
        if size >= len(data):
            yield data
            return
        for start in range(0, len(data), size):
            yield data[start : start + size]


class Transmit:
    """Datagrams to send to one address with one codepoint, as few calls as the kernel allows.

    All segments but the last have the same size; the last is at most as large.
    """

    __slots__ = ("address", "dscp", "ecn", "segments")

    def __init__(self, segments: list[bytes], address: Address, ecn: int, dscp: int = 0) -> None:
        self.segments = segments
        self.address = address
        self.ecn = ecn
        self.dscp = dscp
