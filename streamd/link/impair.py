"""What happens to packets beside queueing: propagation delay and random loss.

Source: specification of the emulator, section 1.3 (mm-delay, mm-loss). Delays here are
exact; mm-delay's are rounded to whole milliseconds.
"""

import math
import random
from collections import deque

from streamd.errors import ConfigError
from streamd.link.node import Node
from streamd.link.queue import Packet


class Delay(Node):
    """A fixed one-way delay: no loss, no reordering, no limit of rate."""

    def __init__(self, delay: float) -> None:
        """`delay` in seconds. ConfigError when it is negative or not finite."""
        super().__init__()
        if not (math.isfinite(delay) and delay >= 0):
            raise ConfigError(f"a delay must be at least 0 s, got {delay}")
        self.min_delay = delay
        self._fifo: deque[Packet] = deque()

    def enqueue(self, packet: Packet, now: float) -> None:
        packet.due = now + self.min_delay
        self._fifo.append(packet)

    def advance(self, now: float) -> None:
        fifo = self._fifo
        while fifo and fifo[0].due <= now:
            packet = fifo.popleft()
            self.sink(packet, packet.due)

    def next_timeout(self) -> float | None:
        return self._fifo[0].due if self._fifo else None

    @property
    def held_packets(self) -> int:
        return len(self._fifo)

    @property
    def dropped_packets(self) -> int:
        return 0


class Loss(Node):
    """Independent random loss, on arrival."""

    def __init__(self, probability: float, rng: random.Random) -> None:
        """`probability` per packet, between 0 and 1; ConfigError otherwise."""
        super().__init__()
        if not 0 <= probability <= 1:
            raise ConfigError(f"a loss probability lies between 0 and 1, got {probability}")
        self._probability = probability
        self._random = rng.random
        self.lost = [0, 0, 0, 0]
        """Packets lost, by codepoint."""
        self.lost_bytes = 0

    def enqueue(self, packet: Packet, now: float) -> None:
        if self._random() >= self._probability:
            self.sink(packet, now)
            return
        self.lost[packet.ecn] += 1
        self.lost_bytes += packet.size
        if self.on_drop is not None:
            self.on_drop(packet, "loss", now)

    def advance(self, now: float) -> None:
        return None

    def next_timeout(self) -> float | None:
        return None

    @property
    def held_packets(self) -> int:
        return 0

    @property
    def dropped_packets(self) -> int:
        return sum(self.lost)
