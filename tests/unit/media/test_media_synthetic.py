import random
import statistics

import pytest

from streamd.errors import ConfigError, LocalMisuse, MediaError
from streamd.media.synthetic import (
    HEADER_BYTES,
    MAX_FRAME_BYTES,
    SyntheticDecoder,
    SyntheticEncoder,
    SyntheticSource,
    make_frame,
)


def encode(encoder: SyntheticEncoder, target_bps: float, keyframe: bool = False) -> bytes:
    frame = encoder.encode(None, target_bps=target_bps, keyframe=keyframe)
    assert frame is not None
    return frame[0]


def test_frame_size_is_the_rate_over_the_frame_rate() -> None:
    encoder = SyntheticEncoder(50.0, keyframe_factor=1.0)
    assert [len(encode(encoder, rate)) for rate in (12e6, 8e6, 1_000_100.0)] == [30000, 20000, 2500]


def test_key_frames_come_first_and_on_request_and_are_larger() -> None:
    encoder = SyntheticEncoder(30.0, keyframe_factor=3.0)
    frames = [encoder.encode(None, target_bps=240e3, keyframe=n == 2) for n in range(4)]
    assert [(len(f[0]), f[1]) for f in frames if f] == [
        (3000, True),
        (1000, False),
        (3000, True),
        (1000, False),
    ]


@pytest.mark.parametrize(
    ("target_bps", "size"),
    [(0.0, 1), (-5.0, 1), (float("inf"), MAX_FRAME_BYTES), (1e12, MAX_FRAME_BYTES)],
)
def test_senseless_rates_are_clamped(target_bps: float, size: int) -> None:
    encoder = SyntheticEncoder(30.0, keyframe_factor=1.0)
    assert len(encode(encoder, target_bps)) == size


def test_variation_keeps_the_mean_and_repeats_with_the_seed() -> None:
    def sizes(seed: int) -> list[int]:
        encoder = SyntheticEncoder(
            30.0, keyframe_factor=1.0, size_deviation=0.2, rng=random.Random(seed)
        )
        return [len(encode(encoder, 2.4e6)) for _ in range(2000)]

    first = sizes(1)
    assert first == sizes(1)
    assert first != sizes(2)
    assert statistics.fmean(first) == pytest.approx(10_000, rel=0.02)
    assert statistics.stdev(first) == pytest.approx(2000, rel=0.1)


def test_sound_frames_decode_to_one_picture_each() -> None:
    decoder = SyntheticDecoder()
    for index, length in enumerate((1, HEADER_BYTES - 1, HEADER_BYTES, 1200, 100_000)):
        assert list(decoder.decode(make_frame(index, length, False))) == [None]
    assert decoder.last_index == 4


@pytest.mark.parametrize("at", [0, 5, 8, 12, 15, 16, 700, 1199])
def test_every_changed_byte_is_noticed(at: int) -> None:
    damaged = bytearray(make_frame(7, 1200, True))
    damaged[at] ^= 1
    with pytest.raises(MediaError, match=r"damaged|of \d+ bytes"):
        SyntheticDecoder().decode(bytes(damaged))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty"),
        (b"\x07", "short synthetic frame"),
        (make_frame(3, 1200, False)[:-1], "frame 3 has 1199 of 1200 bytes"),
        (make_frame(3, 1200, False) + b"x", "frame 3 has 1201 of 1200 bytes"),
        (make_frame(3, 600, False)[:16] + make_frame(4, 600, False)[16:], "frame 3 is damaged"),
    ],
)
def test_damage_is_named(data: bytes, reason: str) -> None:
    with pytest.raises(MediaError, match=reason):
        SyntheticDecoder().decode(data)


def test_frames_differ_so_that_mixed_up_packets_show() -> None:
    assert make_frame(1, 1200, False)[16:] != make_frame(2, 1200, False)[16:]


def test_misuse_is_refused() -> None:
    with pytest.raises(LocalMisuse, match="random generator"):
        SyntheticEncoder(30.0, size_deviation=0.1)
    with pytest.raises(ConfigError, match="key frame factor"):
        SyntheticEncoder(30.0, keyframe_factor=0.0)
    with pytest.raises(ConfigError, match="frame rate"):
        SyntheticSource(0.0)
    encoder = SyntheticEncoder(30.0)
    with pytest.raises(LocalMisuse, match="not a number"):
        encode(encoder, float("nan"))
    encoder.close()
    with pytest.raises(LocalMisuse, match="closed"):
        encode(encoder, 1e6)


def test_source_has_no_end() -> None:
    source = SyntheticSource(50.0)
    assert [source.read() for _ in range(3)] == [None, None, None]
    assert (source.fps, source.width, source.height) == (50.0, 352, 288)
