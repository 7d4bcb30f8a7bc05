"""VP9 and VP8 encoders whose bitrate changes with every frame, on libvpx by ctypes.

Theory of operation.  The session hands over a picture together with the rate
the congestion controller allows at this moment.  The rate is written into the
kept configuration and given to the running encoder (`vpx_codec_enc_config_set`),
which moves its rate control to it without a key frame.  A call that changes
nothing is left out, because VP8's output is not quite the same after it.

What makes the output follow the rate within half a second are the small rate
control buffers (150 ms); what bounds single frames is the drop control
(`VP9E_SET_POSTENCODE_DROP`, VP8's screen content mode 2).  Its price is a frame
without a packet now and then, which is normal: the decoder needs nothing, the
next frame predicts from the last one sent.  A key frame that fell to it is
asked for again at the next call.

libvpx accepts rates that mean nothing (0, four billion kbit/s) and, in VP9,
pictures of another size than configured; such values are stopped here.
Picture planes are passed by address, never copied.
"""

import ctypes
import math
import threading
import weakref
from fractions import Fraction
from typing import Any

from streamd.errors import LocalMisuse, MediaError, StartupError
from streamd.media import libvpx_abi as abi
from streamd.media.libvpx_abi import Config, Control, Image
from streamd.media.model import Picture

MAX_SIDE = 16383
"""VP8's header has 14 bits for a side; VP9 would allow more than any camera gives."""

BUFFER_MS = 150
BUFFER_INITIAL_MS = 75
BUFFER_OPTIMAL_MS = 90
MAX_INTRA_PERCENT = 300
"""Size of a key frame over the average frame that rate control aims to stay below."""
NEVER = 2**31 - 1

DEFAULT_CPU_USED = {"vp8": -6, "vp9": 8}
RATE_MARGINS = {"vp8": (50, 50), "vp9": (100, 15)}
"""Undershoot and overshoot percentages of rate control."""


class VpxEncoder:
    """One VP8 or VP9 stream (`model.VideoEncoder`).

    To be used by one thread at a time; a second one that enters while a frame
    is being encoded gets LocalMisuse, `close` waits for that frame.
    """

    inline = False

    def __init__(
        self,
        codec: str,
        width: int,
        height: int,
        fps: float,
        *,
        start_bps: float,
        threads: int = 1,
        cpu_used: int | None = None,
        min_quantizer: int = 0,
        long_term: bool = False,
    ) -> None:
        """`codec` is "vp9" or "vp8"; the rate in bit/s.

        `min_quantizer` 0 lets the stream fill any rate, 2 saves bits nobody sees.
        `long_term` keeps golden and alternate picture for `store` and `refer`; ordinary
        frames then predict from the last one alone, so that what they need is known.
        `width` and `height` are the largest size this encoder will ever have.
        Raises StartupError when no libvpx does or it refuses the settings.
        """
        _check_request(codec, width, height, fps)
        self.codec = codec
        self.width = width
        self.height = height
        self.fps = fps
        self._largest = (width, height)
        self._busy = threading.Lock()
        self.last_quantizer = 0
        """Quantizer of the last frame on the 0..63 scale; 0 before the first frame."""
        self.long_term = long_term
        self.stored: int | None = None
        self.referred: int | None = None
        self._store_owed: int | None = None
        self._refer_owed: int | None = None
        self._keyframe_owed = True
        self._pts = 0
        self._abi = abi.open_abi(codec)
        self._lib = self._abi.lib
        self._config = abi.default_config(self._lib, self._abi.interface)
        self._settings(threads, min_quantizer)
        self._kbps = self._clamp_kbps(start_bps)
        abi.set_int(self._config, Config.TARGET_KBPS, self._kbps)
        self._context, self._finalizer = self._open()
        self._controls(threads, DEFAULT_CPU_USED[codec] if cpu_used is None else cpu_used)
        self._image = self._new_image()
        self._quantizer = ctypes.c_int()
        self._quantizer_pointer = ctypes.byref(self._quantizer)

    def encode(
        self,
        picture: Picture,
        *,
        target_bps: float,
        keyframe: bool,
        store: int | None = None,
        refer: int | None = None,
    ) -> tuple[bytes, bool] | None:
        """One frame at `target_bps` (bit/s), as `model.VideoEncoder.encode`.

        The picture is an `av.VideoFrame` in yuv420p of exactly the configured
        size.  Raises LocalMisuse on any other picture, on a rate that is not a
        number, after `close` and on use by two threads; MediaError when libvpx fails.
        """
        if not self._busy.acquire(blocking=False):
            raise LocalMisuse("two threads used one encoder at the same time")
        try:
            self._owe(keyframe, store, refer)
            return self._encode(picture, target_bps)
        finally:
            self._busy.release()

    def set_rate(self, target_bps: float) -> None:
        """The rate (bit/s) from the next frame on, as `encode` sets it by itself.

        Raises LocalMisuse on a rate that is not a number and after `close`.
        """
        self._require_open()
        kbps = self._clamp_kbps(target_bps)
        if kbps != self._kbps:
            abi.set_int(self._config, Config.TARGET_KBPS, kbps)
            self._apply_config()
            self._kbps = kbps

    def resize(self, width: int, height: int) -> None:
        """Encode pictures of this size from now on: VP9 without a key frame, VP8 with one.

        Never above the size given at creation: libvpx would write outside its
        memory.  Raises LocalMisuse then, and for sizes below one pixel.
        """
        if not (0 < width <= self._largest[0] and 0 < height <= self._largest[1]):
            raise LocalMisuse(
                f"size {width}x{height} is outside 1x1..{self._largest[0]}x{self._largest[1]},"
                " the size the encoder was created with"
            )
        with self._busy:
            self._require_open()
            self.width, self.height = width, height
            abi.set_int(self._config, Config.WIDTH, width)
            abi.set_int(self._config, Config.HEIGHT, height)
            self._apply_config()
            self._image = self._new_image()

    @property
    def target_kbps(self) -> int:
        """The rate in force, in kbit/s, after clamping."""
        return self._kbps

    @property
    def library(self) -> str:
        """Path and version of the libvpx in use."""
        return f"{self._abi.path} {self._abi.version}"

    def close(self) -> None:
        """Free the encoder, after the frame in work if there is one. May be called twice."""
        with self._busy:
            self._finalizer()

    def _owe(self, keyframe: bool, store: int | None, refer: int | None) -> None:
        """Remember what is asked for until a frame comes out."""
        for slot in (store, refer):
            if slot not in (None, 0, 1):
                raise LocalMisuse(f"long-term slot {slot}: there are 0 and 1")
        self._keyframe_owed |= keyframe
        if self.long_term:
            self._store_owed = self._store_owed if store is None else store
            self._refer_owed = self._refer_owed if refer is None else refer

    def _flags(self) -> int:
        """The reference flags of the next frame."""
        if self._keyframe_owed:
            return abi.FORCE_KEYFRAME
        if not self.long_term:
            return 0
        if self._refer_owed is not None:
            return abi.NO_REF_LAST | abi.NO_REF[1 - self._refer_owed] | sum(abi.NO_UPDATE)
        keep = sum(abi.NO_REF)
        if self._store_owed is None:
            return keep | sum(abi.NO_UPDATE)
        return keep | abi.FORCE_UPDATE[self._store_owed] | abi.NO_UPDATE[1 - self._store_owed]

    def _came_out(self, keyframe: bool) -> None:
        """A frame came out: what was owed is paid, or not worth anything any more."""
        repaired = None if keyframe else self._refer_owed
        self.referred = repaired
        self.stored = None if keyframe or repaired is not None else self._store_owed
        self._refer_owed = None
        if repaired is None:
            self._store_owed = None
        if keyframe:
            self._keyframe_owed = False

    def _encode(self, picture: Picture, target_bps: float) -> tuple[bytes, bool] | None:
        self.set_rate(target_bps)
        self._point_at(picture)
        flags = self._flags()
        code = self._lib.vpx_codec_encode(
            self._context, self._image, self._pts, 1, flags, abi.DEADLINE_REALTIME
        )
        self._pts += 1
        if code != abi.OK:
            raise MediaError(f"{self.codec} encoder: {self._reason(code)}")
        frame = abi.take_packets(self._lib, self._context)
        if frame is not None:
            self._came_out(frame[1])
        self._control(Control.LAST_QUANTIZER_64, self._quantizer_pointer)
        self.last_quantizer = self._quantizer.value
        return frame

    def _clamp_kbps(self, target_bps: float) -> int:
        """Between 1 kbit/s and the rate of the raw pictures (1 Mbit/s if that is less).

        libvpx checks nothing.
        """
        if math.isnan(target_bps):
            raise LocalMisuse("the target rate is not a number")
        raw_bps = self._largest[0] * self._largest[1] * 12 * self.fps
        return max(1, round(min(max(target_bps, 0.0), max(raw_bps, 1e6)) / 1000))

    def _apply_config(self) -> None:
        code = self._lib.vpx_codec_enc_config_set(self._context, self._config)
        if code != abi.OK:
            raise MediaError(f"{self.codec} encoder: {self._reason(code)}")

    def _point_at(self, picture: Picture) -> None:
        """Let the image header point at the picture's own planes."""
        if (picture.width, picture.height) != (self.width, self.height):
            raise LocalMisuse(
                f"picture of {picture.width}x{picture.height} given to an encoder of"
                f" {self.width}x{self.height}"
            )
        if picture.format.name != "yuv420p":
            raise LocalMisuse(f"picture in {picture.format.name}, the encoder takes yuv420p")
        pointers, strides = self._plane_fields
        for index, plane in enumerate(picture.planes):
            pointers[index] = plane.buffer_ptr
            strides[index] = plane.line_size

    def _new_image(self) -> Any:
        # The address is replaced before every use; libvpx only refuses null.
        image = abi.new_image(self._lib, self.width, self.height, 1)
        self._plane_fields = (
            (ctypes.c_size_t * 3).from_buffer(image, Image.PLANES),
            (ctypes.c_int * 3).from_buffer(image, Image.STRIDES),
        )
        return image

    def _settings(self, threads: int, min_quantizer: int) -> None:
        timebase = 1 / Fraction(self.fps).limit_denominator(1001)
        undershoot, overshoot = RATE_MARGINS[self.codec]
        for offset, value in {
            Config.THREADS: threads,
            Config.WIDTH: self.width,
            Config.HEIGHT: self.height,
            Config.TIMEBASE_NUM: timebase.numerator,
            Config.TIMEBASE_DEN: timebase.denominator,
            Config.ERROR_RESILIENT: 1,
            Config.PASS: 0,
            Config.LAG_IN_FRAMES: 0,
            Config.DROPFRAME_THRESH: 0,
            Config.RESIZE_ALLOWED: 0,
            Config.END_USAGE: 1,  # constant bitrate
            Config.MIN_QUANTIZER: min_quantizer,
            Config.MAX_QUANTIZER: 63,
            Config.UNDERSHOOT_PCT: undershoot,
            Config.OVERSHOOT_PCT: overshoot,
            Config.BUFFER_MS: BUFFER_MS,
            Config.BUFFER_INITIAL_MS: BUFFER_INITIAL_MS,
            Config.BUFFER_OPTIMAL_MS: BUFFER_OPTIMAL_MS,
            Config.KEYFRAME_MODE: 0,  # on request only
            Config.KEYFRAME_MAX_DISTANCE: NEVER,
        }.items():
            abi.set_int(self._config, offset, value)

    def _open(self) -> "tuple[Any, weakref.finalize[[Any], VpxEncoder]]":
        context = abi.new_buffer(abi.CONTEXT_BYTES)
        code = self._lib.vpx_codec_enc_init_ver(
            context, self._abi.interface, self._config, 0, self._abi.abi
        )
        if code != abi.OK:
            reason = _text(self._lib, context, code)
            raise StartupError(f"the {self.codec} encoder did not start: {reason}")
        # libvpx frees nothing by itself: an encoder that is dropped unclosed
        # would keep its 3 to 16 MB for ever.
        return context, weakref.finalize(self, self._lib.vpx_codec_destroy, context)

    def _controls(self, threads: int, cpu_used: int) -> None:
        self._control(Control.CPU_USED, ctypes.c_int(cpu_used))
        self._control(Control.MAX_INTRA_BITRATE_PCT, ctypes.c_int(MAX_INTRA_PERCENT))
        if self.codec == "vp8":
            self._control(Control.SCREEN_CONTENT_MODE, ctypes.c_int(2))
            return
        self._control(Control.AQ_MODE, ctypes.c_int(3))
        self._control(Control.POSTENCODE_DROP, ctypes.c_int(1))
        if threads > 1:  # without tiles a second thread has nothing to do
            self._control(Control.TILE_COLUMNS, ctypes.c_int(threads.bit_length() - 1))
            self._control(Control.ROW_MT, ctypes.c_int(1))

    def _control(self, control: int, value: Any) -> None:
        code = self._lib.vpx_codec_control_(self._context, control, value)
        if code != abi.OK:
            raise StartupError(
                f"libvpx {self._abi.version} refused {self.codec} control {control}:"
                f" {self._reason(code)}"
            )

    def _require_open(self) -> None:
        if not self._finalizer.alive:
            raise LocalMisuse("the encoder was closed")

    def _reason(self, code: int) -> str:
        return _text(self._lib, self._context, code)


def _check_request(codec: str, width: int, height: int, fps: float) -> None:
    if codec not in abi.INTERFACES:
        raise StartupError(f"libvpx has no {codec} encoder; it has {', '.join(abi.INTERFACES)}")
    if not (0 < width <= MAX_SIDE and 0 < height <= MAX_SIDE):
        raise StartupError(f"picture size {width}x{height} is outside 1x1..{MAX_SIDE}x{MAX_SIDE}")
    if not 0.1 <= fps <= 1000:
        raise StartupError(f"frame rate {fps} is outside 0.1..1000 Hz")


def _text(lib: Any, context: Any, code: int) -> str:
    summary = lib.vpx_codec_err_to_string(code) or b"unknown error"
    detail = lib.vpx_codec_error_detail(context)
    text = summary if not detail else summary + b": " + detail
    return str(text.decode("utf-8", "replace"))
