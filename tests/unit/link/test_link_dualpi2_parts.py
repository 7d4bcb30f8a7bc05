"""DualPI2's parts alone: the controller, the chances, the schedulers."""

import random

import pytest

from streamd.link.dualpi2_parts import (
    Pi2,
    RandomDraw,
    Recur,
    TimeShiftedFifo,
    WeightedRoundRobin,
)
from streamd.link.queue import Packet


class Fixed(random.Random):
    """Gives the numbers it was told to."""

    def __init__(self, *values: float) -> None:
        super().__init__(0)
        self.values = list(values)

    def random(self) -> float:
        return self.values.pop(0)


def test_pi2_integrates_the_error_and_follows_the_slope() -> None:
    pi2 = Pi2(target=0.015, alpha=0.16, beta=3.2, k=2.0)
    pi2.update(0.020)
    # 0.16 * 0.005 + 3.2 * 0.020
    assert pi2.p == pytest.approx(0.0648)
    assert pi2.p_c == pytest.approx(0.0648**2)
    assert pi2.p_cl == pytest.approx(0.1296)
    pi2.update(0.020)
    assert pi2.p == pytest.approx(0.0656)


def test_pi2_stays_between_0_and_its_cap() -> None:
    pi2 = Pi2(target=0.015, alpha=0.16, beta=3.2, k=2.0, p_max=0.5)
    pi2.update(9.0)
    assert (pi2.p, pi2.p_cl) == (0.5, 1.0)
    pi2.update(0.0)
    assert pi2.p == 0.0


def test_an_idle_stretch_at_once_is_the_same_as_one_by_one() -> None:
    one, many = (Pi2(target=0.015, alpha=0.16, beta=3.2, k=2.0) for _ in range(2))
    for pi2 in (one, many):
        pi2.update(0.25)
        pi2.update(0.25)
        pi2.update(0.24)
    assert one.p > 0.8
    one.update(0.0)
    many.update(0.0)
    for _ in range(5):
        one.update(0.0)
    many.decay(5)
    assert many.p == pytest.approx(one.p)


def test_a_draw_hits_up_to_the_likelihood_and_never_at_0() -> None:
    chance = RandomDraw(Fixed(0.3, 0.31, 0.0))
    assert chance.hit(0.3)
    assert not chance.hit(0.3)
    assert not chance.hit(0.0)


def test_two_draws_must_both_hit_and_the_second_is_only_made_after_the_first() -> None:
    rng = Fixed(0.6, 0.1, 0.2, 0.1, 0.6)
    chance = RandomDraw(rng)
    assert not chance.hit_both(0.5)
    assert chance.hit_both(0.5)
    assert not chance.hit_both(0.5)
    assert rng.values == []
    assert not RandomDraw(Fixed(0.0, 0.0)).hit_both(0.0)


def test_recur_hits_when_the_sum_passes_1() -> None:
    recur = Recur()
    assert [recur.hit(0.5) for _ in range(7)] == [False, False, True, False, True, False, True]
    assert not Recur().hit(1.0)
    assert [Recur().hit_both(0.5)] == [False]
    squares = Recur()
    assert [squares.hit_both(0.5) for _ in range(5)] == [False] * 4 + [True]


def test_wrr_gives_classic_its_share() -> None:
    wrr = WeightedRoundRobin(wc=10.0, mtu=1500)
    head = Packet(b"", 1500, 0)
    assert wrr.credit == -120_000
    served = []
    for _ in range(1000):
        from_l4s = wrr.prefers_l4s(head, head)
        wrr.sent(from_l4s, 1500)
        served.append(from_l4s)
    assert served[:9] == [True] * 9
    assert served.count(False) == 100
    wrr.reset()
    assert wrr.credit == -120_000


def test_the_time_shifted_fifo_lets_classic_in_when_it_waited_long_enough() -> None:
    scheduler = TimeShiftedFifo(tshift=0.03)
    classic, l4s = Packet(b"", 1, 0, 1.0), Packet(b"", 1, 1, 1.03)
    assert scheduler.prefers_l4s(l4s, Packet(b"", 1, 0, 1.01))
    assert not scheduler.prefers_l4s(Packet(b"", 1, 1, 1.04), classic)
    scheduler.sent(True, 1500)
    scheduler.reset()
    assert scheduler.credit == 0.0
