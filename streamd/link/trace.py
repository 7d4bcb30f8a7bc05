"""Mahimahi traces: when a link may deliver.

A trace is text, one non-negative decimal integer per line, never decreasing:
the millisecond of one delivery opportunity. A value that stands n times is n
opportunities. The last value is the period: after it the base moves on by that
much and the list starts again. An opportunity at 0 falls on the last one of the
period before. A second without lines is a second without capacity.

Source: specification of the emulator, section 1.1 (Mahimahi's manual and link_queue).
"""

import hashlib
import math
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from pathlib import Path

from streamd.errors import ConfigError

OPPORTUNITY_BITS = 1500 * 8
MAX_MS = 10**12
"""Largest value accepted, 31 years: keeps microseconds exact in a float."""

_US_PER_MS = 1000
_LINEAR_STEPS = 4


class Trace:
    """A validated trace; immutable."""

    __slots__ = ("_sha256", "name", "period_ms", "times_ms")

    def __init__(self, times_ms: Iterable[int], *, name: str) -> None:
        """ConfigError, naming `name` and the line, when the rules of the format are broken."""
        self.name = name
        self.times_ms = array("q")
        """Opportunities in ms since the start of the period."""
        previous = 0
        for number, value in enumerate(times_ms, start=1):
            if not 0 <= value <= MAX_MS:
                raise ConfigError(f"{name}:{number}: {value} is not between 0 and {MAX_MS} ms")
            if value < previous:
                raise ConfigError(f"{name}:{number}: {value} ms is before the {previous} ms above")
            previous = value
            self.times_ms.append(value)
        if not self.times_ms:
            raise ConfigError(f"{name}:1: a trace needs at least one delivery opportunity")
        if not previous:
            raise ConfigError(
                f"{name}:{len(self.times_ms)}: the last value is 0; a trace must span some time"
            )
        self.period_ms = previous
        self._sha256: str | None = None

    @classmethod
    def parse(cls, data: bytes, *, name: str) -> "Trace":
        """Read the text of a trace file. ConfigError names `name` and the line at fault."""
        return cls(_integers(data, name), name=name)

    @classmethod
    def load(cls, path: str | Path) -> "Trace":
        """Read a trace file. ConfigError when it cannot be read or is malformed."""
        try:
            data = Path(path).read_bytes()
        except OSError as error:
            raise ConfigError(f"cannot read trace {path}: {error.strerror}") from None
        return cls.parse(data, name=str(path))

    def dumps(self) -> str:
        """The text of the trace file."""
        return "\n".join(map(str, self.times_ms)) + "\n"

    def write(self, path: str | Path) -> None:
        """Write the trace as a file; OSError when that fails."""
        Path(path).write_text(self.dumps(), encoding="ascii")

    @property
    def sha256(self) -> str:
        """Digest of `dumps()`: equal to that of a file with plain line ends."""
        if self._sha256 is None:
            self._sha256 = hashlib.sha256(self.dumps().encode("ascii")).hexdigest()
        return self._sha256

    def __len__(self) -> int:
        """Opportunities per period."""
        return len(self.times_ms)

    @property
    def mean_bps(self) -> float:
        """Mean capacity over a period at 1500 bytes per opportunity (bit/s)."""
        return len(self.times_ms) * OPPORTUNITY_BITS / (self.period_ms / 1000)

    def per_second_bps(self) -> list[float]:
        """Capacity of each complete second of one period, 1500 bytes per opportunity (bit/s)."""
        bins = [0.0] * (self.period_ms // 1000)
        for ms in self.times_ms:
            second = ms // 1000
            if second < len(bins):
                bins[second] += OPPORTUNITY_BITS
        return bins

    def cursor(self, *, base: float, subticks: int = 1, repeat: bool = True) -> "Cursor":
        """A place in the trace, at its first opportunity; `base` (s) is time 0 of the trace."""
        return Cursor(self, base=base, subticks=subticks, repeat=repeat)

    def opportunities(
        self, *, base: float = 0.0, subticks: int = 1, repeat: bool = True
    ) -> Iterator[float]:
        """The times (s) of all opportunities; endless when repeated."""
        cursor = self.cursor(base=base, subticks=subticks, repeat=repeat)
        while cursor.next_at < math.inf:
            yield cursor.next_at
            cursor.step()


class Cursor:
    """Walks through a trace, period after period, and can jump.

    Times are computed from whole microseconds since the base, never summed up.
    """

    __slots__ = ("_base", "_index", "_loop", "_offsets", "_period_us", "_repeat", "next_at")

    def __init__(self, trace: Trace, *, base: float, subticks: int, repeat: bool) -> None:
        """ConfigError when `subticks` is neither 1 nor 4."""
        if subticks not in (1, 4):
            raise ConfigError(f"subticks must be 1 or 4, got {subticks}")
        self._offsets = _offsets_us(trace.times_ms, subticks)
        self._period_us = trace.period_ms * _US_PER_MS
        self._base = base
        self._repeat = repeat
        self._loop = 0
        self._index = 0
        self.next_at = self._time()
        """The next opportunity (s); infinite after the end of a trace that is not repeated."""

    def step(self) -> None:
        """Go to the next opportunity."""
        self._index += 1
        if self._index == len(self._offsets):
            self._index = 0
            self._loop += 1
        self.next_at = self._time()

    def skip(self, now: float) -> None:
        """Go to the first opportunity after `now` (s); never back."""
        for _ in range(_LINEAR_STEPS):
            if self.next_at > now:
                return
            self.step()
        if self.next_at <= now:
            self._loop, self._index = self._locate(now)
            self.next_at = self._time()

    def count(self, now: float) -> int:
        """Opportunities from the base up to and including `now` (s), wherever the cursor is."""
        loop, index = self._locate(now)
        if loop and not self._repeat:
            return len(self._offsets)
        return loop * len(self._offsets) + index

    def _time(self) -> float:
        if self._loop and not self._repeat:
            return math.inf
        return self._at(self._loop, self._index)

    def _at(self, loop: int, index: int) -> float:
        return self._base + (loop * self._period_us + self._offsets[index]) / 1e6

    def _locate(self, now: float) -> tuple[int, int]:
        """Loop and index of the first opportunity after `now`, exact as `_at` rounds."""
        elapsed = max((now - self._base) * 1e6, -1.0)
        loop = max(int(elapsed // self._period_us), 0)
        index = bisect_right(self._offsets, elapsed - loop * self._period_us)
        while (before := _previous(loop, index, len(self._offsets))) and self._at(*before) > now:
            loop, index = before
        while True:
            if index == len(self._offsets):
                loop, index = loop + 1, 0
            if self._at(loop, index) > now:
                return loop, index
            index += 1


def _previous(loop: int, index: int, length: int) -> tuple[int, int] | None:
    if index:
        return loop, index - 1
    return (loop - 1, length - 1) if loop else None


def _offsets_us(times_ms: "array[int]", subticks: int) -> "array[int]":
    """Opportunities in us since the base; with 4 sub-ticks the k of one ms are spread out.

    Quarter j of ms m lies at (m - 1) ms + (j + 1) * 250 us, of ms 0 at j * 250 us; each
    gets k // 4 and the earliest ones what remains.
    """
    if subticks == 1:
        return array("q", [ms * _US_PER_MS for ms in times_ms])
    quarter = _US_PER_MS // subticks
    spread = array("q")
    start = 0
    while start < len(times_ms):
        ms = times_ms[start]
        end = bisect_right(times_ms, ms, start)
        first = (ms - 1) * _US_PER_MS + quarter if ms else 0
        each, more = divmod(end - start, subticks)
        for j in range(subticks):
            spread.extend([first + j * quarter] * (each + (j < more)))
        start = end
    return array("q", sorted(spread))


def _integers(data: bytes, name: str) -> Iterator[int]:
    """The value of each line; ConfigError for a line that is not one."""
    if not data:
        return
    for number, line in enumerate(data.removesuffix(b"\n").split(b"\n"), start=1):
        text = line.removesuffix(b"\r")
        if text.isdigit() and len(text) < 20:
            yield int(text)
            continue
        if not text.strip():
            raise ConfigError(f"{name}:{number}: empty line")
        shown = repr(text[:40]).removeprefix("b")
        raise ConfigError(f"{name}:{number}: {shown} is not a whole number of milliseconds")
