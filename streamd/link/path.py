"""One direction of a link: nodes in the order in which packets meet them.

Packets enter by `send` and come out in `out`, each with `due`, the time at
which it left the last node. Everything in `out` is due already.
"""

import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from streamd.errors import ConfigError
from streamd.link.bottleneck import (
    MTU_BYTES,
    OPPORTUNITY_BYTES,
    Bottleneck,
    ConstantRateLink,
    TraceLink,
)
from streamd.link.droptail import SPEC as DROPTAIL
from streamd.link.impair import Delay, Loss
from streamd.link.node import Node, Sink
from streamd.link.queue import DropHook, Packet, QueueSpec
from streamd.link.trace import Trace


class Path:
    """The composed nodes; may be empty, then packets come out as they went in."""

    def __init__(self, nodes: Sequence[Node], *, overhead_bytes: int = 0) -> None:
        self.nodes = tuple(nodes)
        self.overhead_bytes = overhead_bytes
        """What whoever makes the packets adds to their IP length (`Packet.size`)."""
        self.out: deque[Packet] = deque()
        """Packets that have left, in order; taken by the owner."""
        sink: Sink = self._emit
        for node in reversed(self.nodes):
            node.sink = sink
            sink = node.enqueue
        self.send: Callable[[Packet, float], None] = sink
        """A packet enters at the given time (s), which never runs backwards."""
        self._lookahead = _lookahead(self.nodes)
        self.bottleneck = next((n for n in self.nodes if isinstance(n, Bottleneck)), None)
        """The first bottleneck of the path; None when the path has no limit of rate."""

    def _emit(self, packet: Packet, now: float) -> None:
        packet.due = now
        self.out.append(packet)

    def advance(self, now: float) -> None:
        """Move everything that is due up to and including `now` (s)."""
        for node in self.nodes:
            node.advance(now)

    def next_timeout(self) -> float | None:
        """The earliest time (s) at which a packet can come out; None when none can.

        It looks through the delays behind a node: a link in front of 10 ms of
        delay needs no attention until its next packet has also crossed that.
        """
        if self.out:
            return self.out[0].due
        first: float | None = None
        for node, rest in self._lookahead:
            at = node.next_timeout()
            if at is not None and (first is None or at + rest < first):
                first = at + rest
        return first

    def watch_drops(self, hook: DropHook) -> None:
        """Tell `hook` of every drop on the path."""
        for node in self.nodes:
            if isinstance(node, Bottleneck):
                node.watch_drops(hook)
            else:
                node.on_drop = hook

    @property
    def held_packets(self) -> int:
        """Packets inside, those in `out` included."""
        return len(self.out) + sum(node.held_packets for node in self.nodes)

    @property
    def dropped_packets(self) -> int:
        """Packets dropped, all nodes and causes."""
        return sum(node.dropped_packets for node in self.nodes)


def _lookahead(nodes: Sequence[Node]) -> tuple[tuple[Node, float], ...]:
    """Each node with the least time a packet spends behind it."""
    pairs = []
    rest = 0.0
    for node in reversed(nodes):
        pairs.append((node, rest))
        rest += node.min_delay
    return tuple(pairs)


@dataclass(frozen=True, slots=True)
class PathConfig:
    """One direction as its owner describes it."""

    capacity: Trace | float | None = None
    """A trace, a constant rate in bit/s, or None for no limit."""
    queue: QueueSpec = DROPTAIL
    queue_config: Any = field(default_factory=DROPTAIL.config_type)
    """An instance of `queue.config_type`."""
    delay: float = 0.0
    """One-way propagation delay (s)."""
    loss: float = 0.0
    """Probability of random loss."""
    opportunity_bytes: int = OPPORTUNITY_BYTES
    """What one delivery opportunity carries; 1504 with an overhead of 4 imitates Mahimahi."""
    overhead_bytes: int = 0
    """Charged per packet on top of its IP length."""
    mtu: int = MTU_BYTES
    """Largest IP length a constant-rate link carries."""
    subticks: int = 1
    repeat: bool = True


def build_path(config: PathConfig, *, seed: str, now: float, link_last: bool = False) -> Path:
    """The path of a configuration, starting at `now` (s); ConfigError when a value is unusable.

    Order as in nested Mahimahi shells, seen by the traffic of the program
    inside: out through link, loss, delay, and back in through delay, loss, link
    (`link_last`). Each random part draws from its own generator, named after
    `seed`, so that adding one does not shift another.
    """
    if config.overhead_bytes < 0:
        raise ConfigError(f"overhead must be at least 0 bytes, got {config.overhead_bytes}")
    nodes: list[Node] = []
    if config.capacity is not None:
        nodes.append(_bottleneck(config, config.capacity, seed=seed, now=now))
    if config.loss:
        nodes.append(Loss(config.loss, random.Random(f"{seed}:loss")))
    if config.delay:
        nodes.append(Delay(config.delay))
    return Path(nodes[::-1] if link_last else nodes, overhead_bytes=config.overhead_bytes)


def _bottleneck(
    config: PathConfig, capacity: Trace | float, *, seed: str, now: float
) -> Bottleneck:
    rng = random.Random(f"{seed}:queue")
    queue = config.queue.build(config.queue_config, rng=rng, now=now)
    if isinstance(capacity, Trace):
        return TraceLink(
            queue,
            capacity,
            base=now,
            opportunity_bytes=config.opportunity_bytes,
            subticks=config.subticks,
            repeat=config.repeat,
        )
    return ConstantRateLink(queue, capacity, base=now, mtu=config.mtu + config.overhead_bytes)
