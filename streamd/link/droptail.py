"""Drop-tail: a FIFO that refuses what does not fit.

Theory of operation. One queue with a limit in packets, in bytes, or both. An
arriving packet that would exceed either is dropped; nothing else ever is, and
nothing is marked. Delay under overload is the limit divided by the link rate.

Source: Mahimahi's `droptail` (specification of the emulator, section 2).
Deviation: bytes are those charged for the packet, see `Packet.size`; with
neither limit given there are 1000 packets (Linux's default device queue), not an error.
"""

import random
from collections import deque
from dataclasses import dataclass

from streamd.errors import ConfigError
from streamd.link.queue import Packet, QueueCounters, QueueDiscipline, QueueSpec

DEFAULT_PACKETS = 1000


@dataclass(frozen=True, slots=True)
class DropTailConfig:
    """`[queue.droptail]`. A limit of None does not apply."""

    packets: int | None = None
    """Most packets held."""
    bytes: int | None = None
    """Most charged bytes held."""

    def __post_init__(self) -> None:
        for name, limit in (("packets", self.packets), ("bytes", self.bytes)):
            if limit is not None and limit < 1:
                raise ConfigError(f"droptail: {name} must be at least 1, got {limit}")


class DropTail(QueueDiscipline):
    """See the module's theory of operation."""

    def __init__(self, config: DropTailConfig) -> None:
        super().__init__()
        packets = config.packets
        if packets is None and config.bytes is None:
            packets = DEFAULT_PACKETS
        self._packets = packets
        self._bytes = config.bytes
        self._fifo: deque[Packet] = deque()
        self._counters = QueueCounters("fifo", marks=(), drops=("limit_packets", "limit_bytes"))
        self.queues = (self._counters,)

    def enqueue(self, packet: Packet, now: float) -> None:
        self._counters.on_arrival(packet, now)
        if self._packets is not None and self.backlog_packets >= self._packets:
            self._lose(self._counters, packet, "limit_packets", now)
            return
        if self._bytes is not None and self.backlog_bytes + packet.size > self._bytes:
            self._lose(self._counters, packet, "limit_bytes", now)
            return
        self._fifo.append(packet)
        self.backlog_packets += 1
        self.backlog_bytes += packet.size

    def dequeue(self, now: float) -> Packet | None:
        if not self._fifo:
            return None
        packet = self._fifo.popleft()
        self.backlog_packets -= 1
        self.backlog_bytes -= packet.size
        self._counters.on_departure(packet, now)
        return packet

    def describe(self) -> dict[str, str | int | float | bool | None]:
        return {"discipline": "droptail", "packets": self._packets, "bytes": self._bytes}

    def gauges(self, now: float) -> dict[str, float]:
        return {"delay": now - self._fifo[0].arrived_at if self._fifo else 0.0}


def _build(config: DropTailConfig, *, rng: random.Random, now: float) -> DropTail:
    return DropTail(config)


SPEC = QueueSpec(
    name="droptail",
    summary="FIFO with a limit in packets, bytes or both; drops what does not fit",
    config_type=DropTailConfig,
    build=_build,
    source="Mahimahi droptail",
)
