"""The ladder: when it steps down and up, and what an encoder on it does at hopeless rates."""

import pytest

from streamd.media.adaptive import AdaptiveEncoder
from streamd.media.clips import ClipSource
from streamd.media.ladder import COARSEST, EASY, FREE, Ladder, Rung
from streamd.media.libvpx import VpxEncoder
from streamd.media.pyav_codec import PyavDecoder

TARGET = 100_000.0
FPS = 32


def feed(
    ladder: Ladder,
    start: float,
    seconds: float,
    *,
    quantizer: int,
    over: float,
    target: float = TARGET,
    once: bool = False,
) -> list[float]:
    """Frames of `over` times their share; when the rung changed. `once`: until it does."""
    changed = []
    for number in range(int(seconds * FPS)):
        now = start + number / FPS
        size = int(over * target / FPS / 8)
        if ladder.on_frame(size, quantizer, target, now):
            changed.append(now)
            if once:
                break
    return changed


def ladder(*, resizes: bool = True) -> Ladder:
    return Ladder(352, 288, resizes=resizes)


def test_half_a_second_above_the_target_at_the_coarsest_is_a_step() -> None:
    steps = ladder()
    assert feed(steps, 1.0, 0.46875, quantizer=63, over=1.5) == []
    assert feed(steps, 1.46875, 0.0625, quantizer=63, over=1.5) == [1.5]
    assert steps.rung == Rung(2, 1)
    assert [steps.wants(tick) for tick in range(4)] == [True, False, True, False]


def test_then_the_size_is_halved_and_that_is_the_end() -> None:
    steps = ladder()
    feed(steps, 1.0, 5.0, quantizer=63, over=1.5)
    assert steps.rung == Rung(2, 2)
    assert steps.size == (176, 144)
    assert steps.steps_down == 2


def test_an_encoder_that_cannot_resize_keeps_its_size() -> None:
    steps = ladder(resizes=False)
    feed(steps, 1.0, 5.0, quantizer=63, over=1.5)
    assert steps.rung == Rung(2, 1)
    assert steps.size == (352, 288)


@pytest.mark.parametrize(("quantizer", "over"), [(COARSEST - 1, 3.0), (63, 1.05)])
def test_neither_coarse_nor_large_alone_is_a_step(quantizer: int, over: float) -> None:
    steps = ladder()
    assert feed(steps, 1.0, 5.0, quantizer=quantizer, over=over) == []


def test_it_comes_back_after_three_easy_seconds_with_headroom() -> None:
    steps = ladder()
    feed(steps, 1.0, 0.53125, quantizer=63, over=1.5)
    assert feed(steps, 2.0, 10.0, quantizer=EASY, over=0.9) == []  # the target is what it was
    assert feed(steps, 12.0, 1.0, quantizer=EASY, over=0.9, target=1.5 * TARGET) == [12.0]
    assert steps.rung == Rung(1, 1)


def test_easier_content_brings_it_back_at_the_same_target() -> None:
    steps = ladder()
    feed(steps, 1.0, 0.53125, quantizer=63, over=1.5)
    assert feed(steps, 2.0, 10.0, quantizer=FREE + 1, over=0.9) == []
    assert feed(steps, 12.0, 3.03125, quantizer=FREE, over=0.9) == [15.0]
    assert steps.rung == Rung(1, 1)


def test_a_hard_picture_in_between_starts_the_wait_anew() -> None:
    steps = ladder()
    feed(steps, 1.0, 0.53125, quantizer=63, over=1.5)
    feed(steps, 2.0, 2.5, quantizer=20, over=0.9, target=2 * TARGET)
    feed(steps, 4.5, 0.0625, quantizer=EASY + 1, over=0.9, target=2 * TARGET)
    (back,) = feed(steps, 4.5625, 4.0, quantizer=20, over=0.9, target=2 * TARGET)
    assert back == 7.5625


def test_a_step_back_that_does_not_last_doubles_the_wait() -> None:
    steps = ladder(resizes=False)
    now, waits = 1.0, []
    for _ in range(3):
        (down,) = feed(steps, now, 0.53125, quantizer=63, over=1.5)
        easy = down + 0.03125
        (up,) = feed(steps, easy, 70.0, quantizer=20, over=0.9, target=2 * TARGET, once=True)
        waits.append(up - down)
        now = up + 0.03125
    assert waits == [3.03125, 6.03125, 12.03125]


def test_small_pictures_are_not_made_smaller() -> None:
    steps = Ladder(160, 120, resizes=True)
    feed(steps, 1.0, 5.0, quantizer=63, over=1.5)
    assert steps.size == (160, 120)


@pytest.mark.parametrize(
    ("size", "half"),
    [
        ((352, 288), (176, 144)),
        ((350, 286), (176, 144)),
        ((353, 289), (178, 146)),
        ((854, 480), (428, 240)),
    ],
)
def test_half_of_any_size_needs_no_key_frame(size: tuple[int, int], half: tuple[int, int]) -> None:
    source = ClipSource("high")
    width, height = size
    encoder = AdaptiveEncoder(
        VpxEncoder("vp9", width, height, 30, start_bps=300_000), 30, resizes=True
    )
    decoder = PyavDecoder("vp9")
    keyframes, seen = 0, []
    for tick in range(150):
        picture = source.read()
        if not encoder.wants(tick):
            continue
        picture = picture.reformat(width=width, height=height, interpolation="BILINEAR")
        out = encoder.encode(picture, target_bps=15_000, keyframe=False)
        if out is None:
            continue
        keyframes += out[1]
        (shown,) = decoder.decode(out[0])
        if (shown.width, shown.height) not in seen:
            seen.append((shown.width, shown.height))
    encoder.close()
    assert seen == [size, half]
    assert keyframes == 1


@pytest.mark.parametrize("clip", ["medium", "high"])
def test_vp9_steps_down_without_a_key_frame_and_returns(clip: str) -> None:
    """15 kbit/s are too little for CIF; 400 are plenty. The decoder follows every size."""
    source = ClipSource(clip)
    encoder = AdaptiveEncoder(VpxEncoder("vp9", 352, 288, 30, start_bps=300_000), 30, resizes=True)
    decoder = PyavDecoder("vp9")
    keyframes, sizes, bits = 0, set(), 0
    for tick in range(30 * 25):
        target = 300_000 if tick < 60 else 15_000 if tick < 360 else 400_000
        picture = source.read()
        if not encoder.wants(tick):
            continue
        out = encoder.encode(picture, target_bps=target, keyframe=False)
        if out is None:
            continue
        keyframes += out[1]
        if 240 <= tick < 360:
            bits += 8 * len(out[0])
        (shown,) = decoder.decode(out[0])
        sizes.add((shown.width, shown.height))
    encoder.close()
    assert keyframes == 1
    assert sizes == {(352, 288), (176, 144)}
    assert encoder.ladder.rung == Rung(1, 1)
    assert encoder.ladder.steps_down >= 2
    assert encoder.skipped > 100
    # and the rate is kept at last: 4 s of it
    assert bits < 1.3 * 15_000 * 4
