"""Percentiles and ratios, with the rules for sets that are empty."""

from collections.abc import Iterable, Sequence
from math import floor
from typing import NamedTuple

from streamd.errors import LocalMisuse


def ratio(part: float, whole: float) -> float | None:
    """`part / whole`; None where there is no whole."""
    return part / whole if whole else None


def percentile(values: Iterable[float], percent: float) -> float | None:
    """The `percent`-th percentile (0 to 100) by linear interpolation between order statistics.

    None of an empty set. `inf` is allowed as a value (a frame that never came).
    """
    return percentile_of_sorted(sorted(values), percent)


def percentile_of_sorted(ordered: Sequence[float], percent: float) -> float | None:
    """`percentile` of values already in ascending order."""
    if not 0 <= percent <= 100:
        raise LocalMisuse(f"percentile {percent}, must be 0 to 100")
    if not ordered:
        return None
    rank = percent * (len(ordered) - 1) / 100
    index = floor(rank)
    low = ordered[index]
    fraction = rank - index
    if not fraction:
        return low
    high = ordered[index + 1]
    # Also keeps inf - inf out of the interpolation.
    return low if low == high else low + (high - low) * fraction


def order_statistic(values: Iterable[float], percent: float) -> float | None:
    """The sorted value at floor(percent/100 * n), as mm-link's own tools print percentiles."""
    ordered = sorted(values)
    if not ordered:
        return None
    return ordered[min(floor(percent * len(ordered) / 100), len(ordered) - 1)]


class RunSpread(NamedTuple):
    """A metric over several runs, each run counted once."""

    median: float | None
    quartile_low: float | None
    quartile_high: float | None
    runs: int


def over_runs(values: Iterable[float | None]) -> RunSpread:
    """Median and quartiles of per-run values; runs without a value are left out."""
    ordered = sorted(value for value in values if value is not None)
    return RunSpread(
        percentile_of_sorted(ordered, 50),
        percentile_of_sorted(ordered, 25),
        percentile_of_sorted(ordered, 75),
        len(ordered),
    )
