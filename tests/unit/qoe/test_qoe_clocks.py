"""Section 5.1 of the specification of metrics, with its numbers."""

import pytest

from streamd.qoe.clocks import Exchange, OffsetEstimator, exchange, lower_hull, skew, without_skew

MS = 1e-3
DRIFTING = [(0.0, 10 * MS), (1.0, 12 * MS), (2.0, 10.2 * MS), (3.0, 11 * MS), (4.0, 10.4 * MS)]


def test_the_worked_exchange() -> None:
    found = exchange(0, 15, 16, 11)
    assert (found.offset, found.rtt, found.bound) == (10, 10, 5)


def test_the_shortest_round_trip_of_ten_seconds_is_believed() -> None:
    estimator = OffsetEstimator()
    assert estimator.best(0.0) is None
    estimator.add(Exchange(1.0, 0.05), 0.0)
    estimator.add(Exchange(2.0, 0.02), 1.0)
    estimator.add(Exchange(3.0, 0.04), 2.0)
    assert estimator.best(2.0) == Exchange(2.0, 0.02)
    assert estimator.best(11.0) == Exchange(2.0, 0.02)
    assert estimator.best(11.5) == Exchange(3.0, 0.04)
    assert estimator.best(12.5) is None


def test_the_worked_hull_slope_and_residues() -> None:
    assert lower_hull(DRIFTING) == [DRIFTING[0], DRIFTING[4]]
    assert skew(DRIFTING) == pytest.approx(0.1 * MS)
    # 0.1 ms/s over 4 s is below half a millisecond: longer, the same drift is removed
    longer = [(2 * time, 2 * delay - 10 * MS) for time, delay in DRIFTING]
    assert without_skew(longer) == pytest.approx([0, 2 * 1.9 * MS, 0, 2 * 0.7 * MS, 0], abs=1e-12)


def test_the_worked_residues() -> None:
    slope = skew(DRIFTING)
    left = [delay - 10 * MS - slope * time for time, delay in DRIFTING]
    assert left == pytest.approx([0, 1.9 * MS, 0, 0.7 * MS, 0], abs=1e-12)


def test_little_drift_stays() -> None:
    assert without_skew(DRIFTING) == pytest.approx([0, 2 * MS, 0.2 * MS, 1 * MS, 0.4 * MS])


def test_too_few_points_have_no_slope() -> None:
    assert skew([]) == skew([(0.0, 1.0)]) == 0.0
    assert without_skew([]) == []
