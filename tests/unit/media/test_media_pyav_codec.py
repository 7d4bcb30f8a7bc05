import statistics
from typing import Any

import av
import pytest

from streamd.errors import LocalMisuse, MediaError, StartupError
from streamd.media import pyav_codec
from streamd.media.libvpx import VpxEncoder
from streamd.media.pyav_codec import PyavDecoder, X264Encoder

Pictures = list[Any]


def vpx_frames(codec: str, pictures: Pictures) -> list[bytes]:
    first = pictures[0]
    encoder = VpxEncoder(codec, first.width, first.height, 30.0, start_bps=500e3)
    frames = [encoder.encode(p, target_bps=500e3, keyframe=False) for p in pictures]
    encoder.close()
    return [frame[0] for frame in frames if frame is not None]


def test_h264_gives_each_picture_at_once(small: Pictures) -> None:
    encoder, decoder = X264Encoder(176, 144, 30.0, max_bps=2e6), PyavDecoder("h264")
    keyframes = []
    for number, picture in enumerate(small):
        frame = encoder.encode(picture, target_bps=300e3, keyframe=number in (7, 20))
        assert frame is not None
        assert frame[0].startswith(b"\x00\x00\x00\x01")
        assert len(decoder.decode(frame[0])) == 1
        keyframes += [number] * frame[1]
        # NAL types 7 and 8: parameter sets come with every key frame, 5 is its picture.
        kinds = [part[0] & 31 for part in frame[0].split(b"\x00\x00\x01")[1:]]
        assert ({7, 8, 5} <= set(kinds)) is frame[1]
    assert keyframes == [0, 7, 20]
    encoder.close()


def test_h264_follows_the_rate_without_key_frames(medium: Pictures) -> None:
    encoder = X264Encoder(352, 288, 30.0, max_bps=5e6)
    means: list[float] = []
    keyframes = 0
    for target in (600e3, 150e3, 1.5e6, 300e3):
        bits = []
        for picture in medium[:120]:
            frame = encoder.encode(picture, target_bps=target, keyframe=False)
            assert frame is not None
            keyframes += frame[1]
            bits.append(len(frame[0]) * 8)
        means.append(statistics.fmean(bits[30:]) * 30 / target)
    assert keyframes == 1
    # After a large step up libx264 stays below its target for a while; 0.84 was measured first.
    assert all(0.80 <= mean <= 1.05 for mean in means), means
    encoder.close()


def test_h264_comes_down_within_two_seconds_whatever_the_highest_rate(medium: Pictures) -> None:
    encoder = X264Encoder(352, 288, 30.0, max_bps=float("inf"))
    for picture in medium[:60]:
        encoder.encode(picture, target_bps=3e6, keyframe=False)
    bits = []
    for picture in medium[60:120]:
        frame = encoder.encode(picture, target_bps=300e3, keyframe=False)
        assert frame is not None
        bits.append(len(frame[0]) * 8)
    assert sum(bits[30:]) <= 1.1 * 300e3
    encoder.close()


def test_h264_ignores_the_type_the_picture_had_before(small: Pictures) -> None:
    encoder = X264Encoder(176, 144, 30.0, max_bps=2e6)
    keyframes = []
    for picture in small[:5]:
        picture.pict_type = av.video.frame.PictureType.I
        frame = encoder.encode(picture, target_bps=300e3, keyframe=False)
        keyframes.append(frame is not None and frame[1])
    assert keyframes == [True, False, False, False, False]
    encoder.close()


@pytest.mark.parametrize("target_bps", [-1.0, 0.0, 1e15, float("inf")])
def test_h264_clamps_senseless_rates(target_bps: float, small: Pictures) -> None:
    encoder = X264Encoder(176, 144, 30.0, max_bps=2e6)
    for picture in small[:3]:
        assert encoder.encode(picture, target_bps=target_bps, keyframe=False) is not None
    encoder.close()


def test_h264_misuse(small: Pictures, medium: Pictures) -> None:
    encoder = X264Encoder(176, 144, 30.0, max_bps=2e6)
    with pytest.raises(LocalMisuse, match="given to an encoder of 176x144"):
        encoder.encode(medium[0], target_bps=1e6, keyframe=False)
    with pytest.raises(LocalMisuse, match="not a number"):
        encoder.encode(small[0], target_bps=float("nan"), keyframe=False)
    encoder.close()
    encoder.close()
    with pytest.raises(LocalMisuse, match="closed"):
        encoder.encode(small[0], target_bps=1e6, keyframe=False)
    with pytest.raises(StartupError, match="highest rate"):
        X264Encoder(176, 144, 30.0, max_bps=0.0)
    with pytest.raises(StartupError, match=r"H\.264 encoder did not start"):
        X264Encoder(0, 144, 30.0, max_bps=2e6)


def test_a_missing_codec_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyav_codec, "DECODERS", ("vp17",))
    with pytest.raises(StartupError, match=r"no vp17 decoder in the FFmpeg of this installation"):
        PyavDecoder("vp17")
    monkeypatch.setattr(pyav_codec, "H264_ENCODER", "libx17")
    with pytest.raises(StartupError, match=r"no H\.264 encoder \(libx17\) in the FFmpeg"):
        X264Encoder(176, 144, 30.0, max_bps=2e6)


def test_an_unknown_codec_is_refused() -> None:
    with pytest.raises(StartupError, match="no av1 decoder; there are vp9, vp8, h264"):
        PyavDecoder("av1")


@pytest.mark.parametrize("codec", ["vp9", "vp8", "h264"])
def test_garbage_is_a_media_error_and_the_decoder_lives(codec: str, small: Pictures) -> None:
    if codec == "h264":
        encoder = X264Encoder(176, 144, 30.0, max_bps=2e6)
        encoded = encoder.encode(small[0], target_bps=500e3, keyframe=False)
        assert encoded is not None
        good = encoded[0]
    else:
        good = vpx_frames(codec, small[:1])[0]
    decoder = PyavDecoder(codec)
    with pytest.raises(MediaError, match=f"{codec} decoder: empty frame"):
        decoder.decode(b"")
    for data in (b"\xff", bytes(100), b"\x9d\x01\x2a" * 50):
        with pytest.raises(MediaError, match=f"{codec} decoder: "):
            decoder.decode(data)
    assert len(decoder.decode(good)) == 1
    decoder.close()
    with pytest.raises(LocalMisuse, match="closed"):
        decoder.decode(good)


@pytest.mark.parametrize("codec", ["vp9", "vp8"])
def test_nothing_decodes_before_the_first_key_frame(codec: str, small: Pictures) -> None:
    frames = vpx_frames(codec, small[:4])
    decoder = PyavDecoder(codec)
    with pytest.raises(MediaError):
        decoder.decode(frames[1])
    assert len(decoder.decode(frames[0])) == 1
    assert len(decoder.decode(frames[1])) == 1


@pytest.mark.parametrize("codec", ["vp9", "vp8"])
@pytest.mark.parametrize("limit", [(175, 144), (176, 143)])
def test_pictures_above_the_limit_are_refused(
    codec: str, limit: tuple[int, int], small: Pictures
) -> None:
    frames = vpx_frames(codec, small[:2])
    decoder = PyavDecoder(codec, max_size=limit)
    with pytest.raises(MediaError, match=f"176x144 is above the limit of {limit[0]}x{limit[1]}"):
        decoder.decode(frames[0])
    assert decoder.rebuilds == 1
    assert len(PyavDecoder(codec, max_size=(176, 144)).decode(frames[0])) == 1


def test_a_huge_announced_picture_is_refused_before_it_is_allocated(small: Pictures) -> None:
    """VP8's key frame header holds 14 bits of width and height each."""
    data = bytearray(vpx_frames("vp8", small[:1])[0])
    data[6:10] = (16383).to_bytes(2, "little") * 2
    decoder = PyavDecoder("vp8")
    with pytest.raises(MediaError, match="vp8 decoder: "):
        decoder.decode(bytes(data))


def test_an_error_other_than_bad_data_makes_a_new_decoder(
    small: Pictures, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stuck:
        def decode(self, packet: Any) -> None:
            raise av.error.BlockingIOError(11, "Resource temporarily unavailable")

    decoder = PyavDecoder("vp9")
    monkeypatch.setattr(decoder, "_context", Stuck())
    with pytest.raises(MediaError, match="vp9 decoder: Resource temporarily unavailable"):
        decoder.decode(b"x")
    assert decoder.rebuilds == 1
    assert len(decoder.decode(vpx_frames("vp9", small[:1])[0])) == 1
