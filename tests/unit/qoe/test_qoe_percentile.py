"""Percentiles and the bounded sample collection."""

from math import inf

import pytest

from streamd.errors import LocalMisuse
from streamd.qoe.percentile import (
    RunSpread,
    order_statistic,
    over_runs,
    percentile,
    percentile_of_sorted,
    ratio,
)
from streamd.qoe.samples import Samples


@pytest.mark.parametrize(
    ("percent", "value"), [(0, 10), (10, 10.8), (25, 12), (50, 15), (95, 44.0), (100, 50)]
)
def test_percentiles_interpolate_linearly(percent: float, value: float) -> None:
    assert percentile([20, 10, 50, 12, 15], percent) == pytest.approx(value, abs=1e-12)


def test_percentile_of_nothing_and_of_one() -> None:
    assert percentile([], 50) is None
    assert percentile([7.0], 0) == 7.0
    assert percentile([7.0], 95) == 7.0


@pytest.mark.parametrize("percent", [-1, 100.5])
def test_percentile_out_of_range(percent: float) -> None:
    with pytest.raises(LocalMisuse):
        percentile_of_sorted([1.0], percent)


def test_percentile_with_frames_that_never_came() -> None:
    values = [1.0, 2.0, 3.0, inf, inf]
    assert percentile(values, 50) == 3.0
    assert percentile(values, 60) == inf
    assert percentile(values, 90) == inf


def test_order_statistic_takes_the_value_at_floor_qn() -> None:
    values = [50, 20, 15, 12, 10]
    assert order_statistic(values, 50) == 15
    assert order_statistic(values, 95) == 50
    assert order_statistic(values, 100) == 50
    assert order_statistic([], 95) is None


def test_ratio_of_nothing_is_not_available() -> None:
    assert ratio(1, 4) == 0.25
    assert ratio(0, 4) == 0.0
    assert ratio(0, 0) is None


def test_runs_count_once_each_and_runs_without_value_not_at_all() -> None:
    assert over_runs([4.0, None, 1.0, 2.0, 3.0, 5.0]) == RunSpread(3.0, 2.0, 4.0, 5)
    assert over_runs([None]) == RunSpread(None, None, None, 0)


def test_samples_are_exact_up_to_their_capacity() -> None:
    samples = Samples(capacity=6)
    for value in (20, 10, 50, 12, 15):
        samples.add(value)
    assert samples.percentile(95) == pytest.approx(44.0, abs=1e-12)
    assert (samples.count, samples.total, samples.minimum, samples.maximum) == (5, 107.0, 10, 50)
    assert samples.mean == 21.4
    assert samples.square_total == 3369.0
    assert samples.stride == 1
    assert samples.values() == [20.0, 10.0, 50.0, 12.0, 15.0]


def test_samples_without_any() -> None:
    samples = Samples()
    assert samples.percentile(50) is None
    assert (samples.count, samples.minimum, samples.maximum, samples.mean) == (0, None, None, None)


def test_percentiles_may_be_asked_for_between_samples() -> None:
    samples = Samples(capacity=4)
    seen = []
    for value in (5, 1, 4, 2, 3, 0):
        samples.add(value)
        seen.append(samples.percentile(50))
    # After the fifth: 5 4 3 are kept; the sixth is skipped.
    assert seen == [5.0, 3.0, 4.0, 3.0, 4.0, 4.0]


def test_a_full_collection_thins_to_every_second_then_every_fourth() -> None:
    samples = Samples(capacity=4)
    for value in range(9):
        samples.add(value)
    assert (samples.values(), samples.stride) == ([0.0, 4.0, 8.0], 4)
    for value in range(9, 17):
        samples.add(value)
    assert (samples.values(), samples.stride) == ([0.0, 8.0, 16.0], 8)
    assert (samples.count, samples.total, samples.minimum, samples.maximum) == (17, 136.0, 0, 16)
    assert len(samples) == 3


def test_a_million_samples_stay_bounded_and_representative() -> None:
    samples = Samples(capacity=1000)
    for index in range(1_000_000):
        samples.add(index * 7919 % 1_000_000)
    assert len(samples) <= 1000
    assert samples.count == 1_000_000
    assert (samples.minimum, samples.maximum) == (0, 999_999)
    assert samples.percentile(95) == pytest.approx(950_000, rel=0.02)


@pytest.mark.parametrize("capacity", [0, 1, 7, -2])
def test_capacity_must_be_even_and_positive(capacity: int) -> None:
    with pytest.raises(LocalMisuse):
        Samples(capacity)
