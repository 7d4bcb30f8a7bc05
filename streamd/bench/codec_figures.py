"""The project's codec targets as figures with limits, computed from what was measured.

Targets 1 to 9 of the codec facts: a figure is one number, its unit in the name,
with the bounds it must keep, or none where it depends on the machine.
"""

import random
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from streamd.bench.codec_steps import (
    Pictures,
    Step,
    Tally,
    chain_targets,
    encode_with,
    keyframe_figures,
    steps_of,
    walk_figures,
    walk_targets,
)

RATES = (150_000.0, 300_000.0, 1_000_000.0, 2_000_000.0)
KEYFRAME_RATES = (300_000.0, 1_000_000.0, 2_000_000.0)
KEYFRAME_EVERY = 45
KEYFRAMES = 10
"""Forced per rate and clip, the first of the stream not counted."""
WALK_SEED = 3

LARGEST = {"vp9": 5.0, "vp8": 10.0}
FIRST_SECOND = {"vp9": 1.10, "vp8": 1.15}
WALK_WITHIN = {"vp9": 0.95, "vp8": 0.80}


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured number and the bounds of its target."""

    target: int
    key: str
    value: float
    low: float | None = None
    high: float | None = None

    @property
    def holds(self) -> bool | None:
        """None for figures without bounds."""
        if self.low is None and self.high is None:
            return None
        return (self.low is None or self.value >= self.low) and (
            self.high is None or self.value <= self.high
        )

    @property
    def bounds(self) -> str:
        """The bounds for a table."""
        low = "" if self.low is None else f">= {self.low:g}"
        high = "" if self.high is None else f"<= {self.high:g}"
        return " and ".join(filter(None, (low, high)))


@dataclass(slots=True)
class RateFollowing:
    """What one codec did on a number of clips."""

    steps: list[Step] = field(default_factory=list)
    frames: int = 0
    dropped: int = 0
    unforced_keyframes: int = 0
    walks: list[tuple[float, float]] = field(default_factory=list)
    forced: int = 0
    produced: int = 0
    keyframe_sizes: list[float] = field(default_factory=list)
    keyframe_seconds: list[float] = field(default_factory=list)

    def add_steps(self, codec: str, clip: Pictures, rates: Sequence[float] = RATES) -> None:
        """Every ordered pair of `rates` once."""
        tally = encode_with(codec, clip, chain_targets(rates))
        self.steps.extend(steps_of(tally))
        self._count(tally)

    def add_walk(self, codec: str, clip: Pictures) -> None:
        """A rate that changes with every frame."""
        tally = encode_with(codec, clip, walk_targets(random.Random(WALK_SEED)))
        self.walks.append(walk_figures(tally))
        self._count(tally)

    def add_keyframes(self, codec: str, clip: Pictures) -> None:
        """Forced key frames at three constant rates."""
        for rate in KEYFRAME_RATES:
            targets = [rate] * (KEYFRAME_EVERY * (KEYFRAMES + 1))
            tally = encode_with(codec, clip, targets, KEYFRAME_EVERY)
            sizes, seconds = keyframe_figures(tally)
            self.forced += KEYFRAMES
            self.produced += len(tally.keyframes) - 1
            self.keyframe_sizes += sizes
            self.keyframe_seconds += seconds

    def _count(self, tally: Tally) -> None:
        self.frames += len(tally.sizes)
        self.dropped += tally.dropped
        self.unforced_keyframes += len(tally.keyframes) - 1


def measure(
    codec: str, steps: Mapping[str, Pictures], steady: Mapping[str, Pictures]
) -> RateFollowing:
    """Steps on the first clips, the random walk and key frames on the second ones.

    The second ones should have neither scene cuts nor pictures too simple for
    the highest rate, which would be measured instead of the encoder.
    """
    following = RateFollowing()
    for clip in steps.values():
        following.add_steps(codec, clip)
    for clip in steady.values():
        following.add_walk(codec, clip)
        following.add_keyframes(codec, clip)
    return following


def figures(codec: str, following: RateFollowing) -> Iterator[Figure]:
    """Targets 1 to 7 at up to 2 Mbit/s."""
    yield Figure(1, "unforced_keyframes_count", following.unforced_keyframes, high=0)
    yield from _down_figures(codec, [step for step in following.steps if step.is_down])
    yield from up_figures(3, [step for step in following.steps if not step.is_down])
    yield from _late_figures(following.steps)
    largest = max(step.largest for step in following.steps)
    yield Figure(5, "largest_frame_worst_ratio", largest, high=LARGEST[codec])
    yield Figure(5, "no_packet_ratio", following.dropped / following.frames, high=0.01)
    if following.walks:
        yield from _walk_figures(codec, following.walks)
    if following.forced:
        yield from _keyframe_figures(following)


def _down_figures(codec: str, steps: Sequence[Step]) -> Iterator[Figure]:
    half = [step.half_s for step in steps]
    yield Figure(2, "down_half_median_s", statistics.median(half), high=0.6)
    yield Figure(2, "down_half_worst_s", max(half), high=0.8)
    yield Figure(2, "down_one_worst_s", max(step.one_s for step in steps), high=1.1)
    worst = max(step.first_one for step in steps)
    yield Figure(2, "down_first_second_worst_ratio", worst, high=FIRST_SECOND[codec])
    worst = max(step.first_half for step in steps)
    yield Figure(2, "down_first_half_worst_ratio", worst, high=1.30)


def up_figures(
    target: int, steps: Sequence[Step], prefix: str = "", worst: float = 1.5
) -> Iterator[Figure]:
    """Up steps, but for those where the content has not enough detail to fill the rate."""
    counted = [step for step in steps if not step.saturated]
    yield Figure(target, f"{prefix}up_saturated_count", len(steps) - len(counted))
    if counted:
        half = [step.half_s for step in counted]
        one = [step.one_s for step in counted]
        yield Figure(target, f"{prefix}up_half_median_s", statistics.median(half), high=0.8)
        yield Figure(target, f"{prefix}up_half_worst_s", max(half), high=worst)
        yield Figure(target, f"{prefix}up_one_median_s", statistics.median(one), high=1.1)


def _late_figures(steps: Sequence[Step]) -> Iterator[Figure]:
    means: dict[float, list[float]] = {}
    for step in steps:
        if not step.saturated:
            means.setdefault(step.to_bps, []).append(step.late_mean)
    medians = [statistics.median(values) for values in means.values()]
    yield Figure(4, "late_mean_lowest_ratio", min(medians), low=0.95)
    yield Figure(4, "late_mean_highest_ratio", max(medians), high=1.03)
    worst = max(step.late_window for step in steps)
    yield Figure(4, "late_second_worst_ratio", worst, high=1.20)


def _walk_figures(codec: str, walks: Sequence[tuple[float, float]]) -> Iterator[Figure]:
    furthest = max((total for total, _ in walks), key=lambda total: abs(total - 1))
    yield Figure(6, "walk_total_furthest_ratio", furthest, low=0.97, high=1.03)
    least = min(within for _, within in walks)
    yield Figure(6, "walk_seconds_within_least_ratio", least, low=WALK_WITHIN[codec])


def _keyframe_figures(following: RateFollowing) -> Iterator[Figure]:
    sizes, seconds = following.keyframe_sizes, following.keyframe_seconds
    produced = following.produced / following.forced
    yield Figure(7, "forced_keyframes_produced_ratio", produced, low=1.0, high=1.0)
    yield Figure(7, "keyframe_median_ratio", statistics.median(sizes), high=3.0)
    yield Figure(7, "keyframe_largest_ratio", max(sizes), high=6.0)
    yield Figure(7, "keyframe_second_worst_ratio", max(seconds), high=1.15)
