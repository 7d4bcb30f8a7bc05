"""DualPI2 as the 5G-VCA-CC fork of Mahimahi judges packets (modes `mahimahi`, `-n`, `-m`).

Theory of operation. As Linux, with these differences. The native step needs
more than `l_min_len` packets left in the L4S queue. One draw decides for L4S
against the larger of native and coupled likelihood, and it ignores the 2-MTU
rule; Classic takes one draw against p'^2. The 2-MTU rule holds for what is done
to a Classic packet and in overload: with less left the packet passes untouched,
an L4S packet in overload even without a native mark. The limit is in bytes, `packets * mtu`.

Profiles. `mahimahi`: these rules with right gains, updates by the clock, MTU 1500
(`gain` makes them weak). `mahimahi-n`, the nanosecond version: gains 1/274.878,
updates only when packets move, MTU 1504. `mahimahi-m`, the millisecond version: right
gains, updates only when packets move, MTU 1504, and the step judges the packet
behind, in whole milliseconds, with at-least instead of above.

Source: specification of the emulator, section 4 (items 1 to 10).
"""

import math
import random

from streamd.ecn import NOT_ECT
from streamd.link.dualpi2_config import Parameters
from streamd.link.dualpi2_core import (
    DROP_CLASSIC,
    DROP_OVERLOAD,
    MARK_CLASSIC,
    MARK_COUPLED,
    MARK_OVERLOAD,
    MARK_STEP,
    PASS,
    DualPi2,
)
from streamd.link.queue import TIME_SLACK, Packet


class MahimahiDualPi2(DualPi2):
    """See the module's theory of operation."""

    def __init__(self, parameters: Parameters, *, rng: random.Random, now: float) -> None:
        super().__init__(parameters, rng=rng, now=now)
        self._step = parameters.step + TIME_SLACK
        self._step_ms = round(parameters.step * 1000)
        self._l_min_len = parameters.l_min_len
        self._judge_next = parameters.judge_next
        self._drop_l4s = parameters.overload == "drop"
        self._spared_bytes = 2 * parameters.mtu

    def _judge_l4s(self, packet: Packet, now: float) -> int:
        pi2, chance = self._pi2, self._l_chance
        coupled = pi2.p_cl
        if coupled > 1.0:
            dropped = self._drop_l4s and chance.hit(pi2.p_c)
            if self.backlog_bytes < self._spared_bytes:
                return PASS
            return DROP_OVERLOAD if dropped else MARK_OVERLOAD
        native = 1.0 if self._over_step(packet, now) else 0.0
        if not chance.hit(native if native > coupled else coupled):
            return PASS
        return MARK_STEP if native >= coupled else MARK_COUPLED

    def _judge_classic(self, packet: Packet) -> int:
        pi2 = self._pi2
        if not self._c_chance.hit(pi2.p_c) or self.backlog_bytes < self._spared_bytes:
            return PASS
        if pi2.p_cl > 1.0:
            return DROP_OVERLOAD
        return DROP_CLASSIC if packet.ecn == NOT_ECT else MARK_CLASSIC

    def _over_step(self, packet: Packet, now: float) -> bool:
        if len(self._l4s) <= self._l_min_len:
            return False
        if self._judge_next:
            return bool(self._l4s) and _whole_ms(now, self._l4s[0].arrived_at) >= self._step_ms
        return now - packet.arrived_at > self._step


def _whole_ms(now: float, arrived_at: float) -> int:
    """The difference of two clocks that only show milliseconds."""
    return math.floor(now * 1000 + 1e-6) - math.floor(arrived_at * 1000 + 1e-6)
