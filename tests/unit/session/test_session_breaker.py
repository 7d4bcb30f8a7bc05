"""The circuit breaker's schedule, its floor, and what counts as silence."""

from streamd.session.breaker import CircuitBreaker


def limit(breaker: CircuitBreaker) -> float | None:
    return breaker.limit_bps


def tripped() -> CircuitBreaker:
    breaker = CircuitBreaker(minimum_bps=100_000)
    breaker.on_sent(10.0)
    assert breaker.on_timeout(8_000_000, 11.5)
    return breaker


def test_the_rate_is_halved_at_one_and_a_half_seconds_and_every_half_second() -> None:
    breaker = CircuitBreaker(minimum_bps=100_000)
    breaker.on_sent(10.0)
    assert not breaker.on_timeout(8_000_000, 11.4375)
    assert limit(breaker) is None
    assert breaker.on_timeout(8_000_000, 11.5)
    assert limit(breaker) == 4_000_000
    assert not breaker.on_timeout(8_000_000, 11.9375)
    assert breaker.on_timeout(8_000_000, 12.0)
    assert limit(breaker) == 2_000_000
    assert breaker.on_timeout(8_000_000, 12.5)
    assert limit(breaker) == 1_000_000
    assert breaker.trips == 1


def test_late_looks_do_not_move_the_schedule() -> None:
    breaker = CircuitBreaker(minimum_bps=100_000)
    breaker.on_sent(0.0)
    changes = [look / 16 for look in range(0, 49) if breaker.on_timeout(1_600_000, look / 16)]
    assert changes == [1.5, 2.0, 2.5, 3.0]
    assert limit(breaker) == 100_000


def test_the_floor_is_the_minimum_rate_and_reaching_it_again_is_no_change() -> None:
    breaker = CircuitBreaker(minimum_bps=1_500_000)
    breaker.on_sent(0.0)
    assert breaker.on_timeout(4_000_000, 1.5)
    assert breaker.on_timeout(4_000_000, 2.0)
    assert limit(breaker) == 1_500_000
    assert not breaker.on_timeout(4_000_000, 2.5)
    assert limit(breaker) == 1_500_000


def test_the_first_report_lifts_the_limit_and_silence_begins_anew() -> None:
    breaker = tripped()
    assert breaker.on_report()
    assert limit(breaker) is None
    assert not breaker.on_report()
    breaker.on_sent(11.75)
    assert not breaker.on_timeout(8_000_000, 13.0)
    assert breaker.on_timeout(8_000_000, 13.25)
    assert limit(breaker) == 4_000_000
    assert breaker.trips == 2


def test_the_limit_bounds_and_never_raises() -> None:
    breaker = tripped()
    assert breaker.apply(8_000_000) == 4_000_000
    assert breaker.apply(3_000_000) == 3_000_000


def test_half_of_the_rate_in_use_when_the_controller_went_below_the_limit_itself() -> None:
    breaker = tripped()
    assert breaker.on_timeout(1_000_000, 12.0)
    assert limit(breaker) == 500_000


def test_nothing_sent_is_not_silence() -> None:
    breaker = CircuitBreaker(minimum_bps=100_000)
    assert not breaker.on_timeout(1_000_000, 60.0)
    breaker.on_sent(60.0)
    breaker.on_report()
    assert not breaker.on_timeout(1_000_000, 120.0)
    assert breaker.silence(120.0) == 0.0
    breaker.on_sent(120.0)
    breaker.on_sent(121.0)
    assert breaker.silence(121.25) == 1.25
    assert breaker.trips == 0


def test_one_step_per_look_after_a_suspension() -> None:
    breaker = CircuitBreaker(minimum_bps=100_000)
    breaker.on_sent(0.0)
    assert breaker.on_timeout(8_000_000, 60.0)
    assert not breaker.on_timeout(8_000_000, 60.0625)
    assert breaker.on_timeout(8_000_000, 60.5)
    assert limit(breaker) == 2_000_000


def test_a_fixed_rate_is_never_bounded_but_silence_is_measured() -> None:
    breaker = CircuitBreaker(minimum_bps=100_000, enabled=False)
    breaker.on_sent(0.0)
    assert not breaker.on_timeout(8_000_000, 100.0)
    assert breaker.apply(8_000_000) == 8_000_000
    assert breaker.silence(100.0) == 100.0
