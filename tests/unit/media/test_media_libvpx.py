import gc
import weakref
from typing import Any

import av
import pytest

from streamd.errors import LocalMisuse, MediaError, StartupError
from streamd.media import libvpx_abi
from streamd.media.libvpx import VpxEncoder
from streamd.media.libvpx_abi import Config
from streamd.media.pyav_codec import PyavDecoder

CODECS = ("vp9", "vp8")
Pictures = list[Any]


def small_encoder(codec: str, **more: Any) -> VpxEncoder:
    return VpxEncoder(codec, 176, 144, 30.0, start_bps=500e3, **more)


@pytest.mark.parametrize("codec", CODECS)
def test_pictures_come_back_from_the_decoder(codec: str, small: Pictures) -> None:
    encoder, decoder = small_encoder(codec), PyavDecoder(codec)
    keyframes = []
    for picture in small:
        frame = encoder.encode(picture, target_bps=500e3, keyframe=False)
        assert frame is not None
        (decoded,) = decoder.decode(frame[0])
        assert (decoded.width, decoded.height, decoded.format.name) == (176, 144, "yuv420p")
        keyframes.append(frame[1])
    assert keyframes == [True] + [False] * 29
    assert luma_error(decoded, small[-1]) < 6.0
    encoder.close()


def luma_error(one: av.VideoFrame, other: av.VideoFrame) -> float:
    """Mean absolute difference of the visible luma."""
    total = 0.0
    planes = (one.planes[0], other.planes[0])
    first, second = (bytes(plane) for plane in planes)
    for row in range(one.height):
        a = first[row * planes[0].line_size :][: one.width]
        b = second[row * planes[1].line_size :][: one.width]
        total += sum(abs(x - y) for x, y in zip(a, b, strict=True))
    return total / (one.width * one.height)


@pytest.mark.parametrize(("codec", "undershoot", "overshoot"), [("vp9", 100, 15), ("vp8", 50, 50)])
def test_the_recommended_settings_are_in_force(codec: str, undershoot: int, overshoot: int) -> None:
    encoder = VpxEncoder(codec, 352, 288, 29.97, start_bps=1_234_567.0)
    config = encoder._config

    def value(offset: int) -> int:
        return libvpx_abi.get_int(config, offset)

    assert [value(o) for o in (Config.WIDTH, Config.HEIGHT, Config.THREADS)] == [352, 288, 1]
    assert [value(o) for o in (Config.TIMEBASE_NUM, Config.TIMEBASE_DEN)] == [100, 2997]
    assert [value(o) for o in (Config.ERROR_RESILIENT, Config.LAG_IN_FRAMES)] == [1, 0]
    assert [value(o) for o in (Config.PASS, Config.END_USAGE)] == [0, 1]
    assert [value(o) for o in (Config.MIN_QUANTIZER, Config.MAX_QUANTIZER)] == [0, 63]
    assert [value(o) for o in (Config.UNDERSHOOT_PCT, Config.OVERSHOOT_PCT)] == [
        undershoot,
        overshoot,
    ]
    buffers = (Config.BUFFER_MS, Config.BUFFER_INITIAL_MS, Config.BUFFER_OPTIMAL_MS)
    assert [value(o) for o in buffers] == [150, 75, 90]
    assert [value(o) for o in (Config.KEYFRAME_MODE, Config.DROPFRAME_THRESH)] == [0, 0]
    assert value(Config.TARGET_KBPS) == encoder.target_kbps == 1235
    encoder.close()


@pytest.mark.parametrize("codec", CODECS)
def test_key_frame_on_request_only(codec: str, small: Pictures) -> None:
    encoder = small_encoder(codec)
    frames = [
        encoder.encode(small[n % 30], target_bps=500e3, keyframe=n in (10, 11, 40))
        for n in range(60)
    ]
    assert [n for n, frame in enumerate(frames) if frame and frame[1]] == [0, 10, 11, 40]
    encoder.close()


@pytest.mark.parametrize("codec", CODECS)
def test_a_dropped_key_frame_is_asked_for_again(
    codec: str, small: Pictures, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = small_encoder(codec)
    encoder.encode(small[0], target_bps=500e3, keyframe=False)
    with monkeypatch.context() as patch:
        patch.setattr(libvpx_abi, "take_packets", lambda lib, context: None)
        assert encoder.encode(small[1], target_bps=500e3, keyframe=True) is None
        assert encoder.encode(small[2], target_bps=500e3, keyframe=False) is None
    frames = [encoder.encode(p, target_bps=500e3, keyframe=False) for p in small[3:6]]
    assert [frame[1] for frame in frames if frame] == [True, False, False]
    encoder.close()


def test_a_real_drop_is_none_and_the_stream_goes_on(medium: Pictures) -> None:
    encoder, decoder = VpxEncoder("vp9", 352, 288, 30.0, start_bps=2e6), PyavDecoder("vp9")
    frames = []
    for number in range(240):
        target = 2e6 if (number // 60) % 2 == 0 else 150e3
        frames.append(encoder.encode(medium[number], target_bps=target, keyframe=False))
    assert 1 <= frames.count(None) <= 8
    for frame in frames:
        assert frame is None or len(decoder.decode(frame[0])) == 1
    encoder.close()


@pytest.mark.parametrize("codec", CODECS)
def test_quantizer_follows_the_rate(codec: str, small: Pictures) -> None:
    encoder = small_encoder(codec)
    assert encoder.last_quantizer == 0
    for picture in small:
        encoder.encode(picture, target_bps=50e3, keyframe=False)
    coarse = encoder.last_quantizer
    for picture in small:
        encoder.encode(picture, target_bps=2e6, keyframe=False)
    assert 0 <= encoder.last_quantizer < coarse <= 63
    encoder.close()


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize(
    ("target_bps", "kbps"),
    [(-1.0, 1), (0.0, 1), (499.0, 1), (4e18, 9124), (float("inf"), 9124), (777_400.0, 777)],
)
def test_senseless_rates_are_clamped(
    codec: str, target_bps: float, kbps: int, small: Pictures
) -> None:
    encoder = small_encoder(codec)
    for picture in small[:3]:
        encoder.encode(picture, target_bps=target_bps, keyframe=False)
    assert encoder.target_kbps == kbps
    encoder.close()


def test_an_unchanged_rate_is_not_set_again(
    small: Pictures, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = small_encoder("vp8")
    calls: list[int] = []
    apply = encoder._apply_config

    def counted() -> None:
        calls.append(encoder.target_kbps)
        apply()

    monkeypatch.setattr(encoder, "_apply_config", counted)
    for target in (500e3, 500e3, 500_200.0, 600e3, 600e3):
        encoder.encode(small[0], target_bps=target, keyframe=False)
    assert calls == [500]
    encoder.close()


@pytest.mark.parametrize("codec", CODECS)
def test_pictures_that_do_not_fit_are_refused(codec: str, medium: Pictures) -> None:
    encoder = small_encoder(codec)
    with pytest.raises(LocalMisuse, match="352x288 given to an encoder of 176x144"):
        encoder.encode(medium[0], target_bps=1e6, keyframe=False)
    with pytest.raises(LocalMisuse, match="rgb24"):
        encoder.encode(av.VideoFrame(176, 144, "rgb24"), target_bps=1e6, keyframe=False)
    with pytest.raises(LocalMisuse, match="not a number"):
        encoder.encode(av.VideoFrame(176, 144, "yuv420p"), target_bps=float("nan"), keyframe=False)
    encoder.close()


@pytest.mark.parametrize("codec", CODECS)
def test_use_after_close_is_misuse_and_closing_twice_is_not(codec: str, small: Pictures) -> None:
    encoder = small_encoder(codec)
    encoder.close()
    encoder.close()
    with pytest.raises(LocalMisuse, match="closed"):
        encoder.encode(small[0], target_bps=1e6, keyframe=False)
    with pytest.raises(LocalMisuse, match="closed"):
        encoder.resize(88, 72)
    with pytest.raises(LocalMisuse, match="closed"):
        encoder.set_rate(1e6)


class Entering:
    """A picture that uses the encoder while the encoder looks at it."""

    def __init__(self, encoder: VpxEncoder, picture: Any) -> None:
        self._encoder = encoder
        self._picture = picture

    @property
    def width(self) -> int:
        self._encoder.encode(self._picture, target_bps=1e6, keyframe=False)
        raise AssertionError("a second use of the encoder was let in")


def test_a_second_use_at_the_same_time_is_misuse(small: Pictures) -> None:
    encoder = small_encoder("vp9")
    with pytest.raises(LocalMisuse, match="two threads"):
        encoder.encode(Entering(encoder, small[0]), target_bps=1e6, keyframe=False)
    assert encoder.encode(small[0], target_bps=1e6, keyframe=False) is not None
    encoder.close()


def test_an_encoder_left_open_is_freed(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = small_encoder("vp8")
    finalizer: Any = encoder._finalizer
    gone = weakref.ref(encoder)
    del encoder
    gc.collect()
    assert gone() is None
    assert not finalizer.alive


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize(("width", "height"), [(1, 1), (2, 16), (17, 33), (353, 289)])
def test_odd_sizes(codec: str, width: int, height: int, small: Pictures) -> None:
    encoder = VpxEncoder(codec, width, height, 30.0, start_bps=300e3)
    decoder = PyavDecoder(codec)
    decoded = []
    for picture in small[:6]:
        fitted = picture.reformat(width, height)
        frame = encoder.encode(fitted, target_bps=300e3, keyframe=False)
        decoded += decoder.decode(frame[0]) if frame else []
    # VP9 drops every other picture of a single pixel.
    assert len(decoded) >= 3
    assert {(picture.width, picture.height) for picture in decoded} == {(width, height)}
    encoder.close()


def test_vp9_size_changes_without_key_frame(medium: Pictures) -> None:
    encoder, decoder = VpxEncoder("vp9", 352, 288, 30.0, start_bps=1e6), PyavDecoder("vp9")
    sizes = []
    for number, (width, height) in enumerate([(352, 288), (264, 216), (176, 144), (352, 288)] * 2):
        encoder.resize(width, height)
        for picture in medium[:5]:
            fitted = picture.reformat(width, height)
            frame = encoder.encode(fitted, target_bps=1e6, keyframe=False)
            if frame is not None:
                assert not frame[1] or number == 0
                (decoded,) = decoder.decode(frame[0])
                sizes.append((decoded.width, decoded.height) == (width, height))
    assert len(sizes) >= 35
    assert all(sizes)
    encoder.close()


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("size", [(353, 288), (352, 289), (0, 144), (176, -1), (65535, 65535)])
def test_no_size_above_the_first_one(codec: str, size: tuple[int, int], medium: Pictures) -> None:
    encoder = VpxEncoder(codec, 352, 288, 30.0, start_bps=1e6)
    with pytest.raises(LocalMisuse, match="the encoder was created with"):
        encoder.resize(*size)
    assert encoder.encode(medium[0], target_bps=1e6, keyframe=False) is not None
    encoder.close()


@pytest.mark.parametrize(
    ("codec", "width", "height", "fps", "reason"),
    [
        ("av1", 352, 288, 30.0, "no av1 encoder"),
        ("vp9", 0, 288, 30.0, "outside 1x1"),
        ("vp8", 352, 20000, 30.0, "outside 1x1"),
        ("vp9", 352, 288, 0.0, "frame rate"),
        ("vp9", 352, 288, float("nan"), "frame rate"),
    ],
)
def test_senseless_requests(codec: str, width: int, height: int, fps: float, reason: str) -> None:
    with pytest.raises(StartupError, match=reason):
        VpxEncoder(codec, width, height, fps, start_bps=1e6)


@pytest.mark.parametrize("codec", CODECS)
def test_refused_settings_carry_the_library_s_own_words(codec: str) -> None:
    with pytest.raises(StartupError, match=f"the {codec} encoder did not start: .*threads"):
        small_encoder(codec, threads=1000)


def test_a_failing_library_is_a_media_error(
    small: Pictures, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = small_encoder("vp9")
    # libvpx refuses a presentation time before its first one.
    encoder._pts = 5
    encoder.encode(small[0], target_bps=1e6, keyframe=False)
    encoder._pts = 1
    with pytest.raises(MediaError, match="vp9 encoder: "):
        encoder.encode(small[0], target_bps=1e6, keyframe=False)
    encoder.close()


@pytest.mark.parametrize("codec", CODECS)
def test_two_threads_give_a_stream_too(codec: str, medium: Pictures) -> None:
    encoder = VpxEncoder(codec, 352, 288, 30.0, start_bps=1e6, threads=2)
    decoder = PyavDecoder(codec)
    for picture in medium[:10]:
        frame = encoder.encode(picture, target_bps=1e6, keyframe=False)
        assert frame is not None
        assert len(decoder.decode(frame[0])) == 1
    encoder.close()
