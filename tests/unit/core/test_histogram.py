"""The hot-path histogram: inclusive bounds, overflow, clamping, merging."""

import pytest

from streamd.histogram import Histogram


def test_a_value_on_a_bound_belongs_to_that_bucket() -> None:
    histogram = Histogram((1, 5, 10))
    for value in (0, 1, 1.0001, 5, 10, 10.5):
        histogram.observe(value)
    assert histogram.counts == [2, 2, 1, 1]
    assert histogram.count == 6
    assert histogram.sum == pytest.approx(27.5001)


def test_a_negative_value_counts_as_zero() -> None:
    histogram = Histogram((1,))
    histogram.observe(-3.0)
    assert histogram.counts == [1, 0]
    assert histogram.sum == 0.0


def test_merge_adds_counts_and_sum() -> None:
    a, b = Histogram((1, 2)), Histogram((1, 2))
    a.observe(0.5)
    b.observe(1.5)
    b.observe(9)
    a.merge(b)
    assert a.counts == [1, 1, 1]
    assert a.sum == 11.0
    assert b.counts == [0, 1, 1]


def test_merge_refuses_other_bounds() -> None:
    with pytest.raises(ValueError, match="cannot merge"):
        Histogram((1,)).merge(Histogram((2,)))


@pytest.mark.parametrize("bounds", [(), (1, 1), (2, 1), (1, float("nan"))])
def test_bad_bounds_are_refused(bounds: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="histogram"):
        Histogram(bounds)
