"""How an encoder follows its target rate: steps, a random walk, forced key frames.

The measures are those of the project's codec targets.  Times are counted in
frames, so nothing here depends on the speed of the machine, and with one
encoder thread every figure is the same at every run; repeats are other start
frames.  A *target frame* is the target rate over the frame rate.
"""

import math
import random
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from streamd.media.libvpx import VpxEncoder

FPS = 30
HALF_SECOND = FPS // 2
SEGMENT = 4 * FPS
"""Frames at each rate of a chain."""

Pictures = Sequence[Any]


@dataclass(frozen=True, slots=True)
class Step:
    """What four seconds after one change of the target rate looked like.

    Times in seconds, infinite when it never happened; the rest are ratios to the target.
    """

    from_bps: float
    to_bps: float
    half_s: float
    """Until the trailing 0.5 s mean, old frames included, is within 15 %."""
    one_s: float
    """Until the trailing 1 s mean is within 20 %."""
    first_half: float
    """Bits of the first 0.5 s."""
    first_one: float
    """Bits of the first second."""
    largest: float
    """Largest frame in target frames."""
    late_mean: float
    """Mean from 1 s to 4 s."""
    late_window: float
    """Largest trailing 1 s mean later than 1 s."""
    saturated: bool
    """The quantizer reached its minimum after the first second: the content ran out of detail."""

    @property
    def is_down(self) -> bool:
        """Whether the rate fell."""
        return self.to_bps < self.from_bps


@dataclass(slots=True)
class Tally:
    """What one encoder did, frame by frame."""

    sizes: list[int]
    """Bits; 0 for a frame without packet."""
    targets: list[float]
    keyframes: list[int]
    """Frame numbers."""
    quantizers: list[int]
    encode_s: list[float]
    """CPU time of the calling thread."""

    @property
    def dropped(self) -> int:
        """Frames without packet."""
        return self.sizes.count(0)


def encode_all(
    encoder: VpxEncoder, pictures: Pictures, targets: Sequence[float], keyframe_every: int = 0
) -> Tally:
    """One picture per target rate (bit/s), the pictures in a loop."""
    tally = Tally([], list(targets), [], [], [])
    for number, target in enumerate(targets):
        forced = bool(keyframe_every) and number % keyframe_every == 0
        begin = time.thread_time()
        frame = encoder.encode(pictures[number % len(pictures)], target_bps=target, keyframe=forced)
        tally.encode_s.append(time.thread_time() - begin)
        tally.sizes.append(len(frame[0]) * 8 if frame else 0)
        tally.quantizers.append(encoder.last_quantizer)
        if frame and frame[1]:
            tally.keyframes.append(number)
    return tally


def encode_with(
    codec: str, pictures: Pictures, targets: Sequence[float], keyframe_every: int = 0
) -> Tally:
    """As `encode_all` on a new encoder that fits the pictures and starts at the first target."""
    first = pictures[0]
    encoder = VpxEncoder(codec, first.width, first.height, FPS, start_bps=targets[0])
    try:
        return encode_all(encoder, pictures, targets, keyframe_every)
    finally:
        encoder.close()


def every_ordered_pair(count: int) -> list[int]:
    """A closed walk over 0..count-1 in which every ordered pair occurs exactly once."""
    unused = {node: [other for other in range(count) if other != node] for node in range(count)}
    stack, walk = [0], []
    while stack:
        onward = unused[stack[-1]]
        if onward:
            stack.append(onward.pop())
        else:
            walk.append(stack.pop())
    return walk[::-1]


def chain_targets(rates: Sequence[float]) -> list[float]:
    """Four seconds at each rate, changing by every ordered pair of `rates`."""
    return [rates[node] for node in every_ordered_pair(len(rates)) for _ in range(SEGMENT)]


def steps_of(tally: Tally, minimum_quantizer: int = 0) -> Iterator[Step]:
    """Every change of rate in a tally made of segments of four seconds."""
    for begin in range(SEGMENT, len(tally.sizes), SEGMENT):
        target = tally.targets[begin]
        ratios = [bits * FPS / target for bits in tally.sizes[begin - FPS : begin + SEGMENT]]
        half, one = _trailing(ratios, HALF_SECOND), _trailing(ratios, FPS)
        new = ratios[FPS:]
        late_quantizers = tally.quantizers[begin + FPS : begin + SEGMENT]
        yield Step(
            from_bps=tally.targets[begin - 1],
            to_bps=target,
            half_s=_first_within(half, 0.15),
            one_s=_first_within(one, 0.20),
            first_half=statistics.fmean(new[:HALF_SECOND]),
            first_one=statistics.fmean(new[:FPS]),
            largest=max(new),
            late_mean=statistics.fmean(new[FPS:]),
            late_window=max(one[FPS:]),
            saturated=min(late_quantizers) <= minimum_quantizer,
        )


def _trailing(ratios: list[float], window: int) -> list[float]:
    """Mean of the last `window` frames at each frame after the step, which follows FPS old ones."""
    return [statistics.fmean(ratios[end - window : end]) for end in range(FPS + 1, len(ratios) + 1)]


def _first_within(means: list[float], tolerance: float) -> float:
    for number, mean in enumerate(means, start=1):
        if abs(mean - 1) <= tolerance:
            return number / FPS
    return math.inf


def walk_targets(rng: random.Random, count: int = 1500) -> list[float]:
    """A rate redrawn for every frame, 0.15 to 2 Mbit/s: 5 % up or down, now and then halved."""
    targets, rate = [], 600_000.0
    for _ in range(count):
        # The drift makes up for the halvings, which would pin the walk to its lower end.
        rate *= math.exp(rng.gauss(0.0, 0.05)) * (0.5 if rng.random() < 0.005 else 1.005)
        rate = min(max(rate, 150_000.0), 2_000_000.0)
        targets.append(rate)
    return targets


def walk_figures(tally: Tally) -> tuple[float, float]:
    """Total bits over total target, and the share of 1 s windows within 10 % of theirs."""
    bits, wanted = tally.sizes, [target / FPS for target in tally.targets]
    windows = [
        sum(bits[end - FPS : end]) / sum(wanted[end - FPS : end])
        for end in range(FPS, len(bits) + 1)
    ]
    within = sum(abs(ratio - 1) <= 0.10 for ratio in windows) / len(windows)
    return sum(bits) / sum(wanted), within


def keyframe_figures(tally: Tally) -> tuple[list[float], list[float]]:
    """Per forced key frame but the first: its size in target frames, its second over the target."""
    sizes, seconds = [], []
    for number in tally.keyframes[1:]:
        if number + FPS <= len(tally.sizes):
            target = tally.targets[number] / FPS
            sizes.append(tally.sizes[number] / target)
            seconds.append(sum(tally.sizes[number : number + FPS]) / FPS / target)
    return sizes, seconds
