"""DualPI2: two queues, one delay controller, and a scheduler; what all its versions share.

Theory of operation. Packets that ask for L4S treatment (ECT(1), CE) and the
rest (Classic) wait in two queues. Every `tupdate` a PI controller turns the
longer of the two head delays into a base probability p'. Classic packets are
dropped or marked with p'^2, the way Reno-like senders need it; L4S packets are
marked with at least k * p', so that senders of both kinds get about the same
rate, or with the verdict of a shallow threshold of their own. The scheduler
serves L4S first without starving Classic. When k * p' passes 1 marking has no
more to say (overload) and both queues drop.

The versions differ in how a packet is judged: `_judge_l4s` and
`_judge_classic` of the subclasses. A verdict is an int: 0 passes the packet on,
a positive one indexes MARK_CAUSES, a negative one DROP_CAUSES.

Time: updates happen on the grid start + n * tupdate and are caught up inside
the next call. An update at the very time of a packet event comes after it.

Source: RFC 9332 section 2 and appendix A; specification of the emulator, sections 3 and 4.
"""

import random
import sys
from abc import abstractmethod
from collections import deque
from dataclasses import asdict

from streamd.ecn import ECT0, ECT1
from streamd.link.dualpi2_config import Parameters
from streamd.link.dualpi2_parts import (
    Chance,
    Pi2,
    RandomDraw,
    Recur,
    Scheduler,
    TimeShiftedFifo,
    WeightedRoundRobin,
)
from streamd.link.queue import TIME_SLACK, Packet, QueueCounters, QueueDiscipline, set_ce

PASS = 0
MARK_STEP, MARK_COUPLED, MARK_CLASSIC, MARK_OVERLOAD = 1, 2, 3, 4
DROP_CLASSIC, DROP_OVERLOAD = -1, -2
MARK_CAUSES = ("", "step", "coupled", "classic", "overload")
DROP_CAUSES = ("", "classic", "overload")

_LIMITS = ("limit_packets", "limit_bytes")
_LONG_IDLE = 1000
"""Missed updates of an empty queue above which they are computed in one step."""


class DualPi2(QueueDiscipline):
    """The two queues, the limit, the clock and the scheduler."""

    def __init__(self, parameters: Parameters, *, rng: random.Random, now: float) -> None:
        super().__init__()
        p = self._parameters = parameters
        self._l4s: deque[Packet] = deque()
        self._classic: deque[Packet] = deque()
        self._l_counters = QueueCounters(
            "l4s", marks=("step", "coupled", "overload"), drops=(*_LIMITS, "overload")
        )
        self._c_counters = QueueCounters(
            "classic", marks=("classic",), drops=(*_LIMITS, "classic", "overload")
        )
        self.queues = (self._l_counters, self._c_counters)
        cap = 1 / p.k if p.overload == "overflow" and p.mode == "linux" else 1.0
        self._pi2 = Pi2(target=p.target, alpha=p.alpha, beta=p.beta, k=p.k, p_max=min(cap, 1.0))
        self._l_chance: Chance = RandomDraw(rng) if p.likelihood == "random" else Recur()
        self._c_chance: Chance = RandomDraw(rng) if p.likelihood == "random" else Recur()
        self._scheduler: Scheduler = (
            WeightedRoundRobin(wc=p.wc, mtu=p.mtu)
            if p.scheduler == "wrr"
            else TimeShiftedFifo(tshift=p.tshift)
        )
        self._mtu = p.mtu
        self._limit_packets = p.limit_packets
        self._limit_bytes = p.limit_bytes
        # CE has the bit of ECT(1) set, so it needs no case of its own.
        self._l4s_bits = ECT1 if p.l4s_ect == "ect1" else ECT1 | ECT0
        self._start = now
        self._updates = 0
        self._tick = now + p.tupdate
        self._tick_over = self._tick + TIME_SLACK

    @abstractmethod
    def _judge_l4s(self, packet: Packet, now: float) -> int:
        """The verdict on an L4S packet that was just removed."""

    @abstractmethod
    def _judge_classic(self, packet: Packet) -> int:
        """The verdict on a Classic packet that was just removed."""

    def enqueue(self, packet: Packet, now: float) -> None:
        if now > self._tick_over:
            self._catch_up(now)
        if packet.ecn & self._l4s_bits:
            fifo, counters = self._l4s, self._l_counters
        else:
            fifo, counters = self._classic, self._c_counters
        counters.on_arrival(packet, now)
        if self.backlog_packets >= self._limit_packets:
            self._lose(counters, packet, "limit_packets", now)
        elif self.backlog_bytes + self._mtu > self._limit_bytes:
            self._lose(counters, packet, "limit_bytes", now)
        else:
            self._accept(packet, fifo, now)

    def _accept(self, packet: Packet, fifo: deque[Packet], now: float) -> None:
        """Store a packet that is within the limits."""
        fifo.append(packet)
        self.backlog_packets += 1
        self.backlog_bytes += packet.size

    def dequeue(self, now: float) -> Packet | None:
        if now > self._tick_over:
            self._catch_up(now)
        l4s, classic = self._l4s, self._classic
        while True:
            if l4s:
                from_l4s = not classic or self._scheduler.prefers_l4s(l4s[0], classic[0])
            elif classic:
                from_l4s = False
            else:
                self._scheduler.reset()
                return None
            packet = (l4s if from_l4s else classic).popleft()
            self.backlog_packets -= 1
            self.backlog_bytes -= packet.size
            if from_l4s:
                verdict, counters = self._judge_l4s(packet, now), self._l_counters
            else:
                verdict, counters = self._judge_classic(packet), self._c_counters
            if verdict < 0:
                self._lose(counters, packet, DROP_CAUSES[-verdict], now)
                continue
            if verdict:
                set_ce(packet, MARK_CAUSES[verdict], counters)
            if classic if from_l4s else l4s:
                self._scheduler.sent(from_l4s, packet.size)
            counters.on_departure(packet, now)
            return packet

    def advance(self, now: float) -> None:
        if now >= self._tick - TIME_SLACK:
            self._catch_up(now + 2 * TIME_SLACK)

    def _catch_up(self, now: float) -> None:
        """Run the updates whose time has passed."""
        if self._parameters.update == "traffic":
            self._pi2.update(self._delay(now))
            self._next_tick(int((now - self._start) / self._parameters.tupdate))
            return
        while self._tick_over < now:
            self._pi2.update(self._delay(self._tick))
            self._next_tick(self._updates + 1)
            if not self.backlog_packets:
                missed = int((now - self._tick) / self._parameters.tupdate)
                # with p at 0 the step is exact, however short
                if missed > _LONG_IDLE or (missed > 0 and not self._pi2.p):
                    self._pi2.decay(missed)
                    self._next_tick(self._updates + missed)

    def _next_tick(self, updates: int) -> None:
        self._updates = updates
        self._tick = self._start + (updates + 1) * self._parameters.tupdate
        self._tick_over = self._tick + TIME_SLACK

    def _delay(self, at: float) -> float:
        """The longer wait of the two heads (s)."""
        return max(_wait(self._l4s, at), _wait(self._classic, at))

    def describe(self) -> dict[str, str | int | float | bool | None]:
        described = {"discipline": "dualpi2", **asdict(self._parameters)}
        return {name: None if value == sys.maxsize else value for name, value in described.items()}

    def gauges(self, now: float) -> dict[str, float]:
        return {
            "p": self._pi2.p,
            "p_c": self._pi2.p_c,
            "p_cl": self._pi2.p_cl,
            "delay_l4s": _wait(self._l4s, now),
            "delay_classic": _wait(self._classic, now),
            "packets_l4s": len(self._l4s),
            "packets_classic": len(self._classic),
            "credit": self._scheduler.credit,
        }


def _wait(fifo: deque[Packet], at: float) -> float:
    return max(at - fifo[0].arrived_at, 0.0) if fifo else 0.0
