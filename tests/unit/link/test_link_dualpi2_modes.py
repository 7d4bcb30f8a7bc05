"""How each version of DualPI2 judges packets, rule by rule, in hand-made situations.

`waited` fills a queue at time 0 and lets it wait 0.2 s: p' is then 0.785 with
the gains 0.16 and 3.2, so k * p' is above 1 (overload). Before the first
update p' is 0.
"""

import random

import pytest

from streamd.ecn import CE, ECT0, ECT1, NOT_ECT
from streamd.link.dualpi2 import SPEC, DualPi2, DualPi2Config, build
from streamd.link.queue import Packet

GAINS = {"alpha": 0.16, "beta": 3.2, "tupdate": 0.016, "mtu": 1500}


class Fixed(random.Random):
    """Gives the numbers it was told to."""

    def __init__(self, *values: float) -> None:
        super().__init__(0)
        self.values = list(values)

    def random(self) -> float:
        return self.values.pop(0)


def make(mode: str, *draws: float, **options: object) -> DualPi2:
    config = DualPi2Config(mode=mode, **{**GAINS, **options})  # type: ignore[arg-type]
    return build(config, rng=Fixed(*draws), now=0.0)


def put(queue: DualPi2, count: int, ecn: int, *, now: float = 0.0, size: int = 1500) -> None:
    for _ in range(count):
        queue.enqueue(Packet(b"", size, ecn), now)


def waited(mode: str, ecn: int, *draws: float, count: int = 4, **options: object) -> DualPi2:
    queue = make(mode, *draws, **options)
    put(queue, count, ecn)
    queue.advance(0.2)
    return queue


def take(queue: DualPi2, now: float) -> Packet:
    packet = queue.dequeue(now)
    assert packet is not None
    return packet


def causes(queue: DualPi2) -> dict[str, int]:
    """Every non-zero mark and drop, as l4s.mark.step and the like."""
    found: dict[str, int] = {}
    for q in queue.queues:
        found |= {f"{q.name}.mark.{cause}": n for cause, n in q.marks.items() if n}
        found |= {f"{q.name}.drop.{cause}": sum(n) for cause, n in q.drops.items() if sum(n)}
    return found


def test_waiting_drives_p_into_overload() -> None:
    queue = waited("linux", ECT1)
    assert queue.gauges(0.2)["p"] == pytest.approx(0.785, abs=0.001)
    assert queue.gauges(0.2)["p_cl"] == pytest.approx(1.57, abs=0.002)
    assert queue.gauges(0.2)["delay_l4s"] == pytest.approx(0.2)


@pytest.mark.parametrize("ecn", [ECT1, CE])
def test_ect1_and_ce_go_to_l4s(ecn: int) -> None:
    queue = make("linux")
    put(queue, 1, ecn)
    assert queue.gauges(0.0)["packets_l4s"] == 1


@pytest.mark.parametrize("ecn", [NOT_ECT, ECT0])
def test_the_rest_goes_to_classic(ecn: int) -> None:
    queue = make("linux")
    put(queue, 1, ecn)
    assert queue.gauges(0.0)["packets_classic"] == 1


def test_any_ect_can_be_sent_to_l4s() -> None:
    queue = make("linux", l4s_ect="any")
    put(queue, 1, ECT0)
    put(queue, 1, NOT_ECT)
    assert queue.gauges(0.0)["packets_l4s"] == 1


@pytest.mark.parametrize(("after", "mark"), [(0.001, None), (0.0010001, "step")])
def test_the_step_is_strict_and_needs_no_backlog_in_linux(after: float, mark: str | None) -> None:
    queue = make("linux")
    put(queue, 1, ECT1, now=1000.0)
    packet = take(queue, 1000.0 + after)
    assert packet.mark == mark
    assert packet.ecn == (ECT1 if mark is None else CE)


def test_linux_spares_the_last_two_packets_of_pi2_but_not_of_the_step() -> None:
    queue = waited("linux", ECT1, count=2)
    take(queue, 0.2)
    assert causes(queue) == {"l4s.mark.step": 1}
    queue = waited("linux", NOT_ECT, count=2)
    take(queue, 0.2)
    assert causes(queue) == {}


def test_linux_overload_drops_l4s_on_two_draws_and_marks_the_rest() -> None:
    queue = waited("linux", ECT1, 0.1, 0.2, 0.1, 0.9, 0.9, count=5)
    packet = take(queue, 0.2)
    assert packet.mark == "overload"
    assert causes(queue) == {"l4s.drop.overload": 1, "l4s.mark.overload": 1}
    assert queue.queues[0].step_also == 1
    assert queue.backlog() == (3, 4500)


def test_linux_couples_one_draw_against_k_times_p() -> None:
    queue = make("linux", 0.3, 0.2)
    put(queue, 4, ECT1)
    queue.advance(0.048)
    p_cl = queue.gauges(0.048)["p_cl"]
    assert 0.2 < p_cl < 0.33
    fresh = make("linux", p_cl + 0.01, p_cl, step=1.0)
    put(fresh, 4, ECT1)
    assert take(fresh, 0.0485).mark is None
    assert take(fresh, 0.0485).mark == "coupled"


def test_linux_without_l4s_drops_caps_p_at_the_edge_of_overload() -> None:
    queue = waited("linux", ECT1, 0.99, overload="overflow")
    assert queue.gauges(0.2)["p_cl"] == 1.0
    assert take(queue, 0.2).mark == "coupled"


def test_linux_classic_marks_drops_and_drops_all_in_overload() -> None:
    for ecn, until, cause in (
        (ECT0, 0.1, "classic.mark.classic"),
        (NOT_ECT, 0.1, "classic.drop.classic"),
        (ECT0, 0.2, "classic.drop.overload"),
    ):
        queue = make("linux", 0.1, 0.1, 0.99)
        put(queue, 4, ecn)
        take(queue, until)
        assert causes(queue) == {cause: 1}


def test_linux_can_decide_on_arrival_and_still_steps_at_the_link() -> None:
    queue = waited("linux", NOT_ECT, 0.9, 0.9, 0.1, 0.1, 0.1, 0.9, drop_at="enqueue")
    assert causes(queue) == {}
    put(queue, 1, NOT_ECT, now=0.2)
    assert causes(queue) == {"classic.drop.overload": 1}
    put(queue, 1, ECT1, now=0.2)
    assert causes(queue) == {"classic.drop.overload": 1, "l4s.mark.overload": 1}
    packet = take(queue, 0.25)
    assert (packet.mark, packet.ecn) == ("overload", CE)
    assert queue.queues[0].step_also == 1
    assert causes(queue) == {"classic.drop.overload": 1, "l4s.mark.overload": 1}


def test_linux_steps_on_arrival_mode_for_unmarked_packets_too() -> None:
    queue = make("linux", drop_at="enqueue")
    put(queue, 1, ECT1)
    put(queue, 1, NOT_ECT)
    assert take(queue, 0.005).mark == "step"
    assert take(queue, 0.005).mark is None


def test_linux_step_in_packets_looks_at_what_is_left() -> None:
    queue = make("linux", 0.99, step_packets=1)
    put(queue, 3, ECT1)
    assert [take(queue, 0.0).mark for _ in range(3)] == ["step", None, None]


def test_linux_min_qlen_step_looks_at_what_an_arrival_found() -> None:
    queue = make("linux", *[0.99] * 3, min_qlen_step=1)
    put(queue, 3, ECT1)
    assert [take(queue, 0.01).mark for _ in range(3)] == [None, "step", "step"]


def test_linux_can_take_a_minimum_length_for_the_step() -> None:
    queue = make("linux", *[0.99] * 3, l_min_len=1)
    put(queue, 3, ECT1)
    assert [take(queue, 0.01).mark for _ in range(3)] == ["step", None, None]


def test_linux_counts_packets_against_the_limit() -> None:
    queue = make("linux", packets=3)
    put(queue, 4, ECT1, size=100)
    assert causes(queue) == {"l4s.drop.limit_packets": 1}


@pytest.mark.parametrize("mode", ["rfc", "mahimahi"])
def test_others_count_bytes_as_if_every_arrival_were_full_size(mode: str) -> None:
    queue = make(mode, packets=3)
    put(queue, 32, NOT_ECT, size=100)
    assert queue.backlog() == (31, 3100)
    assert causes(queue) == {"classic.drop.limit_bytes": 1}


def test_rfc_ramp_is_exact_on_the_counter() -> None:
    queue = make("rfc", l_min_len=-1)
    put(queue, 6, ECT1)
    # 0.9 ms is a quarter of the ramp: four quarters make 1, which is not above 1.
    assert [take(queue, 0.0009).mark for _ in range(5)] == [None] * 4 + ["step"]
    assert take(queue, 0.0012).mark == "step"


def test_rfc_does_not_ramp_with_one_packet_left() -> None:
    queue = make("rfc")
    put(queue, 3, ECT1)
    assert [take(queue, 0.01).mark for _ in range(3)] == [None, None, None]
    put(queue, 4, ECT1, now=0.01)
    assert [take(queue, 0.015).mark for _ in range(4)] == ["step", "step", None, None]


def test_rfc_step_is_strict() -> None:
    queue = make("rfc", step=0.001, ramp=0.0, l_min_len=-1)
    put(queue, 3, ECT1)
    assert [take(queue, 0.001).mark, take(queue, 0.0011).mark] == [None, None]
    assert take(queue, 0.0011).mark == "step"


def test_rfc_overload_tests_drop_then_mark_on_one_counter() -> None:
    queue = waited("rfc", ECT1, count=6)
    # p_C = 0.617, p_CL = 1.57: 0.617, 2.19 -> mark; 1.80 -> drop; 1.42 -> drop; 1.04 -> drop; ...
    assert take(queue, 0.2).mark == "overload"
    assert take(queue, 0.2).mark == "overload"
    assert causes(queue) == {"l4s.drop.overload": 3, "l4s.mark.overload": 2}
    assert queue.backlog_packets == 1


def test_rfc_overflow_never_drops_l4s() -> None:
    queue = waited("rfc", ECT1, overload="overflow", count=4)
    assert [take(queue, 0.2).mark for _ in range(4)] == ["overload"] * 4


def test_rfc_couples_when_the_ramp_says_less() -> None:
    queue = make("rfc", l_min_len=99)
    put(queue, 30, ECT1)
    marks = [take(queue, 0.049).mark for _ in range(30)]
    p_cl = queue.gauges(0.049)["p_cl"]
    assert set(marks) == {None, "coupled"}
    assert marks.count("coupled") == int(30 * p_cl)


def test_rfc_classic_marks_below_its_cap_and_drops_above() -> None:
    for ecn, until, expected in (
        (ECT0, 0.1, {"classic.mark.classic"}),
        (NOT_ECT, 0.1, {"classic.drop.classic"}),
        (ECT0, 0.2, {"classic.drop.overload"}),
        (NOT_ECT, 0.2, {"classic.drop.overload"}),
    ):
        queue = make("rfc")
        put(queue, 30, ecn)
        while queue.dequeue(until):
            pass
        assert set(causes(queue)) == expected


def test_the_fork_needs_two_packets_left_for_the_step() -> None:
    queue = make("mahimahi", *[0.5] * 4)
    put(queue, 4, ECT1)
    assert [take(queue, 0.002).mark for _ in range(4)] == ["step", "step", None, None]


def test_the_fork_takes_one_draw_against_the_larger_likelihood() -> None:
    queue = make("mahimahi", 0.3, 0.2)
    put(queue, 2, ECT1)
    queue.advance(0.048)
    assert 0.2 < queue.gauges(0.048)["p_cl"] < 0.33
    fresh = make("mahimahi", 0.9, 0.1)
    put(fresh, 2, ECT1)
    assert take(fresh, 0.0485).mark is None
    # No 2-MTU rule for the coupled mark: it was the last packet.
    assert take(fresh, 0.0485).mark == "coupled"


def test_the_fork_in_overload_lets_the_last_packets_pass_untouched() -> None:
    queue = waited("mahimahi", ECT1, 0.1, 0.9, 0.1, 0.9, count=4)
    # p_C is 0.617: dropped, marked, and then less than two full packets are left.
    assert [take(queue, 0.2).mark for _ in range(3)] == ["overload", None, None]
    assert causes(queue) == {"l4s.drop.overload": 1, "l4s.mark.overload": 1}


def test_the_fork_draws_in_overload_even_when_it_then_spares_the_packet() -> None:
    rng = Fixed(0.1, 0.1)
    queue = build(DualPi2Config(mode="mahimahi", **GAINS), rng=rng, now=0.0)  # type: ignore[arg-type]
    put(queue, 2, ECT1)
    queue.advance(0.2)
    assert [take(queue, 0.2).mark for _ in range(2)] == [None, None]
    assert rng.values == []


def test_the_fork_on_classic() -> None:
    for ecn, until, cause in (
        (ECT0, 0.1, "classic.mark.classic"),
        (NOT_ECT, 0.1, "classic.drop.classic"),
        (ECT0, 0.2, "classic.drop.overload"),
    ):
        queue = make("mahimahi", 0.01, 0.01, 0.01)
        put(queue, 3, ecn)
        while queue.dequeue(until):
            pass
        # Whatever comes after the first one has less than two full packets behind it.
        assert causes(queue) == {cause: 1}


def test_the_ms_version_judges_the_packet_behind_in_whole_milliseconds() -> None:
    queue = make("mahimahi-m", *[0.5] * 4, mtu=1500)
    put(queue, 2, ECT1, now=0.0)
    put(queue, 2, ECT1, now=0.0019)
    # At 2.1 ms the second packet waited 2 ms; the third arrived in the ms of 1.9: 1 ms.
    assert take(queue, 0.0021).mark == "step"
    assert take(queue, 0.0021).mark == "step"
    # One packet left behind: no judgement.
    assert take(queue, 0.0021).mark is None


def test_the_ms_version_does_not_see_a_wait_within_one_millisecond() -> None:
    queue = make("mahimahi-m", *[0.5] * 4, mtu=1500)
    put(queue, 3, ECT1, now=0.0010)
    assert take(queue, 0.0019).mark is None


def test_by_traffic_an_outage_is_one_update() -> None:
    clock, traffic = make("mahimahi"), make("mahimahi", update="traffic")
    for queue in (clock, traffic):
        put(queue, 1, NOT_ECT, now=0.0)
        put(queue, 1, NOT_ECT, now=0.1)
    # 0.16 * (0.1 - 0.015) + 3.2 * 0.1 in one step; by the clock the last update was at 96 ms.
    assert traffic.gauges(0.1)["p"] == pytest.approx(0.3336)
    assert clock.gauges(0.1)["p"] == pytest.approx(0.34656)
    traffic.enqueue(Packet(b"", 1, NOT_ECT), 0.111)
    assert traffic.gauges(0.1)["p"] == pytest.approx(0.3336)
    traffic.enqueue(Packet(b"", 1, NOT_ECT), 0.113)
    assert traffic.gauges(0.1)["p"] > 0.36


def test_an_update_at_the_time_of_a_packet_comes_after_it() -> None:
    queue = make("rfc")
    put(queue, 1, NOT_ECT, now=0.0)
    take(queue, 0.016)
    assert queue.gauges(0.016)["p"] == 0.0
    queue.advance(0.016)
    # The queue was empty by then.
    assert queue.gauges(0.016)["p"] == 0.0
    queue = make("rfc")
    put(queue, 1, NOT_ECT, now=0.0)
    queue.advance(0.016)
    assert queue.gauges(0.016)["p"] > 0.0


def test_an_hour_of_idleness_is_caught_up_at_once_and_ends_at_the_right_tick() -> None:
    queue = make("linux", gain=1e-4)
    put(queue, 1, NOT_ECT)
    take(queue, 3.0)
    before = queue.gauges(3.0)["p"]
    assert before > 0
    queue.advance(3600.0)
    assert queue.gauges(3600.0)["p"] == 0.0
    put(queue, 1, NOT_ECT, now=3600.0)
    queue.advance(3600.015)
    assert queue.gauges(3600.0)["p"] == 0.0
    put(queue, 1, NOT_ECT, now=3600.0)
    queue.advance(3600.048)
    assert queue.gauges(3600.0)["p"] > 0.0


def test_the_time_shifted_fifo_can_be_chosen() -> None:
    queue = make("rfc", scheduler="tsfifo", tshift=0.01)
    put(queue, 1, NOT_ECT, now=0.0)
    put(queue, 1, ECT1, now=0.009)
    assert take(queue, 0.012).ecn == ECT1
    put(queue, 1, ECT1, now=0.012)
    assert take(queue, 0.012).ecn == NOT_ECT
    assert queue.gauges(0.0)["credit"] == 0.0


def test_l4s_goes_first_until_its_credit_is_used() -> None:
    queue = make("linux", *[1.0] * 100)
    put(queue, 20, ECT1)
    put(queue, 20, ECT0)
    order = "".join("L" if take(queue, 0.0).ecn == ECT1 else "C" for _ in range(22))
    assert order == "LLLLLLLLL" + "CLLLLLLLLL" + "CLL"


def test_an_empty_queue_gives_nothing_and_starts_the_credit_anew() -> None:
    queue = make("linux", *[1.0] * 10)
    put(queue, 2, ECT1)
    put(queue, 2, ECT0)
    take(queue, 0.0)
    assert queue.gauges(0.0)["credit"] == -105_000
    for _ in range(3):
        take(queue, 0.0)
    assert queue.dequeue(0.0) is None
    assert queue.gauges(0.0)["credit"] == -120_000


def test_it_describes_every_effective_parameter() -> None:
    described = make("mahimahi", packets=100).describe()
    assert described["discipline"] == "dualpi2"
    assert described["mode"] == "mahimahi"
    assert (described["limit_packets"], described["limit_bytes"]) == (None, 150_000)
    assert described["alpha"] == 0.16
    assert make("linux").next_timeout() is None
    assert SPEC.build(DualPi2Config(), rng=random.Random(0), now=0.0).backlog() == (0, 0)
