"""RTP data packets (RFC 3550 section 5): a hot path of tuples, and a dataclass for all else.

The hot path builds no objects: `parse_rtp_fast` reads one packet out of a
larger buffer (a GRO run) by offset, `pack_header` writes the twelve bytes every
streamd packet begins with. `RtpPacket` knows CSRC lists, extensions and padding.
"""

import struct
from dataclasses import dataclass, field
from typing import Final

from streamd.errors import LocalMisuse, WireError
from streamd.wire.buffer import Buffer

HEADER: Final = struct.Struct("!BBHII")
"""The fixed header: first byte, marker and payload type, sequence number, time, SSRC."""
HEADER_SIZE: Final = 12
FIRST_BYTE: Final = 0x80
"""Version 2, no padding, no extension, no CSRC."""
FIRST_BYTE_EXTENSION: Final = 0x90
MARKER: Final = 0x80

_unpack_header = HEADER.unpack_from
_pack_header = HEADER.pack
_pack_header_into = HEADER.pack_into

RtpFields = tuple[bool, int, int, int, int, int, int, int]


def is_rtcp(second_byte: int) -> bool:
    """Tell RTCP from RTP on one port by the second byte (RFC 5761 section 4)."""
    return 192 <= second_byte <= 223


def pack_header(
    second_byte: int, seq: int, timestamp: int, ssrc: int, first_byte: int = FIRST_BYTE
) -> bytes:
    """A fixed header; `seq` and `timestamp` may be unwrapped, their low bits are sent.

    `second_byte` is the payload type, with MARKER added on the last packet of a frame.
    """
    return _pack_header(first_byte, second_byte, seq & 0xFFFF, timestamp & 0xFFFFFFFF, ssrc)


def pack_header_into(
    buffer: bytearray | memoryview,
    offset: int,
    second_byte: int,
    seq: int,
    timestamp: int,
    ssrc: int,
    first_byte: int = FIRST_BYTE,
) -> None:
    """`pack_header`, written at `offset` of a buffer that is large enough."""
    _pack_header_into(
        buffer, offset, first_byte, second_byte, seq & 0xFFFF, timestamp & 0xFFFFFFFF, ssrc
    )


def parse_rtp_fast(data: Buffer, start: int, end: int) -> RtpFields:
    """Read the packet in `data[start:end]`; the slice must lie within `data`.

    Returns (marker, payload type, sequence number, timestamp, SSRC, ext_start,
    payload_start, payload_end), the last three as offsets into `data`. The
    header extension with its four header bytes is `data[ext_start:payload_start]`,
    empty where there is none. Raises WireError.
    """
    if end - start < 12:
        raise WireError("rtp_truncated", f"{end - start} bytes, a header has 12")
    first, second, seq, timestamp, ssrc = _unpack_header(data, start)
    ext_start = start + 12
    if first == 0x80:
        return second > 127, second & 127, seq, timestamp, ssrc, ext_start, ext_start, end
    if first == 0x90:
        payload_start = _extension_end(data, ext_start, end)
        return second > 127, second & 127, seq, timestamp, ssrc, ext_start, payload_start, end
    ext_start, payload_start, payload_end = _variable_parts(data, first, ext_start, end)
    return second > 127, second & 127, seq, timestamp, ssrc, ext_start, payload_start, payload_end


def _extension_end(data: Buffer, ext_start: int, end: int) -> int:
    """Where the extension ends: its length is in 32-bit words in its third and fourth byte."""
    following = ext_start + 4
    if following <= end:
        following += data[ext_start + 2] << 10 | data[ext_start + 3] << 2
    if following > end:
        raise WireError("rtp_extension", f"ends {following - end} bytes beyond the packet")
    return following


def _variable_parts(data: Buffer, first: int, after_header: int, end: int) -> tuple[int, int, int]:
    """(ext_start, payload_start, payload_end) of a packet with CSRCs or padding."""
    if first >> 6 != 2:
        raise WireError("rtp_version", f"version {first >> 6}")
    payload_start = ext_start = after_header + 4 * (first & 0x0F)
    if ext_start > end:
        raise WireError("rtp_csrc", f"{first & 0x0F} CSRCs in {end - after_header} bytes")
    if first & 0x10:
        payload_start = _extension_end(data, ext_start, end)
    if not first & 0x20:
        return ext_start, payload_start, end
    padding = data[end - 1]
    if not 0 < padding <= end - payload_start:
        raise WireError("rtp_padding", f"{padding} bytes of {end - payload_start}")
    return ext_start, payload_start, end - padding


@dataclass(slots=True)
class RtpPacket:
    """An RTP packet with everything RFC 3550 section 5.1 and 5.3 lets it have."""

    payload_type: int
    seq: int
    timestamp: int
    ssrc: int
    payload: bytes = b""
    marker: bool = False
    csrcs: list[int] = field(default_factory=list)
    extension_profile: int | None = None
    """The 16 bits before the extension's length; None = no header extension."""
    extension: bytes = b""
    """The extension after its four header bytes, a multiple of four bytes."""
    padding: int = 0
    """Bytes of padding at the end, their count included; 0 = none."""


def encode_rtp(packet: RtpPacket) -> bytes:
    """The packet's bytes; LocalMisuse if a value does not fit its field."""
    first = FIRST_BYTE | len(packet.csrcs)
    if len(packet.csrcs) > 15 or not 0 <= packet.payload_type <= 127:
        raise LocalMisuse(f"payload type {packet.payload_type}, {len(packet.csrcs)} CSRCs")
    try:
        middle = struct.pack(f"!{len(packet.csrcs)}I", *packet.csrcs)
        if packet.extension_profile is not None:
            first |= 0x10
            middle += _encode_extension(packet.extension_profile, packet.extension)
        if packet.padding:
            first |= 0x20
        header = _pack_header(
            first,
            packet.payload_type | packet.marker << 7,
            packet.seq,
            packet.timestamp,
            packet.ssrc,
        )
    except struct.error as error:
        raise LocalMisuse(f"RTP packet does not fit its fields: {error}") from None
    return header + middle + packet.payload + _encode_padding(packet.padding)


def _encode_extension(profile: int, extension: bytes) -> bytes:
    if len(extension) % 4:
        raise LocalMisuse(f"extension of {len(extension)} bytes, not a multiple of 4")
    return struct.pack("!HH", profile, len(extension) // 4) + extension


def _encode_padding(padding: int) -> bytes:
    if not 0 <= padding <= 255:
        raise LocalMisuse(f"{padding} bytes of padding, one byte counts them")
    return bytes(padding - 1) + bytes((padding,)) if padding else b""


def decode_rtp(data: Buffer, start: int = 0, end: int | None = None) -> RtpPacket:
    """The packet in `data[start:end]` as an object; WireError on bad bytes."""
    if end is None:
        end = len(data)
    marker, payload_type, seq, timestamp, ssrc, ext_start, payload_start, payload_end = (
        parse_rtp_fast(data, start, end)
    )
    count = data[start] & 0x0F
    packet = RtpPacket(
        payload_type=payload_type,
        seq=seq,
        timestamp=timestamp,
        ssrc=ssrc,
        payload=bytes(data[payload_start:payload_end]),
        marker=marker,
        csrcs=list(struct.unpack_from(f"!{count}I", data, start + HEADER_SIZE)),
        padding=end - payload_end,
    )
    if ext_start != payload_start:
        packet.extension_profile = data[ext_start] << 8 | data[ext_start + 1]
        packet.extension = bytes(data[ext_start + 4 : payload_start])
    return packet
