"""The door every queue discipline stands behind, and what every one of them counts.

A discipline is a plain state machine: packets go in, packets come out, some
come out marked and some never. It is driven by the link in front of it and
knows neither the link's rate nor what a packet holds. `now` is in seconds.

Call order, as a link keeps it: `enqueue` when a packet arrives, `dequeue` when
the link can start sending one (the instant at which sojourn is judged). At
equal times the link's side comes first, then the arrival, then whatever the
discipline does by its own clock. A discipline keeps its own clock lazily: it
catches up inside the next call, so an idle queue needs no timer.

Source: specification of the emulator, sections 2, 3 and 6 (Mahimahi's six-method queue).
"""

import random
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from streamd.ecn import CE
from streamd.histogram import Histogram

TIME_SLACK = 1e-9
"""Two instants closer than this (s) count as equal.

Times are differences and sums of floats; without the slack a sojourn of exactly
1 ms would be above or below a 1 ms threshold by the luck of rounding.
"""

_RENARD_10 = ("1", "1.2", "1.5", "2", "2.5", "3", "4", "5", "6", "8")
SOJOURN_BOUNDS = (
    *sorted([float(f"{m}e{d}") for d in range(-5, 1) for m in _RENARD_10] + [0.007, 0.075]),
    10.0,
)
"""Bucket bounds of delay histograms (s): ten a decade from 10 us to 10 s, in the rounded Renard
series (ISO 3, R"10), so that they fall on the values people ask about (1, 5, 15, 25 ms, ...)."""


class Packet:
    """One packet on its way through a path. The payload is opaque and never looked at."""

    __slots__ = (
        "arrived_at",
        "data",
        "departed_at",
        "dequeued_at",
        "dscp",
        "due",
        "ecn",
        "ecn_in",
        "flow",
        "mark",
        "sent_at",
        "size",
        "step_ok",
    )

    due: float
    """When it leaves the node that holds it now, or the path (s)."""
    step_ok: bool
    """DualPI2: the step threshold applies (decided on arrival)."""

    def __init__(
        self,
        data: bytes,
        size: int,
        ecn: int,
        sent_at: float = 0.0,
        flow: Hashable = None,
        dscp: int = 0,
    ) -> None:
        """`size`: every byte the link charges for it. `sent_at`: when it entered the path (s)."""
        self.data = data
        self.size = size
        self.ecn = self.ecn_in = ecn
        self.sent_at = self.arrived_at = self.dequeued_at = self.departed_at = sent_at
        # arrived_at: offered to the queue. dequeued_at: the link asked for it, where sojourn is
        # judged. departed_at: its last byte left the link. Each is set when it happens (s).
        self.flow = flow
        self.dscp = dscp
        self.mark: str | None = None
        """Why a discipline set CE on it; None if none did."""


DropHook = Callable[[Packet, str, float], None]
"""Called with the packet, the cause and the time (s) of every drop."""


class QueueCounters:
    """What one queue of a discipline has seen, as plain numbers.

    At any time: arrived = departed + dropped + queued, in packets and in bytes.
    """

    __slots__ = (
        "arrived_by_ecn",
        "arrived_bytes",
        "departed_by_ecn",
        "departed_bytes",
        "dropped_bytes",
        "drops",
        "marks",
        "name",
        "sojourn",
        "sojourn_max",
        "step_also",
    )

    def __init__(self, name: str, *, marks: Sequence[str], drops: Sequence[str]) -> None:
        """`marks` and `drops`: every cause this queue can have, so that 0 is exported too."""
        self.name = name
        self.arrived_by_ecn = [0, 0, 0, 0]
        """Packets offered, by the codepoint they arrived with (index = `Ecn`)."""
        self.arrived_bytes = 0
        self.departed_by_ecn = [0, 0, 0, 0]
        """Packets handed to the link, by the codepoint they left with."""
        self.departed_bytes = 0
        self.drops = {cause: [0, 0, 0, 0] for cause in drops}
        """Packets by cause, then by codepoint."""
        self.dropped_bytes = 0
        self.marks = dict.fromkeys(marks, 0)
        """Packets set to CE, each once, under the first cause; dropped ones are not taken back."""
        self.step_also = 0
        """Packets marked for another cause that the step threshold would have marked as well."""
        self.sojourn = Histogram(SOJOURN_BOUNDS)
        """Dequeue minus arrival of packets handed to the link (s)."""
        self.sojourn_max = 0.0

    def on_arrival(self, packet: Packet, now: float) -> None:
        """A packet was offered, whatever becomes of it."""
        packet.arrived_at = now
        self.arrived_by_ecn[packet.ecn] += 1
        self.arrived_bytes += packet.size

    def on_departure(self, packet: Packet, now: float) -> None:
        """The link took the packet."""
        packet.dequeued_at = now
        self.departed_by_ecn[packet.ecn] += 1
        self.departed_bytes += packet.size
        sojourn = now - packet.arrived_at
        if sojourn > self.sojourn_max:
            self.sojourn_max = sojourn
        histogram = self.sojourn
        # Histogram.observe, written out: this line runs for every packet.
        histogram.counts[bisect_left(SOJOURN_BOUNDS, sojourn)] += 1
        histogram.sum += sojourn

    def on_drop(self, packet: Packet, cause: str) -> None:
        """The packet will never reach the link."""
        self.drops[cause][packet.ecn] += 1
        self.dropped_bytes += packet.size

    @property
    def arrived_packets(self) -> int:
        """Packets offered."""
        return sum(self.arrived_by_ecn)

    @property
    def departed_packets(self) -> int:
        """Packets handed to the link."""
        return sum(self.departed_by_ecn)

    @property
    def dropped_packets(self) -> int:
        """Packets dropped, all causes."""
        return sum(map(sum, self.drops.values()))

    @property
    def marked_packets(self) -> int:
        """Packets set to CE here, all causes."""
        return sum(self.marks.values())

    @property
    def queued_packets(self) -> int:
        """Packets inside, by the identity."""
        return self.arrived_packets - self.departed_packets - self.dropped_packets

    @property
    def queued_bytes(self) -> int:
        """Bytes inside, by the identity."""
        return self.arrived_bytes - self.departed_bytes - self.dropped_bytes

    def dropped_for(self, cause: str) -> int:
        """Packets dropped for one cause, all codepoints."""
        return sum(self.drops[cause])


class QueueDiscipline(ABC):
    """Base class of all disciplines.

    A subclass keeps `backlog_packets` and `backlog_bytes` exact (packets inside,
    without the one the link is sending) and lists its counters in `queues`.
    """

    def __init__(self) -> None:
        self.backlog_packets = 0
        self.backlog_bytes = 0
        self.queues: tuple[QueueCounters, ...] = ()
        self.on_drop: DropHook | None = None
        """Told of every drop; set by whoever keeps a record."""

    @abstractmethod
    def enqueue(self, packet: Packet, now: float) -> None:
        """A packet arrives; it is stored or dropped."""

    @abstractmethod
    def dequeue(self, now: float) -> Packet | None:
        """The next packet to send, or None: empty, or held back until `next_timeout`."""

    def next_timeout(self) -> float | None:
        """When to ask again although `dequeue` gave None with a backlog (s).

        None for every discipline that always gives a packet when it has one.
        """
        return None

    def advance(self, now: float) -> None:
        """Bring what runs by the clock up to and including `now` (s), e.g. before reading gauges.

        Never needed for correct packets: `enqueue` and `dequeue` catch up by themselves.
        """
        return None

    def backlog(self) -> tuple[int, int]:
        """Packets and bytes inside."""
        return self.backlog_packets, self.backlog_bytes

    @abstractmethod
    def describe(self) -> dict[str, str | int | float | bool | None]:
        """Every effective parameter, for the header of a run."""

    def gauges(self, now: float) -> dict[str, float]:
        """Present inner values by name (delays in s), for a time series; changes nothing."""
        return {}

    def _lose(self, counters: QueueCounters, packet: Packet, cause: str, now: float) -> None:
        """Count a drop and tell the hook."""
        counters.on_drop(packet, cause)
        if self.on_drop is not None:
            self.on_drop(packet, cause, now)


def set_ce(packet: Packet, cause: str, counters: QueueCounters) -> None:
    """Mark an ECN-capable packet and count it under `cause`; one that arrived as CE stays CE."""
    packet.ecn = CE
    packet.mark = cause
    counters.marks[cause] += 1


class BuildQueue(Protocol):
    """Makes a discipline from its validated configuration."""

    def __call__(self, config: Any, *, rng: random.Random, now: float) -> QueueDiscipline:
        """`now` (s) is when the link starts; ConfigError if the parameters do not fit together."""


@dataclass(frozen=True, slots=True)
class QueueSpec:
    """What an entry point of the group `streamd.queue_disciplines` names."""

    name: str
    summary: str
    config_type: type
    """A frozen dataclass with a default for every field: the section `[queue.<name>]`."""
    build: BuildQueue
    source: str = ""
    """RFC, paper or program, section, revision."""
    api_version: int = 1
