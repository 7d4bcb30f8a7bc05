"""Sources, encoders and decoders by the names users write.

PyAV and libvpx are loaded when the first thing that needs them is opened, so a
daemon with the synthetic codec never loads them.
"""

import math
import os
import random

from streamd.errors import ConfigError
from streamd.media.model import FrameSource, VideoDecoder, VideoEncoder
from streamd.media.synthetic import (
    KEYFRAME_FACTOR,
    SyntheticDecoder,
    SyntheticEncoder,
    SyntheticSource,
)

SYNTHETIC = "synthetic"
CLIPS = ("low", "medium", "high")
CODECS = ("vp9", "vp8", "h264", SYNTHETIC)

DEFAULT_FPS = 30.0
DEFAULT_SIZE = (352, 288)


def open_source(
    name: str,
    *,
    fps: float | None = None,
    size: tuple[int, int] | None = None,
    loop: bool = False,
) -> FrameSource:
    """The source called `name`: low, medium, high, synthetic, or a file or device.

    `fps` and `size` (width, height) default to what the source has.  `loop` is
    for files; the built-in sources never end.  Raises StartupError when it
    cannot be opened, ConfigError for senseless fps or size.
    """
    if name == SYNTHETIC:
        return SyntheticSource(DEFAULT_FPS if fps is None else fps, *(size or DEFAULT_SIZE))
    if name in CLIPS:
        from streamd.media.clips import ClipSource

        return ClipSource(name, fps=fps, size=size)
    from streamd.media.pyav import FileSource

    return FileSource(name, fps=fps, size=size, loop=loop)


def open_encoder(
    codec: str,
    source: FrameSource,
    *,
    start_bps: float,
    max_bps: float,
    threads: int | None = None,
    keyframe_factor: float = KEYFRAME_FACTOR,
    size_deviation: float = 0.0,
    rng: random.Random | None = None,
    long_term: bool = False,
    adapt: bool = False,
) -> VideoEncoder:
    """An encoder for the pictures of `source`: vp9, vp8, h264 or synthetic.

    Rates in bit/s; only H.264 cannot go above `max_bps` later.  `threads` None
    chooses by picture size.  `long_term`: VP8 and VP9 shall keep long-term references;
    `adapt`: and take fewer or smaller pictures where the rate is too low.  The factors and
    `rng` are for the synthetic codec.
    Raises StartupError with one line that says what is missing.
    """
    _check_codec(codec)
    if (codec == SYNTHETIC) != isinstance(source, SyntheticSource):
        raise ConfigError(f"codec {codec} cannot encode this source: both are synthetic or none is")
    if codec == SYNTHETIC:
        return SyntheticEncoder(
            source.fps, keyframe_factor=keyframe_factor, size_deviation=size_deviation, rng=rng
        )
    count = encoder_threads(source.width, source.height) if threads is None else threads
    if codec == "h264":
        from streamd.media.pyav_codec import X264Encoder

        return X264Encoder(source.width, source.height, source.fps, max_bps=max_bps, threads=count)
    from streamd.media.adaptive import AdaptiveEncoder
    from streamd.media.libvpx import VpxEncoder

    encoder = VpxEncoder(
        codec,
        source.width,
        source.height,
        source.fps,
        start_bps=start_bps,
        threads=count,
        long_term=long_term,
    )
    if not adapt:
        return encoder
    return AdaptiveEncoder(encoder, source.fps, resizes=codec == "vp9")


def open_decoder(codec: str, *, max_size: tuple[int, int] | None = None) -> VideoDecoder:
    """A decoder for `codec`; pictures above `max_size` (width, height) are refused.

    Raises StartupError when this installation cannot decode it.
    """
    _check_codec(codec)
    if codec == SYNTHETIC:
        return SyntheticDecoder()
    from streamd.media.pyav_codec import MAX_SIZE, PyavDecoder

    return PyavDecoder(codec, max_size=max_size or MAX_SIZE)


def encoder_threads(width: int, height: int) -> int:
    """One up to 640x480, then one more for every doubling, at most the processors there are."""
    doublings = math.log2(width * height / (640 * 480))
    return max(1, min(1 + math.ceil(doublings), os.cpu_count() or 1, 8))


def _check_codec(codec: str) -> None:
    if codec not in CODECS:
        raise ConfigError(f"no codec {codec!r}; there are {', '.join(CODECS)}")
