"""DualPI2 as RFC 9332 appendix A judges packets (mode `rfc`).

Theory of operation. L4S has a native ramp (or step) on sojourn; it is not
judged while at most `l_min_len` packets are left behind, so that a lone
full-size packet on a slow link is not marked. The larger of native and coupled
likelihood decides. In overload an L4S packet is first tested for a drop with
p'^2, then for a mark with k * p'. Classic packets that are not ECN-capable are
dropped with p'^2, ECN-capable ones are marked until p'^2 reaches its cap
min(1/k^2, 1), then dropped. Likelihoods become decisions by the deterministic
counter, one per queue.

Source: RFC 9332 appendix A (figures 3 to 6); specification of the emulator, section 3.1.
Deviation: the scheduler is Linux's weighted one with 10 %, the RFC leaves the choice open.
The limit is `packets * mtu` bytes; the RFC's 250 ms at link rate is for the user to work out.
"""

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

_NS = 1e9


class RfcDualPi2(DualPi2):
    """See the module's theory of operation."""

    def __init__(self, parameters: Parameters, *, rng: random.Random, now: float) -> None:
        super().__init__(parameters, rng=rng, now=now)
        self._step = parameters.step + TIME_SLACK
        self._min_ns = round(parameters.step * _NS)
        self._range_ns = round(parameters.ramp * _NS)
        self._l_min_len = parameters.l_min_len
        self._p_c_max = min(1 / parameters.k**2, 1.0)
        self._drop_l4s = parameters.overload == "drop"

    def _judge_l4s(self, packet: Packet, now: float) -> int:
        pi2, chance = self._pi2, self._l_chance
        coupled = pi2.p_cl
        if coupled >= 1.0:
            if self._drop_l4s and chance.hit(pi2.p_c):
                return DROP_OVERLOAD
            return MARK_OVERLOAD if chance.hit(coupled) else PASS
        native = self._native(now - packet.arrived_at)
        if not chance.hit(native if native > coupled else coupled):
            return PASS
        return MARK_STEP if native >= coupled else MARK_COUPLED

    def _native(self, sojourn: float) -> float:
        """The L4S AQM's own likelihood."""
        if len(self._l4s) <= self._l_min_len:
            return 0.0
        if not self._range_ns:
            return 1.0 if sojourn > self._step else 0.0
        # Whole nanoseconds keep the counter's sums free of rounding: 0.9 ms is 0.25 exactly.
        return min(max((round(sojourn * _NS) - self._min_ns) / self._range_ns, 0.0), 1.0)

    def _judge_classic(self, packet: Packet) -> int:
        p_c = self._pi2.p_c
        if not self._c_chance.hit(p_c):
            return PASS
        if p_c >= self._p_c_max:
            return DROP_OVERLOAD
        return DROP_CLASSIC if packet.ecn == NOT_ECT else MARK_CLASSIC
