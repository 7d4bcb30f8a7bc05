"""The windowed minimum: two slots, and an old minimum leaves."""

from streamd.cc.filters import WindowedMin, total


def test_no_value_before_the_first_update() -> None:
    assert WindowedMin(10.0).value is None


def test_the_smallest_of_the_period() -> None:
    window = WindowedMin(10.0)
    for value, now in ((5.0, 0.0), (3.0, 1.0), (4.0, 2.0)):
        window.update(value, now)
    assert window.value == 3.0


def test_a_minimum_lives_one_to_two_periods() -> None:
    window = WindowedMin(10.0)
    window.update(1.0, 0.0)
    window.update(7.0, 9.0)
    assert window.value == 1.0
    window.update(8.0, 10.0)
    assert window.value == 1.0
    window.update(9.0, 19.0)
    assert window.value == 1.0
    window.update(9.0, 20.0)
    assert window.value == 8.0


def test_a_smaller_value_counts_at_once() -> None:
    window = WindowedMin(10.0)
    window.update(5.0, 0.0)
    window.update(6.0, 10.0)
    window.update(2.0, 11.0)
    assert window.value == 2.0


def test_silence_longer_than_two_periods_leaves_nothing_of_before() -> None:
    window = WindowedMin(10.0)
    window.update(1.0, 0.0)
    window.update(6.0, 20.0)
    assert window.value == 6.0
    window.update(7.0, 39.0)
    assert window.value == 6.0


def test_negative_values_are_values() -> None:
    window = WindowedMin(10.0)
    window.update(-3.0, 0.0)
    window.update(-4.0, 1.0)
    assert window.value == -4.0


def test_a_total_is_added_from_the_first_to_the_last() -> None:
    # a compensated sum would say 1.0, as the built-in one does from Python 3.12 on
    assert total([1e16, 1.0, -1e16]) == 0.0
    assert total([0.1] * 10) == 0.9999999999999999
    assert total([]) == 0.0
