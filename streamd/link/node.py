"""What a path is made of: nodes that take a packet and hand it on later.

A node is lazy. It does nothing until it is told that a packet arrives
(`enqueue`) or that time has passed (`advance`), and then catches up: whatever
should have left by then is handed to `sink` with the time it should have left,
in order. So a process that wakes late still produces the exact schedule.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable

from streamd.link.queue import DropHook, Packet

Sink = Callable[[Packet, float], None]
"""Takes a packet and the time (s) at which it got there."""


def _no_sink(packet: Packet, now: float) -> None:
    raise AssertionError("a node was used before it was put into a path")


class Node(ABC):
    """One stage of a path. Times given to one node never run backwards."""

    def __init__(self) -> None:
        self.sink: Sink = _no_sink
        """Where packets go; set by the path."""
        self.min_delay = 0.0
        """The least time (s) a packet spends here: lets a path sleep instead of looking ahead."""
        self.on_drop: DropHook | None = None
        """Told of every drop; set by whoever keeps a record."""

    @abstractmethod
    def enqueue(self, packet: Packet, now: float) -> None:
        """A packet arrives."""

    @abstractmethod
    def advance(self, now: float) -> None:
        """Hand on everything due up to and including `now` (s)."""

    @abstractmethod
    def next_timeout(self) -> float | None:
        """When the next packet may leave (s); None while there is nothing to wait for."""

    @property
    @abstractmethod
    def held_packets(self) -> int:
        """Packets inside."""

    @property
    @abstractmethod
    def dropped_packets(self) -> int:
        """Packets dropped so far, all causes."""
