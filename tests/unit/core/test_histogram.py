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


@pytest.mark.parametrize("bounds", [(), (1, 1), (2, 1), (1, float("nan"))])
def test_bad_bounds_are_refused(bounds: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="histogram"):
        Histogram(bounds)


def test_a_percentile_is_linear_inside_a_bucket() -> None:
    histogram = Histogram((1, 2, 4))
    assert histogram.percentile(0.5) is None
    for value in (0.3, 0.9, 1.2, 1.9, 9.0):
        histogram.observe(value)
    shares = (0.2, 0.4, 0.6, 0.8, 0.95)
    assert [histogram.percentile(q) for q in shares] == [0.5, 1.0, 1.5, 2.0, 4]
    assert histogram.percentile(0.5, counts=[0, 0, 2, 0]) == 3.0
    assert histogram.percentile(0.5, counts=[0, 0, 0, 0]) is None
