"""A codec that costs nothing: frames of the right size without any video in them.

Theory of operation.  Every frame has exactly the size that the target rate and
the frame rate give, times a factor for key frames, times a random factor where
variation is wanted (the model of the syncodec library, whose statistical codec
serves the same purpose).  A frame begins with a header,

    index u32 | length u32 | flags u8 (bit 0: key frame) | "SYN" | CRC-32 of these 12 bytes

in network order, and goes on with a fixed pattern that starts at an offset
depending on the index.  So making a frame is one copy out of a shared buffer,
and the decoder can tell any damage, a wrong length or mixed up frames by
comparing with that buffer.  Frames shorter than the header are pattern only.

Like a real encoder this one makes a key frame first and on request; unlike one
it never drops a frame and does not make up for large frames afterwards.
"""

import math
import random
import struct
import zlib
from collections.abc import Sequence

from streamd.errors import ConfigError, LocalMisuse, MediaError
from streamd.media.model import Picture

KEYFRAME_FACTOR = 2.5
"""Median key frame of VP9 and of VP8 under the settings of `media.libvpx`, in target frames."""
REPAIR_FACTOR = 1.9
"""Median frame predicted from a picture five frames old, in target frames."""
MAX_FRAME_BYTES = 1 << 24
"""16 MiB: above any sensible rate, below what would hurt the host."""

_FIELDS = struct.Struct("!IIB3s")
_CHECKSUM = struct.Struct("!I")
HEADER_BYTES = _FIELDS.size + _CHECKSUM.size
_TAG = b"SYN"
_PERIOD = 251
"""Prime, so that no packet size makes all packets of a frame alike."""
_LAST_FACTOR = 3.0


class SyntheticSource:
    """Empty pictures at a constant rate, without end (`model.FrameSource`)."""

    def __init__(self, fps: float = 30.0, width: int = 352, height: int = 288) -> None:
        """Raises ConfigError for a rate outside 0.1 to 1000 Hz."""
        if not 0.1 <= fps <= 1000:
            raise ConfigError(f"frame rate {fps} is outside 0.1..1000 Hz")
        self.fps = fps
        self.width = width
        self.height = height

    def read(self) -> Picture:
        """None: the synthetic encoder looks at nothing."""
        return None

    def close(self) -> None:
        """Nothing to release."""


class SyntheticEncoder:
    """Frames sized by the target rate alone (`model.VideoEncoder`)."""

    inline = True
    long_term = True

    def __init__(
        self,
        fps: float,
        *,
        keyframe_factor: float = KEYFRAME_FACTOR,
        size_deviation: float = 0.0,
        rng: random.Random | None = None,
    ) -> None:
        """`size_deviation` is the standard deviation of the frame size over its mean.

        Raises LocalMisuse when variation is asked for without `rng`, ConfigError
        for factors that give no sizes.
        """
        if not (keyframe_factor > 0 and 0 <= size_deviation <= 1):
            raise ConfigError(
                f"key frame factor {keyframe_factor} must be positive and size deviation"
                f" {size_deviation} within 0..1"
            )
        if size_deviation and rng is None:
            raise LocalMisuse("size variation needs a random generator")
        self._fps = fps
        self._keyframe_factor = keyframe_factor
        self._deviation = size_deviation
        self._rng = rng
        self._index = 0
        self._open = True
        self.stored: int | None = None
        self.referred: int | None = None

    def encode(
        self,
        picture: Picture,
        *,
        target_bps: float,
        keyframe: bool,
        store: int | None = None,
        refer: int | None = None,
    ) -> tuple[bytes, bool] | None:
        """A frame of `target_bps / fps` bits, at least one byte; never None.

        Raises LocalMisuse on a rate that is not a number and after `close`.
        """
        if not self._open or math.isnan(target_bps):
            raise LocalMisuse("encoder closed" if not self._open else "target rate is not a number")
        keyframe |= self._index == 0
        size = min(max(target_bps, 0.0) / self._fps / 8, MAX_FRAME_BYTES)
        if keyframe:
            size *= self._keyframe_factor
        elif refer is not None:
            size *= min(REPAIR_FACTOR, self._keyframe_factor)
        self.referred = None if keyframe else refer
        self.stored = None if keyframe or refer is not None else store
        if self._rng is not None and self._deviation:
            size *= min(max(self._rng.gauss(1.0, self._deviation), 0.0), _LAST_FACTOR)
        data = make_frame(self._index, min(max(int(size), 1), MAX_FRAME_BYTES), keyframe)
        self._index = (self._index + 1) & 0xFFFFFFFF
        return data, keyframe

    def close(self) -> None:
        """End use."""
        self._open = False


class SyntheticDecoder:
    """Checks synthetic frames byte by byte (`model.VideoDecoder`)."""

    inline = True

    def __init__(self) -> None:
        self.last_index: int | None = None
        """Index of the last frame long enough to carry one."""

    def decode(self, data: bytes) -> Sequence[Picture]:
        """One empty picture. Raises MediaError when any byte is not what was encoded."""
        if not data:
            raise MediaError("empty synthetic frame")
        if len(data) < HEADER_BYTES:
            if data != _PATTERN.take(0, len(data)):
                raise MediaError("short synthetic frame is damaged")
            return (None,)
        index, length, _, tag = _FIELDS.unpack_from(data)
        (checksum,) = _CHECKSUM.unpack_from(data, _FIELDS.size)
        if tag != _TAG or checksum != zlib.crc32(data[: _FIELDS.size]):
            raise MediaError("synthetic frame has a damaged header")
        if length != len(data):
            raise MediaError(f"synthetic frame {index} has {len(data)} of {length} bytes")
        if data[HEADER_BYTES:] != _PATTERN.take(index, length - HEADER_BYTES):
            raise MediaError(f"synthetic frame {index} is damaged")
        self.last_index = index
        return (None,)

    def close(self) -> None:
        """Nothing to release."""


def make_frame(index: int, length: int, keyframe: bool) -> bytes:
    """The synthetic frame with this index, `length` bytes in all."""
    if length < HEADER_BYTES:
        return _PATTERN.take(0, length)
    fields = _FIELDS.pack(index, length, keyframe, _TAG)
    checksum = _CHECKSUM.pack(zlib.crc32(fields))
    return b"".join((fields, checksum, _PATTERN.take(index, length - HEADER_BYTES)))


class _Pattern:
    """The shared payload, grown to the longest frame seen."""

    def __init__(self) -> None:
        self._bytes = b""

    def take(self, index: int, length: int) -> bytes:
        """`length` bytes from the place that belongs to frame `index`."""
        start = index % _PERIOD
        if start + length > len(self._bytes):
            periods = max(256, (start + length) * 2 // _PERIOD)
            self._bytes = bytes(range(_PERIOD)) * periods
        return self._bytes[start : start + length]


_PATTERN = _Pattern()
