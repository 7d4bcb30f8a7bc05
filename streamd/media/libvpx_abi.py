"""Finding libvpx, agreeing with it on an ABI number, and proving the memory layout.

Theory of operation.  libvpx has no Python binding that can change the bitrate
of a running encoder, so `media.libvpx` calls the C library by ctypes.  That is
safe only while our idea of its structures is right, and three things can make
it wrong: the library's version, its build, and this file.  So before the first
encoder is made the library has to pass three tests.

1. ABI number: `vpx_codec_enc_init_ver` is called with falling numbers from 63
   until one is accepted.  Downwards, because some builds accept every smaller
   number than their own.  A wrong number is refused before anything is
   allocated.
2. Layout of the configuration: the library fills two buffers that hold
   different bytes.  It must write exactly the bytes we believe the structure
   to have, and the documented defaults must stand at our offsets.
3. Behaviour: one encoded picture must come back as one key-frame packet with
   the presentation time and width that were given.

Candidates are the library in the PyAV wheel, then the system's.  The first
that passes is kept for the life of the process.  Loading is local
(never RTLD_GLOBAL): a second libvpx made global would take PyAV's symbols.

Numbers: libvpx's public headers `vpx_encoder.h`, `vpx_image.h` and `vp8cx.h`,
checked against versions 1.12 and 1.16.
"""

import ctypes
import functools
import importlib.metadata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from streamd.errors import StartupError

INTERFACES = {"vp8": "vpx_codec_vp8_cx", "vp9": "vpx_codec_vp9_cx"}
SYSTEM_NAMES = (
    *(f"libvpx.so.{major}" for major in range(16, 5, -1)),
    "libvpx.so",
    "libvpx.dylib",
)

CONFIG_BYTES = 504
IMAGE_BYTES = 136
CONTEXT_BYTES = 56
SPARE_BYTES = 512
"""Every structure is allocated this much larger, in case a build writes more than it should."""

HIGHEST_ABI = 63
OK = 0
DEADLINE_REALTIME = 1
IMAGE_I420 = 0x102
FRAME_PACKET = 0
PACKET_KEYFRAME = 1
FORCE_KEYFRAME = 1
NO_REF_LAST = 1 << 16
NO_REF = (1 << 17, 1 << 21)
"""Not to predict from golden, alternate: the long-term slots 0 and 1."""
NO_UPDATE = (1 << 22, 1 << 23)
FORCE_UPDATE = (1 << 19, 1 << 24)
"""Together with `NO_UPDATE` of the same slot libvpx refuses it."""


class Config:
    """Offsets in `vpx_codec_enc_cfg_t`; every field is a C int of 4 bytes."""

    THREADS = 4
    WIDTH = 12
    HEIGHT = 16
    TIMEBASE_NUM = 28
    TIMEBASE_DEN = 32
    ERROR_RESILIENT = 36
    PASS = 40
    LAG_IN_FRAMES = 44
    DROPFRAME_THRESH = 48
    RESIZE_ALLOWED = 52
    END_USAGE = 72
    TARGET_KBPS = 112
    MIN_QUANTIZER = 116
    MAX_QUANTIZER = 120
    UNDERSHOOT_PCT = 124
    OVERSHOOT_PCT = 128
    BUFFER_MS = 132
    BUFFER_INITIAL_MS = 136
    BUFFER_OPTIMAL_MS = 140
    KEYFRAME_MODE = 160
    KEYFRAME_MAX_DISTANCE = 168


class Image:
    """Offsets in `vpx_image_t`."""

    WIDTH = 12
    HEIGHT = 16
    DISPLAY_WIDTH = 24
    DISPLAY_HEIGHT = 28
    PLANES = 48
    STRIDES = 80


class Packet:
    """Offsets in `vpx_codec_cx_pkt_t` of a frame packet."""

    KIND = 0
    BUFFER = 8
    SIZE = 16
    PTS = 24
    FLAGS = 40
    WIDTH = 48


class Control:
    """Control ids of `vp8cx.h`; not every codec knows every one."""

    CPU_USED = 13
    LAST_QUANTIZER_64 = 20
    MAX_INTRA_BITRATE_PCT = 26
    SCREEN_CONTENT_MODE = 31
    TILE_COLUMNS = 33
    AQ_MODE = 36
    ROW_MT = 55
    POSTENCODE_DROP = 66


DEFAULTS = {
    Config.WIDTH: 320,
    Config.HEIGHT: 240,
    Config.TIMEBASE_NUM: 1,
    Config.TIMEBASE_DEN: 30,
    Config.TARGET_KBPS: 256,
    Config.MAX_QUANTIZER: 63,
    Config.BUFFER_MS: 6000,
    Config.BUFFER_INITIAL_MS: 4000,
    Config.BUFFER_OPTIMAL_MS: 5000,
    Config.KEYFRAME_MAX_DISTANCE: 128,
}
"""What both codecs' default configuration holds; the layout test looks for them."""


@dataclass(frozen=True, slots=True)
class EncoderAbi:
    """One codec of one loaded library, after it passed the self-check."""

    path: str
    version: str
    codec: str
    interface: int
    abi: int
    lib: Any
    """The `ctypes.CDLL` with argument types declared."""


def open_abi(codec: str) -> EncoderAbi:
    """The encoder interface for "vp8" or "vp9", probed once per process.

    Raises StartupError naming every library tried and why it did not do.
    """
    return _open_default(codec)


@functools.cache
def _open_default(codec: str) -> EncoderAbi:
    return open_abi_from(codec, candidates())


def open_abi_from(codec: str, paths: Iterable[str]) -> EncoderAbi:
    """As `open_abi`, on the given libraries, in their order and without the cache."""
    tried: list[str] = []
    for path in paths:
        try:
            return _check_library(codec, path)
        except _Unfit as unfit:
            tried.append(f"{path} ({unfit})")
    raise StartupError(
        f"no usable libvpx for the {codec} encoder; tried: {', '.join(tried) or 'nothing'}"
    )


def candidates() -> list[str]:
    """The wheel's library first, then the names a system gives its own."""
    try:
        files = importlib.metadata.files("av") or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    bundled = [str(file.locate()) for file in files if file.name.startswith("libvpx")]
    return [*sorted(bundled), *SYSTEM_NAMES]


class _Unfit(Exception):
    """Why a candidate was passed over."""


def _check_library(codec: str, path: str) -> EncoderAbi:
    lib = _load(path)
    try:
        interface = int(getattr(lib, INTERFACES[codec])())
    except AttributeError:
        raise _Unfit(f"built without {codec}") from None
    _check_layout(lib, interface)
    abi = _probe_abi(lib, interface)
    version = lib.vpx_codec_version_str().decode("ascii", "replace")
    checked = EncoderAbi(path, version, codec, interface, abi, lib)
    _check_one_frame(checked)
    return checked


def _load(path: str) -> Any:
    try:
        lib = ctypes.CDLL(path)
    except OSError as error:
        raise _Unfit("not found" if "No such file" in str(error) else str(error)) from None
    try:
        _declare(lib)
    except AttributeError as error:
        raise _Unfit(f"not libvpx: {error}") from None
    return lib


def _declare(lib: Any) -> None:
    pointer, c_int, c_long = ctypes.c_void_p, ctypes.c_int, ctypes.c_long
    c_uint, c_ulong = ctypes.c_uint, ctypes.c_ulong
    signatures: dict[str, tuple[Any, list[Any]]] = {
        "vpx_codec_version_str": (ctypes.c_char_p, []),
        "vpx_codec_error_detail": (ctypes.c_char_p, [pointer]),
        "vpx_codec_err_to_string": (ctypes.c_char_p, [c_int]),
        "vpx_codec_enc_config_default": (c_int, [pointer, pointer, c_uint]),
        "vpx_codec_enc_init_ver": (c_int, [pointer, pointer, pointer, c_long, c_int]),
        "vpx_codec_enc_config_set": (c_int, [pointer, pointer]),
        "vpx_codec_encode": (c_int, [pointer, pointer, ctypes.c_int64, c_ulong, c_long, c_ulong]),
        "vpx_codec_get_cx_data": (pointer, [pointer, pointer]),
        "vpx_codec_destroy": (c_int, [pointer]),
        "vpx_img_wrap": (pointer, [pointer, c_int, c_uint, c_uint, c_uint, pointer]),
        # Variadic: only the fixed arguments may be declared, or the third
        # is passed by the wrong convention on some machines.
        "vpx_codec_control_": (c_int, [pointer, c_int]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    for name in INTERFACES.values():
        function = getattr(lib, name, None)
        if function is not None:
            function.restype, function.argtypes = pointer, []


def new_buffer(size: int, fill: int = 0) -> "ctypes.Array[ctypes.c_char]":
    """Memory for one structure, with spare room behind it."""
    buffer = ctypes.create_string_buffer(size + SPARE_BYTES)
    if fill:
        ctypes.memset(buffer, fill, size + SPARE_BYTES)
    return buffer


def get_int(buffer: Any, offset: int) -> int:
    """The C int at `offset`."""
    return ctypes.c_int.from_buffer(buffer, offset).value


def set_int(buffer: Any, offset: int, value: int) -> None:
    """Write a C int at `offset`."""
    ctypes.c_int.from_buffer(buffer, offset).value = value


def default_config(lib: Any, interface: int, fill: int = 0) -> "ctypes.Array[ctypes.c_char]":
    """The library's default configuration in memory that held `fill` before."""
    buffer = new_buffer(CONFIG_BYTES, fill)
    code = lib.vpx_codec_enc_config_default(interface, buffer, 0)
    if code != OK:
        raise _Unfit(f"default configuration refused with code {code}")
    return buffer


def _check_layout(lib: Any, interface: int) -> None:
    """Tell written from unwritten bytes by filling twice, then look for the defaults."""
    low, high = default_config(lib, interface, 0x55).raw, default_config(lib, interface, 0xAA).raw
    untouched = [a == 0x55 and b == 0xAA for a, b in zip(low, high, strict=True)]
    written = len(untouched) - sum(untouched)
    if written != CONFIG_BYTES or any(untouched[:CONFIG_BYTES]):
        raise _Unfit(f"configuration of {written} bytes, expected {CONFIG_BYTES}")
    buffer = bytearray(low)
    for offset, expected in DEFAULTS.items():
        found = get_int(buffer, offset)
        if found != expected:
            raise _Unfit(f"configuration holds {found} at offset {offset}, expected {expected}")


def _probe_abi(lib: Any, interface: int) -> int:
    config = _small_config(lib, interface)
    for number in range(HIGHEST_ABI, 0, -1):
        context = new_buffer(CONTEXT_BYTES)
        if lib.vpx_codec_enc_init_ver(context, interface, config, 0, number) == OK:
            lib.vpx_codec_destroy(context)
            return number
    raise _Unfit(f"no ABI number from {HIGHEST_ABI} down to 1 accepted")


CHECK_SIZE = 64
CHECK_PTS = 7


def _small_config(lib: Any, interface: int) -> "ctypes.Array[ctypes.c_char]":
    config = default_config(lib, interface)
    set_int(config, Config.WIDTH, CHECK_SIZE)
    set_int(config, Config.HEIGHT, CHECK_SIZE)
    set_int(config, Config.THREADS, 1)
    set_int(config, Config.LAG_IN_FRAMES, 0)
    return config


def _check_one_frame(abi: EncoderAbi) -> None:
    """Encode one grey picture; the packet must say what we know to be true."""
    lib = abi.lib
    context = new_buffer(CONTEXT_BYTES)
    config = _small_config(lib, abi.interface)
    if lib.vpx_codec_enc_init_ver(context, abi.interface, config, 0, abi.abi) != OK:
        raise _Unfit("the probed ABI number was refused the second time")
    try:
        pixels = ctypes.create_string_buffer(b"\x80" * (CHECK_SIZE * CHECK_SIZE * 3 // 2))
        image = new_image(lib, CHECK_SIZE, CHECK_SIZE, ctypes.addressof(pixels))
        if lib.vpx_codec_encode(context, image, CHECK_PTS, 1, 0, DEADLINE_REALTIME) != OK:
            raise _Unfit("the test frame was refused")
        _check_packet(lib.vpx_codec_get_cx_data(context, ctypes.byref(ctypes.c_void_p())))
    finally:
        lib.vpx_codec_destroy(context)


def new_image(lib: Any, width: int, height: int, data: int) -> "ctypes.Array[ctypes.c_char]":
    """An I420 image header over the pixels at address `data`, rows packed."""
    image = new_buffer(IMAGE_BYTES)
    if not lib.vpx_img_wrap(image, IMAGE_I420, width, height, 1, data):
        raise StartupError(f"libvpx cannot wrap an image of {width}x{height}")
    return image


def _check_packet(packet: int | None) -> None:
    if not packet:
        raise _Unfit("the test frame gave no packet")
    facts = {
        "kind": (_read(ctypes.c_int, packet, Packet.KIND), FRAME_PACKET),
        "pts": (_read(ctypes.c_int64, packet, Packet.PTS), CHECK_PTS),
        "key frame": (_read(ctypes.c_uint32, packet, Packet.FLAGS) & PACKET_KEYFRAME, 1),
        "width": (_read(ctypes.c_uint, packet, Packet.WIDTH), CHECK_SIZE),
    }
    for name, (found, expected) in facts.items():
        if found != expected:
            raise _Unfit(f"the test packet has {name} {found}, expected {expected}")


def _read(kind: Any, address: int, offset: int) -> int:
    return int(kind.from_address(address + offset).value)


def take_packets(lib: Any, context: Any) -> tuple[bytes, bool] | None:
    """The frame just encoded and whether it is a key frame; None when it was dropped.

    The packet's memory is the library's until its next call, hence the copy.
    """
    iterator = ctypes.c_void_p()
    data, keyframe = b"", False
    while packet := lib.vpx_codec_get_cx_data(context, ctypes.byref(iterator)):
        if _read(ctypes.c_int, packet, Packet.KIND) != FRAME_PACKET:
            continue
        address = _read(ctypes.c_size_t, packet, Packet.BUFFER)
        data += ctypes.string_at(address, _read(ctypes.c_size_t, packet, Packet.SIZE))
        keyframe |= bool(_read(ctypes.c_uint32, packet, Packet.FLAGS) & PACKET_KEYFRAME)
    return (data, keyframe) if data else None
