"""What users of calls, streams and downloads got (metrics of the interdomain paper).

A *call* is judged in intervals of 100 ms: bad if less than 90 % of the nominal rate was
delivered or the mean round trip was above 150 ms. A *stream* plays chunks fetched one after
the other and stalls where one is late. A *transfer* has a completion time. Source:
specification of metrics, section 6.
"""

from collections.abc import Sequence
from statistics import fmean
from typing import Final, NamedTuple

from streamd.qoe.percentile import ratio

INTERVAL_US: Final = 100_000
MAX_RTT: Final = 0.150
STALE_US: Final = 1_000_000
"""A round trip older than this says nothing of an interval without one."""
EVENT: Final = 0.001
"""A shorter wait for a chunk is no rebuffering event (s)."""


class CallQuality(NamedTuple):
    """Bad intervals of a call."""

    total: int
    bad: int
    longest_run: int
    """Bad ones in a row."""

    @property
    def bad_ratio(self) -> float | None:
        """None for a call shorter than an interval."""
        return ratio(self.bad, self.total)


def call_quality(
    arrivals: Sequence[tuple[int, int]],
    rtts: Sequence[tuple[int, float]],
    *,
    begin_us: int,
    end_us: int,
    target_bps: int,
    interval_us: int = INTERVAL_US,
) -> CallQuality:
    """Judge a call from `begin_us` to `end_us`.

    `arrivals` are (time in us, bytes delivered), `rtts` (time in us, seconds), both in order.
    Bytes are compared as whole numbers: exactly 90 % of the rate is not bad.
    """
    total = max(0, (end_us - begin_us) // interval_us)
    delivered = [0] * total
    samples: list[list[float]] = [[] for _ in range(total)]
    for at, size in arrivals:
        if begin_us <= at < begin_us + total * interval_us:
            delivered[(at - begin_us) // interval_us] += size
    for at, rtt in rtts:
        if begin_us <= at < begin_us + total * interval_us:
            samples[(at - begin_us) // interval_us].append(rtt)
    bad = longest = run = 0
    heard, known = 0, 0
    for number in range(total):
        end = begin_us + (number + 1) * interval_us
        while heard < len(rtts) and rtts[heard][0] < end:
            heard += 1
            known = heard
        mean = _round_trip(samples[number], rtts[known - 1] if known else None, end)
        # bytes * 8 / interval < 0.9 * target, without fractions
        slow = delivered[number] * 8 * 10 * 1_000_000 < 9 * target_bps * interval_us
        if slow or mean is None or mean > MAX_RTT:
            bad += 1
            run += 1
            longest = max(longest, run)
        else:
            run = 0
    return CallQuality(total, bad, longest)


def _round_trip(samples: list[float], last: tuple[int, float] | None, end: int) -> float | None:
    """Mean of an interval's samples, else the last one if it is fresh."""
    if samples:
        return fmean(samples)
    return None if last is None or end - last[0] >= STALE_US else last[1]


class Playback(NamedTuple):
    """How a stream of chunks played."""

    start: float | None
    """When playing began (s from the request); None: never."""
    rebuffer_seconds: float | None
    """None if it never started: that is a failure to start, not a stream without a stall."""
    events: int | None
    end: float | None
    """When the last chunk there was played to its end."""
    unfinished: bool = False
    """Chunks were missing at the end: the stall until then is counted."""

    def event_ratio(self, chunks: int) -> float | None:
        """Share of `chunks` played that had to be waited for."""
        return None if self.events is None else ratio(self.events, chunks)


def playback(
    completions: Sequence[float],
    duration: float,
    *,
    chunks: int | None = None,
    initial: int = 2,
    start_delay: float = 5.0,
    end: float | None = None,
) -> Playback:
    """Play chunks of `duration` seconds whose downloads ended at `completions` (s).

    Playing begins when `initial` chunks are there, not before `start_delay`. With `chunks`
    wanted and fewer there, the stall until `end` counts.
    """
    missing = chunks is not None and len(completions) < chunks
    if len(completions) < initial:
        return Playback(None, None, None, None, missing)
    start = played = max(completions[initial - 1], start_delay)
    total, events = 0.0, 0
    for completed in completions[1:]:
        due = played + duration
        late = max(0.0, completed - due)
        total += late
        events += late > EVENT
        played = max(due, completed)
    if missing and end is not None:
        late = max(0.0, end - (played + duration))
        total += late
        events += late > EVENT
    return Playback(start, total, events, played + duration, missing)


def completion_rate(size: int, seconds: float) -> float | None:
    """Bits per second of a transfer of `size` bytes; None of one that took no time."""
    return ratio(8 * size, seconds)


class Completions(NamedTuple):
    """Flow completion times of several transfers (s)."""

    mean: float | None
    """Of those that ended."""
    unfinished: int
    censored_mean: float | None
    """With the unfinished ones taken to last until the end."""


def completions(flows: Sequence[tuple[float, float | None]], end: float) -> Completions:
    """`flows` are (start, completion or None) in seconds."""
    done = [at - start for start, at in flows if at is not None]
    cut = [end - start for start, at in flows if at is None]
    return Completions(
        fmean(done) if done else None, len(cut), fmean(done + cut) if flows else None
    )
