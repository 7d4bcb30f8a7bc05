"""DualPI2 as Linux's sch_dualpi2 judges packets (mode `linux`).

Theory of operation. PI2 leaves the last two full-size packets alone: with less
than 2 MTU left behind, nothing is dropped or marked for p'. Classic is hit when
two independent draws are both at most p'; L4S is marked when one draw is at
most k * p'. In overload (k * p' above 1) L4S packets are dropped by the Classic
rule and otherwise marked, unless `overload` is `overflow`: then p' is capped
just below overload and only the limit drops. Afterwards, and by itself, the
step: an L4S packet that waited longer than 1 ms is marked. A packet hit twice
counts under the first cause, and in `step_also`.

With `drop_at=enqueue` PI2 decides on arrival and the step at the link as before.

Source: Linux 6.18 net/sched/sch_dualpi2.c; specification of the emulator, section 3.2.
Deviations: sizes are charged IP bytes, so the MTU is 1500 and not 1514; the memory
limit on socket buffers, classification by filter and priority, and the split
of GSO packets have no counterpart here.
"""

import random
from collections import deque

from streamd.ecn import NOT_ECT
from streamd.link.dualpi2_config import Parameters
from streamd.link.dualpi2_core import (
    DROP_CAUSES,
    DROP_CLASSIC,
    DROP_OVERLOAD,
    MARK_CAUSES,
    MARK_CLASSIC,
    MARK_COUPLED,
    MARK_OVERLOAD,
    MARK_STEP,
    PASS,
    DualPi2,
)
from streamd.link.queue import TIME_SLACK, Packet, set_ce


class LinuxDualPi2(DualPi2):
    """See the module's theory of operation."""

    def __init__(self, parameters: Parameters, *, rng: random.Random, now: float) -> None:
        super().__init__(parameters, rng=rng, now=now)
        self._step = parameters.step + TIME_SLACK
        self._step_packets = parameters.step_packets
        self._l_min_len = parameters.l_min_len
        self._min_qlen_step = parameters.min_qlen_step
        self._drop_l4s = parameters.overload == "drop"
        self._early = parameters.drop_at == "enqueue"
        self._spared_bytes = 2 * parameters.mtu

    def _accept(self, packet: Packet, fifo: deque[Packet], now: float) -> None:
        if fifo is self._l4s:
            packet.step_ok = len(fifo) >= self._min_qlen_step
        if self._early:
            is_l4s = fifo is self._l4s
            verdict = self._coupled_l4s() if is_l4s else self._coupled_classic(packet)
            counters = self._l_counters if is_l4s else self._c_counters
            if verdict < 0:
                self._lose(counters, packet, DROP_CAUSES[-verdict], now)
                return
            if verdict:
                set_ce(packet, MARK_CAUSES[verdict], counters)
        super()._accept(packet, fifo, now)

    def _judge_l4s(self, packet: Packet, now: float) -> int:
        verdict = PASS if self._early else self._coupled_l4s()
        if verdict >= 0 and packet.step_ok and self._over_step(now - packet.arrived_at):
            marked_early = self._early and packet.mark is not None
            if verdict == PASS and not marked_early:
                return MARK_STEP
            self._l_counters.step_also += 1
        return verdict

    def _judge_classic(self, packet: Packet) -> int:
        return PASS if self._early else self._coupled_classic(packet)

    def _coupled_l4s(self) -> int:
        if self.backlog_bytes < self._spared_bytes:
            return PASS
        pi2 = self._pi2
        if pi2.p_cl > 1.0:
            if self._drop_l4s and self._l_chance.hit_both(pi2.p):
                return DROP_OVERLOAD
            return MARK_OVERLOAD
        return MARK_COUPLED if self._l_chance.hit(pi2.p_cl) else PASS

    def _coupled_classic(self, packet: Packet) -> int:
        pi2 = self._pi2
        if self.backlog_bytes < self._spared_bytes or not self._c_chance.hit_both(pi2.p):
            return PASS
        if pi2.p_cl > 1.0:
            return DROP_OVERLOAD
        return DROP_CLASSIC if packet.ecn == NOT_ECT else MARK_CLASSIC

    def _over_step(self, sojourn: float) -> bool:
        left = len(self._l4s)
        if left <= self._l_min_len:
            return False
        if self._step_packets is not None:
            return left > self._step_packets
        return sojourn > self._step
