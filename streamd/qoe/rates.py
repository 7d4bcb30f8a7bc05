"""Rates over windows, use of a trace's capacity, and how well an encoder kept its target."""

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from math import ceil
from typing import Final, NamedTuple

from streamd.errors import LocalMisuse
from streamd.qoe.percentile import ratio

OPPORTUNITY_BYTES: Final = 1500
"""IP bytes one line of a Mahimahi trace lets pass."""
DEFAULT_WINDOWS: Final = 3600

_NS = 1_000_000_000


def rate_bps(total_bytes: float, start: float, end: float) -> float | None:
    """Bits per second of bytes moved in [start, end) (s); None of an empty interval.

    For a wire rate, count IP and UDP headers and every copy; for goodput, the
    payload of distinct packets.
    """
    return ratio(8 * total_bytes, end - start)


class Window(NamedTuple):
    """One window of a rate series."""

    start: float
    """Seconds of the run clock."""
    length: float
    total_bytes: int

    @property
    def bps(self) -> float | None:
        """Its rate; 0 of an idle window."""
        return ratio(8 * self.total_bytes, self.length)


class WindowedRate:
    """Bytes per window of equal length from `start` on; holds the last `keep` windows.

    Window boundaries are compared in whole nanoseconds: 0.3 s lies in the
    fourth window of 0.1 s although 0.3 / 0.1 is below 3 in floats.
    """

    __slots__ = ("_bytes", "_first", "_keep", "_length_ns", "_start_ns", "outside", "total_bytes")

    def __init__(self, length: float, start: float = 0.0, keep: int = DEFAULT_WINDOWS) -> None:
        """`length` in seconds, at least a nanosecond; `start` is the end of the warm-up."""
        self._length_ns = round(length * _NS)
        if self._length_ns < 1 or keep < 1:
            raise LocalMisuse(f"{keep} windows of {length} s")
        self._start_ns = round(start * _NS)
        self._keep = keep
        self._bytes: deque[int] = deque()
        self._first = 0
        self.outside = 0
        """Events before the start, or in a window that is no longer held."""
        self.total_bytes = 0
        """Of all windows since the start."""

    def add(self, at: float, size: int) -> None:
        """`size` bytes were moved at `at` (s); events may come out of order."""
        index = (round(at * _NS) - self._start_ns) // self._length_ns - self._first
        if index < 0:
            self.outside += 1
            return
        windows = self._bytes
        if index >= len(windows):
            index = self._extend(index)
        windows[index] += size
        self.total_bytes += size

    def series(self, end: float) -> list[Window]:
        """The windows up to `end` (s), idle ones included, the last one cut at `end`."""
        end_ns = round(end * _NS)
        span = end_ns - self._start_ns
        windows = []
        for index in range(self._first, -(-span // self._length_ns)):
            start_ns = self._start_ns + index * self._length_ns
            length_ns = min(self._length_ns, end_ns - start_ns)
            position = index - self._first
            size = self._bytes[position] if position < len(self._bytes) else 0
            windows.append(Window(start_ns / _NS, length_ns / _NS, size))
        return windows

    def _extend(self, index: int) -> int:
        """Make room up to the window at `index`; its position afterwards."""
        surplus = index + 1 - self._keep
        if surplus > 0:
            for _ in range(min(surplus, len(self._bytes))):
                self._bytes.popleft()
            self._first += surplus
            index -= surplus
        self._bytes.extend([0] * (index + 1 - len(self._bytes)))
        return index


class TraceCapacity:
    """Counts the delivery opportunities of a repeating Mahimahi trace.

    Opportunity k of loop j is at j * period + stamp k; the period is the last
    stamp, so the last of one loop and stamp 0 of the next fall together and
    both count.
    """

    __slots__ = ("_period", "_stamps")

    def __init__(self, stamps_ms: Sequence[int]) -> None:
        """`stamps_ms`: the trace's lines, non-decreasing, the last one above 0."""
        if not stamps_ms or stamps_ms[-1] <= 0:
            raise LocalMisuse("a trace needs a last stamp above 0 to repeat")
        self._stamps = stamps_ms
        self._period = stamps_ms[-1]

    def opportunities(self, start_ms: float, end_ms: float) -> int:
        """How many there are in [start_ms, end_ms) since the trace began."""
        return self._before(end_ms) - self._before(start_ms)

    def _before(self, time_ms: float) -> int:
        if time_ms <= 0:
            return 0
        # Loops that have passed altogether: their last stamp lies before time_ms.
        loops = ceil(time_ms / self._period) - 1
        rest = time_ms - loops * self._period
        return loops * len(self._stamps) + bisect_left(self._stamps, rest)


def utilisation(
    departed_bytes: float, opportunities: int, opportunity_bytes: int = OPPORTUNITY_BYTES
) -> float | None:
    """Bytes that left the queue over what the link could carry; None without an opportunity.

    IP bytes, whole packets at their departure. With a link's per-packet overhead,
    both sides include it (1504 bytes per opportunity for 4). The value of a run is
    that of its totals, not a mean of windows.
    """
    return ratio(departed_bytes, opportunities * opportunity_bytes)


class TargetIntegral:
    """Bits an encoder was asked for over time: a target is held until the next."""

    __slots__ = ("_bits", "_rates", "_times")

    def __init__(self, changes: Sequence[tuple[float, float]]) -> None:
        """`changes`: (time s, bps) in order of time; before the first there is no target."""
        self._times = [at for at, _ in changes]
        self._rates = [bps for _, bps in changes]
        steps = ((later[0] - at) * bps for (at, bps), later in pairwise(changes))
        self._bits = list(accumulate(steps, initial=0.0))

    def between(self, start: float, end: float) -> float:
        """Bits asked for in [start, end) (s)."""
        return self._until(end) - self._until(start)

    def _until(self, time: float) -> float:
        index = bisect_right(self._times, time) - 1
        if index < 0:
            return 0.0
        return self._bits[index] + self._rates[index] * (time - self._times[index])


def encoder_overshoot(
    frames: Iterable[tuple[float, int]],
    changes: Sequence[tuple[float, float]],
    *,
    start: float,
    end: float,
    window: float = 1.0,
) -> list[float | None]:
    """Coded over asked-for bits in each window of [start, end); None in one without a target.

    `frames` are (end of encoding s, bytes), `changes` the encoder's target as in
    `TargetIntegral`.
    """
    asked = TargetIntegral(changes)
    coded = WindowedRate(window, start, keep=max(1, ceil((end - start) / window) + 1))
    for at, size in frames:
        if at < end:
            coded.add(at, size)
    return [
        ratio(8 * item.total_bytes, asked.between(item.start, item.start + item.length))
        for item in coded.series(end)
    ]


def frame_overshoot(size: int, target_bps: float, fps: float) -> float | None:
    """One frame's bytes over its share of the target; None without a target."""
    return ratio(8 * size * fps, target_bps)
