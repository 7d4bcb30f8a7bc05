"""Virtual time: order of moments, moving deadlines."""

import random
from functools import partial

import pytest

from streamd.errors import LocalMisuse
from streamd.sim import scheduler as module
from streamd.sim.scheduler import Alarm, LateAgenda, Scheduler


def test_moments_are_served_in_order_and_equal_ones_as_they_were_asked_for() -> None:
    scheduler = Scheduler(10.0)
    seen: list[tuple[str, float]] = []
    for name, when in (("c", 12.0), ("a", 11.0), ("d", 12.0), ("b", 11.5)):
        scheduler.at(when, lambda now, name=name: seen.append((name, now)))  # type: ignore[misc]
    scheduler.run()
    assert seen == [("a", 11.0), ("b", 11.5), ("c", 12.0), ("d", 12.0)]
    assert scheduler.now == 12.0
    assert scheduler.steps == 4


def test_what_is_asked_for_in_the_past_happens_now() -> None:
    scheduler = Scheduler(5.0)
    seen: list[float] = []
    scheduler.at(1.0, seen.append)
    scheduler.run()
    assert seen == [5.0]


def test_it_stops_before_moments_that_lie_further_away() -> None:
    scheduler = Scheduler(0.0)
    seen: list[float] = []
    for when in (1.0, 2.0, 3.0):
        scheduler.at(when, seen.append)
    scheduler.run(until=2.0)
    assert seen == [1.0, 2.0]
    scheduler.run()
    assert seen == [1.0, 2.0, 3.0]


def test_an_alarm_rings_once_at_the_last_wish() -> None:
    scheduler = Scheduler(0.0)
    seen: list[float] = []
    alarm = Alarm(scheduler, seen.append)
    alarm.set(5.0)
    alarm.set(2.0)
    alarm.set(3.0)
    scheduler.run()
    assert seen == [3.0]


def test_an_alarm_can_be_called_off_and_set_again() -> None:
    scheduler = Scheduler(0.0)
    seen: list[float] = []
    alarm = Alarm(scheduler, seen.append)
    alarm.set(1.0)
    alarm.set(None)
    scheduler.run()
    assert seen == []
    alarm.set(4.0)
    scheduler.run()
    assert seen == [4.0]


def test_an_alarm_set_from_its_own_action_rings_again() -> None:
    scheduler = Scheduler(0.0)
    seen: list[float] = []

    def ring(now: float) -> None:
        seen.append(now)
        if now < 3.0:
            alarm.set(now + 1.0)

    alarm = Alarm(scheduler, ring)
    alarm.set(9.0)
    alarm.set(1.0)
    scheduler.run()
    assert seen == [1.0, 2.0, 3.0]


def test_a_machine_that_always_asks_for_the_past_is_a_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_AT_ONCE", 100)
    scheduler = Scheduler(0.0)
    alarm = Alarm(scheduler, lambda now: alarm.set(now - 1.0))
    alarm.set(1.0)
    with pytest.raises(LocalMisuse, match="asks for the past"):
        scheduler.run()


def test_a_late_machine_is_called_after_its_time_by_half_to_one_and_a_half_of_the_mean() -> None:
    scheduler = Scheduler(0.0)
    agenda = LateAgenda(scheduler, 0.002, random.Random(1))
    seen: list[float] = []
    for _ in range(200):
        agenda.at(1.0, seen.append)
    scheduler.run()
    assert len(set(seen)) == 200
    assert 1.001 <= min(seen) < 1.0011
    assert 1.0029 < max(seen) <= 1.003


def test_input_of_a_late_machine_keeps_its_order() -> None:
    scheduler = Scheduler(0.0)
    agenda = LateAgenda(scheduler, 0.002, random.Random(2))
    seen: list[tuple[int, float]] = []

    def note(number: int, now: float) -> None:
        seen.append((number, now))

    take = agenda.input(note)
    for number in range(50):
        scheduler.at(0.0001 * number, partial(take, number))
    scheduler.run()
    assert [number for number, _ in seen] == list(range(50))
    assert sorted(now for _, now in seen) == [now for _, now in seen]
    assert min(now - 0.0001 * number for number, now in seen) >= 0.001


def test_an_alarm_of_a_late_machine_rings_late_and_never_for_a_wish_put_off() -> None:
    scheduler = Scheduler(0.0)
    seen: list[float] = []
    alarm = Alarm(LateAgenda(scheduler, 0.002, random.Random(3)), seen.append)
    alarm.set(1.0)
    alarm.set(2.0)
    scheduler.run()
    assert len(seen) == 1
    assert 2.001 <= seen[0] <= 2.003
