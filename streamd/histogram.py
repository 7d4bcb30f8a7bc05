"""Fixed-bucket histograms as plain numbers: cheap to feed per packet, read only when scraped.

Core: standard library only. The exporter turns the counts into Prometheus'
cumulative buckets; nothing here knows about that.
"""

from bisect import bisect_left
from collections.abc import Iterable


class Histogram:
    """Counts observations by upper bounds that are inclusive, as Prometheus' `le` is.

    `counts[i]` holds what fell into (bounds[i-1], bounds[i]]; one more count at
    the end holds everything above the last bound. Counts are not cumulative.
    """

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: Iterable[float]) -> None:
        """`bounds`: at least one upper bound, strictly increasing; ValueError otherwise."""
        self.bounds = tuple(bounds)
        if not self.bounds:
            raise ValueError("a histogram needs at least one bound")
        pairs = zip(self.bounds, self.bounds[1:], strict=False)
        if any(not low < high for low, high in pairs):
            raise ValueError(f"histogram bounds must strictly increase, got {self.bounds}")
        self.counts = [0] * (len(self.bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        """Count one value. A negative one counts as 0: a sum that falls reads as a restart."""
        if value < 0.0:
            value = 0.0
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    @property
    def count(self) -> int:
        """Observations so far."""
        return sum(self.counts)

    def percentile(self, quantile: float, *, counts: list[int] | None = None) -> float | None:
        """Estimate at `quantile` (0 to 1), linear inside a bucket; None without observations.

        `counts` stands in for the own ones, e.g. the difference of two moments.
        What lies above the last bound is answered with that bound.
        """
        counts = self.counts if counts is None else counts
        rank = quantile * sum(counts)
        if not rank and not sum(counts):
            return None
        low = 0.0
        for bound, count in zip(self.bounds, counts, strict=False):
            if count and rank <= count:
                return low + (bound - low) * rank / count
            rank -= count
            low = bound
        return self.bounds[-1]
