"""Decoders for VP9, VP8 and H.264, and the H.264 encoder, all by PyAV.

The decoder is FFmpeg's own on one thread: it gives every picture at once, and
after damage it goes on at the first frame that stands on its own.  It notices
only about half of all damage and never a missing reference, so it wants whole,
checked frames, and the caller keeps track of what may be shown.

libx264 follows a changed `bit_rate` in one set-up only: opened as constant
bitrate (bit_rate equal to maxrate, with a bufsize) at the highest rate ever
wanted.  Below that the rate may change before any frame, without a key frame.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import av
from av.video.frame import PictureType

from streamd.errors import LocalMisuse, MediaError, StartupError
from streamd.media.model import Picture

DECODERS = ("vp9", "vp8", "h264")
MAX_SIZE = (4096, 2304)
"""Largest picture taken from a peer that announced nothing smaller."""

H264_ENCODER = "libx264"
X264_BUFFER_BITS = 100_000
"""Rate control buffer; a larger one spends more in the first second after a down step."""
X264_MIN_BPS = 10_000.0
X264_MAX_BITS_PER_PIXEL = 1.65
"""5 Mbit/s at 352x288 and 30 Hz. Opened for more, the encoder takes seconds to come down:
its buffer has to hold one frame at the highest rate."""
NEVER = 2**30
"""Key frame interval that x264 reads as infinite."""


class PyavDecoder:
    """Whole frames in, `av.VideoFrame` pictures out (`model.VideoDecoder`)."""

    inline = False

    def __init__(self, codec: str, *, max_size: tuple[int, int] = MAX_SIZE) -> None:
        """`codec` is "vp9", "vp8" or "h264"; `max_size` the largest width and height believed.

        Raises StartupError when this FFmpeg has no such decoder.
        """
        if codec not in DECODERS:
            raise StartupError(f"no {codec} decoder; there are {', '.join(DECODERS)}")
        self.codec = codec
        self.max_size = max_size
        self.rebuilds = 0
        """How often the decoder was made anew after an error it may not recover from."""
        self._context: Any = self._create()

    def decode(self, data: bytes) -> list[av.VideoFrame]:
        """The pictures of one encoded frame, usually one.

        Raises MediaError on damaged data and on pictures above the size limit,
        LocalMisuse after `close`.
        """
        if self._context is None:
            raise LocalMisuse("the decoder was closed")
        if not data:  # an empty packet would tell FFmpeg that the stream ends
            raise MediaError(f"{self.codec} decoder: empty frame")
        try:
            pictures: list[av.VideoFrame] = self._context.decode(av.Packet(data))
        except av.error.InvalidDataError as error:
            raise self._failure(error) from None
        except av.FFmpegError as error:
            self._rebuild()
            raise self._failure(error) from None
        for picture in pictures:
            self._check_size(picture)
        return pictures

    def close(self) -> None:
        """Free the decoder; may be called twice."""
        self._context = None

    def _failure(self, error: av.FFmpegError) -> MediaError:
        return MediaError(f"{self.codec} decoder: {error.strerror or error}")

    def _check_size(self, picture: av.VideoFrame) -> None:
        width, height = self.max_size
        if picture.width > width or picture.height > height:
            self._rebuild()
            raise MediaError(
                f"{self.codec} picture of {picture.width}x{picture.height} is above"
                f" the limit of {width}x{height}"
            )

    def _rebuild(self) -> None:
        self.rebuilds += 1
        self._context = self._create()

    def _create(self) -> Any:
        context: Any = _create_context(self.codec, "r", f"no {self.codec} decoder")
        context.thread_count = 1
        # FFmpeg refuses anything larger before it reserves the memory.  The area
        # bounds it with room to spare, a side is checked on the picture itself.
        context.options = {"max_pixels": str(self.max_size[0] * self.max_size[1] * 2)}
        context.flags |= av.codec.context.Flags.low_delay
        return context


class X264Encoder:
    """One H.264 stream (`model.VideoEncoder`): Annex B, parameter sets in every key frame."""

    inline = False
    long_term = False
    stored: int | None = None
    referred: int | None = None

    def __init__(
        self, width: int, height: int, fps: float, *, max_bps: float, threads: int = 1
    ) -> None:
        """`max_bps` is the highest rate (bit/s) this encoder can ever be set to.

        Above what the picture size can use (`X264_MAX_BITS_PER_PIXEL`) it is lowered to that.
        Raises StartupError when this FFmpeg has no libx264 or it refuses the settings.
        """
        if not max_bps >= X264_MIN_BPS:
            raise StartupError(f"highest rate of {max_bps} bit/s is below {X264_MIN_BPS:g}")
        self.width = width
        self.height = height
        self.fps = fps
        useful_bps = width * height * fps * X264_MAX_BITS_PER_PIXEL
        self._max_bps = min(max_bps, max(useful_bps, X264_MIN_BPS))
        self._pts = 0
        self._rate = Fraction(fps).limit_denominator(1001)
        context: Any = _create_context(H264_ENCODER, "w", f"no H.264 encoder ({H264_ENCODER})")
        self._configure(context, threads)
        try:
            context.open()
        except (av.FFmpegError, ValueError) as error:
            raise StartupError(f"the H.264 encoder did not start: {error}") from None
        self._context: Any = context

    def encode(
        self,
        picture: Picture,
        *,
        target_bps: float,
        keyframe: bool,
        store: int | None = None,
        refer: int | None = None,
    ) -> tuple[bytes, bool] | None:
        """One access unit at `target_bps` (bit/s), as `model.VideoEncoder.encode`.

        Time stamp and type of the picture are overwritten. Raises LocalMisuse on
        a picture of another size or format, on a rate that is not a number and
        after `close`, MediaError when libx264 fails.
        """
        self._check(picture, target_bps)
        self._context.bit_rate = int(min(max(target_bps, X264_MIN_BPS), self._max_bps))
        picture.pts = self._pts
        picture.time_base = 1 / self._rate
        # A decoded picture still carries its old type, which would force key frames.
        picture.pict_type = PictureType.I if keyframe else PictureType.NONE
        self._pts += 1
        try:
            packets = self._context.encode(picture)
        except av.FFmpegError as error:
            raise MediaError(f"H.264 encoder: {error.strerror or error}") from None
        if not packets:
            return None
        return b"".join(map(bytes, packets)), any(packet.is_keyframe for packet in packets)

    def close(self) -> None:
        """Free the encoder; may be called twice."""
        self._context = None

    def _check(self, picture: Picture, target_bps: float) -> None:
        if self._context is None:
            raise LocalMisuse("the encoder was closed")
        if math.isnan(target_bps):
            raise LocalMisuse("the target rate is not a number")
        given = (picture.width, picture.height, picture.format.name)
        if given != (self.width, self.height, "yuv420p"):
            raise LocalMisuse(f"picture {given} given to an encoder of {self.width}x{self.height}")

    def _configure(self, context: Any, threads: int) -> None:
        context.width, context.height, context.pix_fmt = self.width, self.height, "yuv420p"
        context.framerate = self._rate
        context.time_base = 1 / self._rate
        context.thread_count = threads
        context.gop_size = NEVER
        context.max_b_frames = 0
        context.bit_rate = int(self._max_bps)
        context.options = {
            "preset": "superfast",
            "tune": "zerolatency",
            "maxrate": str(int(self._max_bps)),
            "bufsize": str(max(X264_BUFFER_BITS, int(self._max_bps / self.fps))),
            "sc_threshold": "0",
            "forced-idr": "1",
        }


def _create_context(name: str, mode: str, missing: str) -> Any:
    create: Callable[..., Any] = av.CodecContext.create
    try:
        return create(name, mode)
    except av.codec.codec.UnknownCodecError:
        raise StartupError(f"{missing} in the FFmpeg of this installation") from None
