"""RTCP source description and goodbye (RFC 3550 sections 6.5 and 6.6)."""

import struct
from dataclasses import dataclass, field
from typing import Final

from streamd.errors import LocalMisuse, WireError
from streamd.wire.buffer import Buffer
from streamd.wire.rtcp_header import pack_packet, pack_values

SDES: Final = 202
BYE: Final = 203
CNAME: Final = 1
"""SDES item type of the canonical end-point name."""

_SSRC = struct.Struct("!I")


@dataclass(slots=True)
class SdesChunk:
    """One source and its items: (type, text as UTF-8 bytes)."""

    ssrc: int
    items: list[tuple[int, bytes]] = field(default_factory=list)


@dataclass(slots=True)
class SourceDescription:
    """SDES: names of up to 31 sources."""

    chunks: list[SdesChunk] = field(default_factory=list)

    def encode(self) -> bytes:
        """The RTCP packet; LocalMisuse if a value does not fit its field."""
        return pack_packet(SDES, len(self.chunks), b"".join(map(_encode_chunk, self.chunks)))


@dataclass(slots=True)
class Goodbye:
    """BYE: sources that leave, and perhaps why."""

    ssrcs: list[int]
    reason: bytes = b""

    def encode(self) -> bytes:
        """The RTCP packet; LocalMisuse if a value does not fit its field."""
        body = pack_values(struct.Struct(f"!{len(self.ssrcs)}I"), *self.ssrcs)
        if self.reason:
            body += _counted(self.reason)
            body += bytes(-len(body) % 4)
        return pack_packet(BYE, len(self.ssrcs), body)


def cname_description(ssrc: int, cname: str) -> SourceDescription:
    """The SDES every compound packet carries: one source, one CNAME."""
    return SourceDescription([SdesChunk(ssrc, [(CNAME, cname.encode())])])


def decode_source_description(data: Buffer, count: int, start: int, end: int) -> SourceDescription:
    """The SDES whose body (without header and padding) is `data[start:end]`."""
    description = SourceDescription()
    for _ in range(count):
        chunk, start = _decode_chunk(data, start, end)
        description.chunks.append(chunk)
    if start != end:
        raise WireError("rtcp_sdes", f"{end - start} bytes after the last chunk")
    return description


def decode_goodbye(data: Buffer, count: int, start: int, end: int) -> Goodbye:
    """The BYE whose body (without header and padding) is `data[start:end]`."""
    position = start + 4 * count
    if position > end:
        raise WireError("rtcp_bye", f"{count} sources in {end - start} bytes")
    ssrcs = list(struct.unpack_from(f"!{count}I", data, start))
    if position == end:
        return Goodbye(ssrcs)
    following = position + 1 + data[position]
    if following > end:
        raise WireError("rtcp_bye", f"reason of {data[position]} bytes")
    return Goodbye(ssrcs, bytes(data[position + 1 : following]))


def _counted(text: bytes) -> bytes:
    if len(text) > 255:
        raise LocalMisuse(f"text of {len(text)} bytes, one byte counts them")
    return bytes((len(text),)) + text


def _encode_chunk(chunk: SdesChunk) -> bytes:
    out = pack_values(_SSRC, chunk.ssrc)
    for item_type, text in chunk.items:
        if not 1 <= item_type <= 255:
            raise LocalMisuse(f"SDES item type {item_type}")
        out += bytes((item_type,)) + _counted(text)
    # At least one zero byte ends the items, more fill the word.
    return out + bytes(4 - len(out) % 4)


def _decode_chunk(data: Buffer, start: int, end: int) -> tuple[SdesChunk, int]:
    """A chunk and the position behind it."""
    if end - start < 8:
        raise WireError("rtcp_sdes", f"chunk in {end - start} bytes")
    chunk = SdesChunk(_SSRC.unpack_from(data, start)[0])
    position = start + 4
    while position < end and data[position]:
        text = position + 2
        following = text + data[position + 1] if text <= end else text
        if following > end:
            raise WireError("rtcp_sdes", "item ends beyond the packet")
        chunk.items.append((data[position], bytes(data[text:following])))
        position = following
    following = position + 4 - (position - start) % 4
    if following > end:
        raise WireError("rtcp_sdes", "chunk without its end mark")
    return chunk, following
