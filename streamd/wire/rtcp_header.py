"""The framing every RTCP packet shares (RFC 3550 section 6.4.1): header, length, padding."""

import struct
from typing import Any, Final, NamedTuple

from streamd.errors import LocalMisuse, WireError
from streamd.wire.buffer import Buffer
from streamd.wire.rtp import is_rtcp

MAX_COUNT: Final = 31

_HEADER = struct.Struct("!BBH")
_MAX_WORDS = 0xFFFF


class RtcpSlice(NamedTuple):
    """Where one packet of a compound lies."""

    packet_type: int
    subtype: int
    """The five bits after version and padding: report count, source count or FMT."""
    start: int
    """Of the packet, header included."""
    body_end: int
    """Without padding."""
    end: int


def pack_packet(packet_type: int, count: int, body: bytes) -> bytes:
    """Header and body; LocalMisuse unless the body is whole 32-bit words that fit."""
    words = len(body) // 4
    if len(body) % 4 or words > _MAX_WORDS or not 0 <= count <= MAX_COUNT:
        raise LocalMisuse(f"RTCP {packet_type}: count {count}, body of {len(body)} bytes")
    return _HEADER.pack(0x80 | count, packet_type, words) + body


def pack_values(layout: struct.Struct, *values: Any) -> bytes:
    """`layout.pack`, with a value that does not fit reported as LocalMisuse."""
    try:
        return layout.pack(*values)
    except struct.error as error:
        raise LocalMisuse(f"{values} do not fit {layout.format}: {error}") from None


def split_compound(data: Buffer, start: int = 0, end: int | None = None) -> list[RtcpSlice]:
    """The packets that make up `data[start:end]`; any type may come first (RFC 5506).

    Raises WireError if the lengths do not add up, or a packet but the last is padded.
    """
    if end is None:
        end = len(data)
    if start == end:
        raise WireError("rtcp_truncated", "no bytes at all")
    slices = []
    while start < end:
        packet = _read_header(data, start, end)
        slices.append(packet)
        start = packet.end
    return slices


def _read_header(data: Buffer, start: int, end: int) -> RtcpSlice:
    if end - start < 4:
        raise WireError("rtcp_truncated", f"{end - start} bytes, a header has 4")
    first, packet_type, words = _HEADER.unpack_from(data, start)
    following = start + 4 + 4 * words
    if first >> 6 != 2:
        raise WireError("rtcp_version", f"version {first >> 6}")
    if not is_rtcp(packet_type):
        raise WireError("rtcp_type", f"packet type {packet_type}")
    if following > end:
        raise WireError("rtcp_length", f"{4 + 4 * words} bytes of {end - start}")
    padding = 0
    if first & 0x20:
        padding = data[following - 1]
        if following != end or not padding or padding % 4 or padding > following - start - 4:
            raise WireError("rtcp_padding", f"{padding} bytes of padding")
    return RtcpSlice(packet_type, first & 0x1F, start, following - padding, following)
