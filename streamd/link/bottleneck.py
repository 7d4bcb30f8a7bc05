"""The bottleneck: a queue discipline in front of a link that is a trace or a constant rate.

Theory of operation. Both links are lazy: they remember what they would do next
and catch up when an arrival or a call of `advance` shows that time has passed.
A departure carries the time of the schedule, not that of the wake-up.

The trace link spends delivery opportunities as Mahimahi does. Each carries a
fixed number of bytes. The packet in transit goes first, then the queue is asked
for packets while bytes remain; what does not fit goes on in the next
opportunity. With nothing to send the rest is lost: capacity is never banked.
Opportunities up to and including the time of an arrival come before it, so an
arrival can never use one that is already due. While idle the link leaves its
place in the trace alone and looks it up at the next arrival, so a packet that
is read late but stamped early still meets the right opportunity.

The constant-rate link sends one packet at a time, for 8 * size / rate seconds.
The queue is asked at the start, the packet departs at the end. An idle link
takes a packet at its arrival. At equal times the end of a transmission and the
next dequeue come before the arrival.

Source: specification of the emulator, section 1.2 (Mahimahi's link_queue).
"""

import math
from abc import abstractmethod
from bisect import bisect_left
from dataclasses import dataclass

from streamd.errors import ConfigError
from streamd.histogram import Histogram
from streamd.link.node import Node
from streamd.link.queue import SOJOURN_BOUNDS, DropHook, Packet, QueueDiscipline
from streamd.link.trace import Trace

OPPORTUNITY_BYTES = 1500
MTU_BYTES = 1500


@dataclass(frozen=True, slots=True)
class LinkCounters:
    """A snapshot of what a link did. On a constant-rate link the opportunities are 0."""

    arrived_packets: int
    departed_packets: int
    departed_bytes: int
    oversize_packets: int
    """Dropped before the queue: larger than the link can carry."""
    opportunities: int
    """Delivery opportunities up to the snapshot."""
    opportunities_used: int
    """Of these, how many carried at least a byte."""
    offered_bytes: int
    """Capacity up to the snapshot."""
    used_bytes: int
    wasted_idle_bytes: int
    """Capacity lost while there was nothing to send."""
    wasted_partial_bytes: int
    """Capacity lost at the end of opportunities that carried something."""


class Bottleneck(Node):
    """What both links share: the queue, the size limit, the departure."""

    def __init__(self, queue: QueueDiscipline, *, max_bytes: int) -> None:
        super().__init__()
        self.queue = queue
        self._max_bytes = max_bytes
        self._transit: Packet | None = None
        self._arrived = 0
        self._departed = 0
        self._departed_bytes = 0
        self.oversize = [0, 0, 0, 0]
        """Packets larger than the link can carry, by codepoint."""
        self.delay = Histogram(SOJOURN_BOUNDS)
        """Departure minus arrival (s): sojourn and transmission."""

    def watch_drops(self, hook: DropHook) -> None:
        """Tell `hook` of every drop, in the queue and before it."""
        self.on_drop = self.queue.on_drop = hook

    @property
    def in_transit_packets(self) -> int:
        """1 while a packet that left the queue has not yet left the link."""
        return 0 if self._transit is None else 1

    @property
    def held_packets(self) -> int:
        return self.queue.backlog_packets + self.in_transit_packets

    @property
    def dropped_packets(self) -> int:
        return sum(self.oversize) + sum(q.dropped_packets for q in self.queue.queues)

    def enqueue(self, packet: Packet, now: float) -> None:
        self._arrived += 1
        if packet.size > self._max_bytes:
            packet.arrived_at = now
            self.oversize[packet.ecn] += 1
            if self.on_drop is not None:
                self.on_drop(packet, "oversize", now)
            return
        self._accept(packet, now)

    @abstractmethod
    def _accept(self, packet: Packet, now: float) -> None:
        """Catch up, then queue a packet that is not too large."""

    @abstractmethod
    def counters(self, now: float) -> LinkCounters:
        """What happened up to `now` (s); changes nothing."""

    @abstractmethod
    def describe(self) -> dict[str, str | int | float | bool | None]:
        """Every parameter, for the header of a run."""

    def _depart(self, packet: Packet, at: float) -> None:
        packet.departed_at = at
        self._departed += 1
        self._departed_bytes += packet.size
        histogram = self.delay
        delay = at - packet.arrived_at
        # Histogram.observe, written out: this line runs for every packet.
        histogram.counts[bisect_left(SOJOURN_BOUNDS, delay)] += 1
        histogram.sum += delay
        self.sink(packet, at)


class TraceLink(Bottleneck):
    """Delivery opportunities from a trace."""

    def __init__(
        self,
        queue: QueueDiscipline,
        trace: Trace,
        *,
        base: float,
        opportunity_bytes: int = OPPORTUNITY_BYTES,
        subticks: int = 1,
        repeat: bool = True,
    ) -> None:
        """`base` (s) is time 0 of the trace. `subticks` 4 spreads each ms over its quarters.

        Without `repeat` the link carries nothing after the last line.
        ConfigError when `subticks` is neither 1 nor 4 or an opportunity has no bytes.
        """
        if opportunity_bytes < 1:
            raise ConfigError(f"an opportunity of {opportunity_bytes} bytes carries nothing")
        super().__init__(queue, max_bytes=opportunity_bytes)
        self.trace = trace
        self._opportunity = opportunity_bytes
        self._subticks = subticks
        self._repeat = repeat
        self._cursor = trace.cursor(base=base, subticks=subticks, repeat=repeat)
        self._need = 0
        self._used = 0
        self._partial = 0

    @property
    def exhausted(self) -> bool:
        """Whether a trace that is not repeated has no opportunity left."""
        return self._cursor.next_at == math.inf

    def _accept(self, packet: Packet, now: float) -> None:
        if self._cursor.next_at <= now:
            self.advance(now)
            if self._cursor.next_at <= now:
                # Idle since then. The queue is told once that the link asked in vain.
                self.queue.dequeue(self._cursor.next_at)
                self._cursor.skip(now)
        self.queue.enqueue(packet, now)

    def advance(self, now: float) -> None:
        cursor, queue = self._cursor, self.queue
        while cursor.next_at <= now and (queue.backlog_packets or self._transit is not None):
            self._serve(cursor.next_at)
            cursor.step()

    def _serve(self, at: float) -> None:
        """Spend one opportunity."""
        left = self._opportunity
        packet, need = self._transit, self._need
        while True:
            if packet is None:
                packet = self.queue.dequeue(at)
                if packet is None:
                    self._partial += left if left < self._opportunity else 0
                    break
                need = packet.size
            if need > left:
                self._need = need - left
                left = 0
                break
            left -= need
            self._depart(packet, at)
            packet = None
            if not left:
                break
        self._transit = packet
        if left < self._opportunity:
            self._used += 1

    def next_timeout(self) -> float | None:
        if not self.queue.backlog_packets and self._transit is None:
            return None
        return None if self.exhausted else self._cursor.next_at

    def counters(self, now: float) -> LinkCounters:
        count = self._cursor.count(now)
        offered = count * self._opportunity
        idle = (count - self._used) * self._opportunity
        return LinkCounters(
            arrived_packets=self._arrived,
            departed_packets=self._departed,
            departed_bytes=self._departed_bytes,
            oversize_packets=sum(self.oversize),
            opportunities=count,
            opportunities_used=self._used,
            offered_bytes=offered,
            used_bytes=offered - idle - self._partial,
            wasted_idle_bytes=idle,
            wasted_partial_bytes=self._partial,
        )

    def describe(self) -> dict[str, str | int | float | bool | None]:
        return {
            "link": "trace",
            "trace": self.trace.name,
            "trace_sha256": self.trace.sha256,
            "opportunity_bytes": self._opportunity,
            "subticks": self._subticks,
            "repeat": self._repeat,
        }


class ConstantRateLink(Bottleneck):
    """A serial link: one packet after the other, each for its size over the rate."""

    def __init__(
        self, queue: QueueDiscipline, rate_bps: float, *, base: float, mtu: int = MTU_BYTES
    ) -> None:
        """`base` (s) is when the link starts, `mtu` the largest size it carries as charged.

        ConfigError when the rate is not positive and finite.
        """
        if not (rate_bps > 0 and math.isfinite(rate_bps)):
            raise ConfigError(f"a link needs a rate above 0, got {rate_bps:g} bit/s")
        super().__init__(queue, max_bytes=mtu)
        self.rate_bps = rate_bps
        self._base = base
        self._busy_since = self._free_at = base
        self._busy_bits = 0
        self._idle = 0.0

    def _accept(self, packet: Packet, now: float) -> None:
        if self._transit is not None or self.queue.backlog_packets:
            self.advance(now)
        self.queue.enqueue(packet, now)
        if self._transit is None:
            self._start(max(now, self._free_at))

    def advance(self, now: float) -> None:
        while True:
            if self._transit is None and not self._retry(now):
                return
            at, packet = self._free_at, self._transit
            if packet is None or at > now:
                return
            self._transit = None
            self._depart(packet, at)
            self._continue(at)

    def _retry(self, now: float) -> bool:
        """Idle with a backlog the discipline holds back: ask again when it said, not when we woke.

        Whether a packet is being sent now.
        """
        if not self.queue.backlog_packets:
            return False
        at = self.queue.next_timeout()
        if at is None or at > now:
            return False
        self._start(max(at, self._free_at))
        return self._transit is not None

    def _start(self, at: float) -> None:
        """The link is idle at `at`: begin a busy period if there is a packet."""
        packet = self.queue.dequeue(at)
        if packet is None:
            return
        self._idle += at - self._free_at
        self._busy_since = at
        self._busy_bits = 0
        self._send(packet)

    def _continue(self, at: float) -> None:
        packet = self.queue.dequeue(at)
        if packet is not None:
            self._send(packet)

    def _send(self, packet: Packet) -> None:
        self._transit = packet
        # From the start of the busy period, not from the last end: errors do not add up.
        self._busy_bits += 8 * packet.size
        self._free_at = self._busy_since + self._busy_bits / self.rate_bps

    def next_timeout(self) -> float | None:
        if self._transit is not None:
            return self._free_at
        return self.queue.next_timeout() if self.queue.backlog_packets else None

    def counters(self, now: float) -> LinkCounters:
        idle = self._idle + (max(now - self._free_at, 0.0) if self._transit is None else 0.0)
        bytes_per_s = self.rate_bps / 8
        offered, wasted = (now - self._base) * bytes_per_s, idle * bytes_per_s
        return LinkCounters(
            arrived_packets=self._arrived,
            departed_packets=self._departed,
            departed_bytes=self._departed_bytes,
            oversize_packets=sum(self.oversize),
            opportunities=0,
            opportunities_used=0,
            offered_bytes=round(offered),
            used_bytes=round(offered - wasted),
            wasted_idle_bytes=round(wasted),
            wasted_partial_bytes=0,
        )

    def describe(self) -> dict[str, str | int | float | bool | None]:
        return {"link": "constant", "rate_bps": self.rate_bps, "mtu": self._max_bytes}
