"""The parts DualPI2 is made of: the PI2 controller, the two kinds of chance, the two schedulers.

Source: RFC 9332 appendix A; Linux sch_dualpi2 (weighted scheduler and its credit).
"""

import random
from typing import Protocol

from streamd.link.queue import Packet


class Pi2:
    """The proportional-integral controller on queuing delay that both queues share.

    p' grows with how far the delay is above target (alpha) and with how fast it
    grows (beta); Classic is hit with p'^2, L4S is marked with k * p'.
    """

    __slots__ = ("_alpha", "_beta", "_k", "_p_max", "_previous", "_target", "p", "p_c", "p_cl")

    def __init__(
        self, *, target: float, alpha: float, beta: float, k: float, p_max: float = 1.0
    ) -> None:
        """`target` in s, gains in 1/s per update, `p_max` the cap of p'."""
        self._target = target
        self._alpha = alpha
        self._beta = beta
        self._k = k
        self._p_max = p_max
        self._previous = 0.0
        self.p = 0.0
        """p', the base probability."""
        self.p_c = 0.0
        """p'^2, for Classic."""
        self.p_cl = 0.0
        """k * p', coupled to L4S; above 1 is overload."""

    def update(self, delay: float) -> None:
        """One period is over; `delay` (s) is the longer wait of the two heads, 0 if none."""
        step = self._alpha * (delay - self._target) + self._beta * (delay - self._previous)
        self._previous = delay
        self._set(self.p + step)

    def decay(self, periods: int) -> None:
        """As many updates with nothing queued, at once; `update(0.0)` must have come before."""
        self._set(self.p - periods * self._alpha * self._target)

    def _set(self, p: float) -> None:
        self.p = p = min(max(p, 0.0), self._p_max)
        self.p_c = p * p
        self.p_cl = self._k * p


class Chance(Protocol):
    """Turns a likelihood into a decision."""

    def hit(self, likelihood: float) -> bool:
        """Whether this packet is hit."""

    def hit_both(self, likelihood: float) -> bool:
        """Whether two independent tests at `likelihood` would both hit."""


class RandomDraw:
    """Independent draws; the second of two is only made after the first one hit."""

    __slots__ = ("_random",)

    def __init__(self, rng: random.Random) -> None:
        self._random = rng.random

    def hit(self, likelihood: float) -> bool:
        return self._random() <= likelihood and likelihood > 0.0

    def hit_both(self, likelihood: float) -> bool:
        return self._random() <= likelihood and self._random() <= likelihood and likelihood > 0.0


class Recur:
    """RFC 9332's `recur`: adds up likelihoods and hits when the sum passes 1; no randomness."""

    __slots__ = ("_count",)

    def __init__(self) -> None:
        self._count = 0.0

    def hit(self, likelihood: float) -> bool:
        self._count += likelihood
        if self._count > 1.0:
            self._count -= 1.0
            return True
        return False

    def hit_both(self, likelihood: float) -> bool:
        return self.hit(likelihood * likelihood)


class Scheduler(Protocol):
    """Chooses between the two queues; asked only while both hold packets."""

    def prefers_l4s(self, l4s_head: Packet, classic_head: Packet) -> bool:
        """Whether the L4S head goes next."""

    def sent(self, from_l4s: bool, size: int) -> None:
        """A packet was delivered while the other queue held one."""

    def reset(self) -> None:
        """The link asked and both queues were empty."""

    @property
    def credit(self) -> float:
        """The present lead, for the time series; 0 where there is no such thing."""


class WeightedRoundRobin:
    """Linux's scheduler: L4S first, Classic when L4S has used up its share.

    The credit falls by the L4S weight per Classic byte and grows by the Classic
    weight per L4S byte; above 0 it is Classic's turn. In the long run, both
    busy, Classic gets `wc` percent of the bytes.
    """

    __slots__ = ("_start", "_wc", "_wl", "credit")

    def __init__(self, *, wc: float, mtu: int) -> None:
        """`wc` in percent."""
        self._wc = wc
        self._wl = 100 - wc
        self._start = self.credit = mtu * (wc - self._wl)

    def prefers_l4s(self, l4s_head: Packet, classic_head: Packet) -> bool:
        return self.credit <= 0

    def sent(self, from_l4s: bool, size: int) -> None:
        self.credit += self._wc * size if from_l4s else -self._wl * size

    def reset(self) -> None:
        self.credit = self._start


class TimeShiftedFifo:
    """Serves L4S unless Classic's head has waited longer by more than `tshift` seconds."""

    __slots__ = ("_tshift", "credit")

    def __init__(self, *, tshift: float) -> None:
        self._tshift = tshift
        self.credit = 0.0

    def prefers_l4s(self, l4s_head: Packet, classic_head: Packet) -> bool:
        return l4s_head.arrived_at - classic_head.arrived_at <= self._tshift

    def sent(self, from_l4s: bool, size: int) -> None:
        return None

    def reset(self) -> None:
        return None
