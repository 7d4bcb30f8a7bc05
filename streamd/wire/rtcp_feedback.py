"""RTCP feedback on media: generic NACK, PLI (RFC 4585 sections 6.2, 6.3), FIR (RFC 5104 4.3.1)."""

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from streamd.errors import WireError
from streamd.wire.buffer import Buffer
from streamd.wire.rtcp_header import pack_packet, pack_values

RTPFB: Final = 205
PSFB: Final = 206
FMT_NACK: Final = 1
FMT_PLI: Final = 1
FMT_FIR: Final = 4

_SSRCS = struct.Struct("!II")
_NACK = struct.Struct("!HH")
_FIR = struct.Struct("!IB3x")


@dataclass(slots=True)
class GenericNack:
    """Packets of `media_ssrc` the receiver misses, by 16-bit sequence number."""

    sender_ssrc: int
    media_ssrc: int
    lost: list[int]

    def encode(self) -> bytes:
        """The RTCP packet; LocalMisuse if a value does not fit its field."""
        body = pack_values(_SSRCS, self.sender_ssrc, self.media_ssrc)
        pairs = (pack_values(_NACK, first, mask) for first, mask in _nack_pairs(self.lost))
        return pack_packet(RTPFB, FMT_NACK, body + b"".join(pairs))


@dataclass(slots=True)
class PictureLossIndication:
    """PLI: the decoder lost its picture; the encoder decides how to mend it."""

    sender_ssrc: int
    media_ssrc: int

    def encode(self) -> bytes:
        """The RTCP packet; LocalMisuse if a value does not fit its field."""
        return pack_packet(PSFB, FMT_PLI, pack_values(_SSRCS, self.sender_ssrc, self.media_ssrc))


@dataclass(slots=True)
class FullIntraRequest:
    """FIR: a key frame of each (SSRC, command sequence number) is demanded."""

    sender_ssrc: int
    requests: list[tuple[int, int]] = field(default_factory=list)

    def encode(self) -> bytes:
        """The RTCP packet; LocalMisuse if a value does not fit its field."""
        # The media SSRC of the common header is unused and 0 (RFC 5104 section 4.3.1.2).
        body = pack_values(_SSRCS, self.sender_ssrc, 0)
        entries = (pack_values(_FIR, ssrc, command) for ssrc, command in self.requests)
        return pack_packet(PSFB, FMT_FIR, body + b"".join(entries))


def decode_nack(data: Buffer, start: int, end: int) -> GenericNack:
    """The NACK whose body (without header and padding) is `data[start:end]`."""
    sender_ssrc, media_ssrc = _read_ssrcs(data, start, end)
    nack = GenericNack(sender_ssrc, media_ssrc, [])
    for position in range(start + 8, end, 4):
        first, mask = _NACK.unpack_from(data, position)
        nack.lost.append(first)
        nack.lost += [first + bit + 1 & 0xFFFF for bit in range(16) if mask >> bit & 1]
    return nack


def decode_pli(data: Buffer, start: int, end: int) -> PictureLossIndication:
    """The PLI whose body (without header and padding) is `data[start:end]`."""
    return PictureLossIndication(*_read_ssrcs(data, start, end))


def decode_fir(data: Buffer, start: int, end: int) -> FullIntraRequest:
    """The FIR whose body (without header and padding) is `data[start:end]`."""
    sender_ssrc, _ = _read_ssrcs(data, start, end)
    if (end - start) % 8:
        raise WireError("rtcp_fir", f"body of {end - start} bytes")
    entries = [_FIR.unpack_from(data, position) for position in range(start + 8, end, 8)]
    return FullIntraRequest(sender_ssrc, entries)


def _read_ssrcs(data: Buffer, start: int, end: int) -> tuple[int, int]:
    if end - start < 8:
        raise WireError("rtcp_feedback", f"body of {end - start} bytes")
    sender_ssrc, media_ssrc = _SSRCS.unpack_from(data, start)
    return sender_ssrc, media_ssrc


def _nack_pairs(lost: Iterable[int]) -> list[tuple[int, int]]:
    """(sequence number, mask of the 16 that follow it) pairs that name `lost`, in its order."""
    pairs: list[tuple[int, int]] = []
    reached = 17
    for seq in lost:
        distance = seq - pairs[-1][0] & 0xFFFF if pairs else 17
        if reached < distance <= 16:
            pairs[-1] = (pairs[-1][0], pairs[-1][1] | 1 << distance - 1)
            reached = distance
        else:
            pairs.append((seq, 0))
            reached = 0
    return pairs
