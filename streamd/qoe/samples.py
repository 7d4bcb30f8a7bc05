"""A bounded collection of samples for runs of any length.

Up to its capacity it keeps every sample. When full, it throws every second one
away and from then on keeps every second, fourth, eighth... sample: evenly
spread over the run, decided by the count alone, so that equal runs give equal
percentiles. Count, sum, sum of squares, minimum and maximum are of all samples.
"""

from array import array
from math import inf
from typing import Final

from streamd.errors import LocalMisuse
from streamd.qoe.percentile import percentile_of_sorted, ratio

DEFAULT_CAPACITY: Final = 65536
"""Half a megabyte: every frame of 18 minutes at 60 fps, every packet of a minute at 12 Mbps."""


class Samples:
    """Collects values with `add`; answers percentiles of those it kept."""

    __slots__ = (
        "_capacity",
        "_kept",
        "_maximum",
        "_minimum",
        "_skip",
        "_sorted",
        "count",
        "square_total",
        "stride",
        "total",
    )

    def __init__(self, capacity: int = DEFAULT_CAPACITY) -> None:
        """`capacity`: most values kept, an even number (so that thinning keeps an even spacing)."""
        if capacity < 2 or capacity % 2:
            raise LocalMisuse(f"capacity {capacity}, must be even and positive")
        self._capacity = capacity
        self._kept = array("d")
        self._sorted: list[float] = []
        self._skip = 0
        self._minimum = inf
        self._maximum = -inf
        self.stride = 1
        """One of this many samples is kept; 1 while the collection is exact."""
        self.count = 0
        self.total = 0.0
        self.square_total = 0.0

    def add(self, value: float) -> None:
        """Take one sample."""
        self.count += 1
        self.total += value
        self.square_total += value * value
        if value < self._minimum:
            self._minimum = value
        if value > self._maximum:
            self._maximum = value
        if self._skip:
            self._skip -= 1
            return
        self._keep(value)

    def _keep(self, value: float) -> None:
        kept = self._kept
        if len(kept) == self._capacity:
            self._kept = kept = kept[::2]
            self._sorted.clear()
            self.stride *= 2
        kept.append(value)
        self._skip = self.stride - 1

    def __len__(self) -> int:
        """How many samples are kept."""
        return len(self._kept)

    @property
    def minimum(self) -> float | None:
        """The smallest sample; None without one."""
        return self._minimum if self.count else None

    @property
    def maximum(self) -> float | None:
        """The largest sample; None without one."""
        return self._maximum if self.count else None

    @property
    def mean(self) -> float | None:
        """The mean of all samples; None without one."""
        return ratio(self.total, self.count)

    def percentile(self, percent: float) -> float | None:
        """Percentile (0 to 100) of the kept samples by linear interpolation; None without one."""
        ordered = self._sorted
        if len(ordered) < len(self._kept):
            # Two ascending runs: the second sort is one merge, whatever the capacity.
            ordered += sorted(self._kept[len(ordered) :])
            ordered.sort()
        return percentile_of_sorted(ordered, percent)

    def values(self) -> list[float]:
        """The kept samples in the order they came."""
        return self._kept.tolist()
