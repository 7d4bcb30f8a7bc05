"""The 12-byte video header extension: which frame a packet belongs to, and where in it.

One element of the one-byte form (RFC 8285), as the public video fork of the
SCReAM BW tool sends it; streamd's default profile uses the same one:

    BE DE 00 02 | 16 (id 1, 7 bytes) | flags | frame id | fragment id | fragment count

The last three are 16 bits, big endian. Frame ids count encoded frames from 0
and wrap. A packet without the extension is legal (synthetic traffic of the BW
tool has only a marker per frame).
"""

import struct
from typing import Final

from streamd.errors import LocalMisuse, WireError
from streamd.wire.buffer import Buffer
from streamd.wire.extension import ONE_BYTE_PROFILE, decode_elements
from streamd.wire.rtp import FIRST_BYTE_EXTENSION

ELEMENT_ID: Final = 1
ELEMENT_BYTE: Final = 0x16
"""Element id 1 with a length field of 6, i.e. 7 bytes."""
FLAG_KEYFRAME: Final = 0x80
REFERENCE_ID: Final = 3
REFERENCE_BYTE: Final = REFERENCE_ID << 4 | 1
"""Element id 3 of 2 bytes: on frames that repair, the frame they are predicted from."""
SIZE: Final = 12
HEADER_SIZE: Final = 24
"""RTP header and video extension together."""
MAX_FRAGMENTS: Final = 0xFFFF

_EXTENSION = struct.Struct("!HHBBHHH")
_ELEMENT = struct.Struct("!BHHH")
VIDEO_PACKET: Final = struct.Struct("!BBHIIHHBBHHH")
"""RTP header and video extension: the 24 bytes before the payload."""

_pack_packet = VIDEO_PACKET.pack
_unpack_extension = _EXTENSION.unpack_from

VideoFields = tuple[int, int, int, int]


def pack_video_ext(flags: int, frame_id: int, fragment_id: int, fragment_count: int) -> bytes:
    """The extension alone; `frame_id` may be unwrapped. LocalMisuse if a value does not fit."""
    try:
        return _EXTENSION.pack(
            ONE_BYTE_PROFILE, 2, ELEMENT_BYTE, flags, frame_id & 0xFFFF, fragment_id, fragment_count
        )
    except struct.error:
        raise _misuse(flags, fragment_id, fragment_count) from None


def pack_video_header(
    second_byte: int,
    seq: int,
    timestamp: int,
    ssrc: int,
    flags: int,
    frame_id: int,
    fragment_id: int,
    fragment_count: int,
) -> bytes:
    """The 24 bytes before the payload: RTP header and extension in one go.

    `seq`, `timestamp` and `frame_id` may be unwrapped; `second_byte` as in
    `rtp.pack_header`. LocalMisuse if another value does not fit its field.
    """
    try:
        return _pack_packet(
            FIRST_BYTE_EXTENSION,
            second_byte,
            seq & 0xFFFF,
            timestamp & 0xFFFFFFFF,
            ssrc,
            ONE_BYTE_PROFILE,
            2,
            ELEMENT_BYTE,
            flags,
            frame_id & 0xFFFF,
            fragment_id,
            fragment_count,
        )
    except struct.error:
        raise _misuse(flags, fragment_id, fragment_count) from None


def pack_video_header_with(elements: bytes, *fields: int) -> bytes:
    """As `pack_video_header(*fields)`, with further elements of the one-byte form, unpadded."""
    header = bytearray(pack_video_header(*fields))
    header += elements
    header += bytes(-len(header) % 4)
    header[14:16] = ((len(header) - 16) // 4).to_bytes(2, "big")
    return bytes(header)


def pack_reference(frame_id: int) -> bytes:
    """The element that names the only frame this one is predicted from."""
    return bytes((REFERENCE_BYTE,)) + (frame_id & 0xFFFF).to_bytes(2, "big")


def parse_reference(data: Buffer, ext_start: int, payload_start: int) -> int | None:
    """The frame id of `pack_reference`; None: predicted from the frame before, as usual.

    Raises WireError on an element of the wrong length or a malformed extension.
    """
    if payload_start - ext_start <= SIZE:
        return None
    profile = data[ext_start] << 8 | data[ext_start + 1]
    for identifier, value in decode_elements(profile, data, ext_start + 4, payload_start):
        if identifier == REFERENCE_ID:
            if len(value) != 2:
                raise WireError("reference_ext", f"element of {len(value)} bytes, 2 expected")
            return value[0] << 8 | value[1]
    return None


def _misuse(flags: int, fragment_id: int, fragment_count: int) -> LocalMisuse:
    return LocalMisuse(
        f"video header does not fit: flags {flags}, fragment {fragment_id} of {fragment_count}"
    )


def parse_video_ext(data: Buffer, ext_start: int, payload_start: int) -> VideoFields | None:
    """(flags, frame id, fragment id, fragment count) of the extension `parse_rtp_fast` found.

    None where the packet has no such element. Raises WireError on one of the
    wrong length, a fragment beyond its count, or a malformed extension.
    """
    if ext_start == payload_start:
        return None
    if payload_start - ext_start == 12:
        profile, _, element, flags, frame_id, fragment_id, count = _unpack_extension(
            data, ext_start
        )
        if profile == 0xBEDE and element == 0x16:
            if fragment_id >= count:
                raise WireError("video_fragment", f"fragment {fragment_id} of {count}")
            return flags, frame_id, fragment_id, count
    return _parse_elements(data, ext_start, payload_start)


def _parse_elements(data: Buffer, ext_start: int, payload_start: int) -> VideoFields | None:
    """The same from an extension that holds other elements too, or is of the two-byte form."""
    profile = data[ext_start] << 8 | data[ext_start + 1]
    for identifier, value in decode_elements(profile, data, ext_start + 4, payload_start):
        if identifier != ELEMENT_ID:
            continue
        if len(value) != _ELEMENT.size:
            raise WireError("video_ext", f"element of {len(value)} bytes, 7 expected")
        flags, frame_id, fragment_id, count = _ELEMENT.unpack(value)
        if fragment_id >= count:
            raise WireError("video_fragment", f"fragment {fragment_id} of {count}")
        return flags, frame_id, fragment_id, count
    return None
