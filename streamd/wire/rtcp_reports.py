"""RTCP sender and receiver reports (RFC 3550 section 6.4)."""

import struct
from dataclasses import dataclass, field
from typing import Final

from streamd.errors import LocalMisuse, WireError
from streamd.wire.buffer import Buffer
from streamd.wire.rtcp_header import pack_packet, pack_values

SR: Final = 200
RR: Final = 201
MAX_REPORTS: Final = 31

_SENDER = struct.Struct("!IQIII")
_SSRC = struct.Struct("!I")
_BLOCK = struct.Struct("!IIIIII")


@dataclass(slots=True)
class ReportBlock:
    """How one source was received (RFC 3550 section 6.4.1)."""

    ssrc: int
    fraction_lost: int = 0
    """Lost since the last report, in 1/256."""
    cumulative_lost: int = 0
    """Signed 24 bits: duplicates can make it negative."""
    highest_seq: int = 0
    """Wrap count in the upper, sequence number in the lower 16 bits."""
    jitter: int = 0
    """In RTP clock ticks."""
    last_sr: int = 0
    """Middle 32 bits of the last sender report's NTP time; 0 = none yet."""
    delay_since_last_sr: int = 0
    """In 1/65536 s."""


@dataclass(slots=True)
class SenderReport:
    """SR: what a source sent, and the same instant on the NTP and the media clock."""

    ssrc: int
    ntp: int
    """64-bit NTP timestamp."""
    rtp_timestamp: int
    packet_count: int
    octet_count: int
    reports: list[ReportBlock] = field(default_factory=list)

    def encode(self) -> bytes:
        """The RTCP packet; LocalMisuse if a value does not fit its field."""
        body = pack_values(
            _SENDER, self.ssrc, self.ntp, self.rtp_timestamp, self.packet_count, self.octet_count
        )
        return pack_packet(SR, len(self.reports), body + _encode_blocks(self.reports))


@dataclass(slots=True)
class ReceiverReport:
    """RR: report blocks of a participant that sends nothing itself."""

    ssrc: int
    reports: list[ReportBlock] = field(default_factory=list)

    def encode(self) -> bytes:
        """The RTCP packet; LocalMisuse if a value does not fit its field."""
        body = pack_values(_SSRC, self.ssrc)
        return pack_packet(RR, len(self.reports), body + _encode_blocks(self.reports))


def decode_sender_report(data: Buffer, count: int, start: int, end: int) -> SenderReport:
    """The SR whose body (without header and padding) is `data[start:end]`.

    Profile-specific extensions behind the report blocks are skipped.
    """
    if end - start < _SENDER.size:
        raise WireError("rtcp_sr", f"body of {end - start} bytes")
    reports = _decode_blocks(data, count, start + _SENDER.size, end)
    ssrc, ntp, rtp_timestamp, packets, octets = _SENDER.unpack_from(data, start)
    return SenderReport(ssrc, ntp, rtp_timestamp, packets, octets, reports)


def decode_receiver_report(data: Buffer, count: int, start: int, end: int) -> ReceiverReport:
    """The RR whose body (without header and padding) is `data[start:end]`."""
    if end - start < _SSRC.size:
        raise WireError("rtcp_rr", f"body of {end - start} bytes")
    reports = _decode_blocks(data, count, start + _SSRC.size, end)
    return ReceiverReport(_SSRC.unpack_from(data, start)[0], reports)


def round_trip(block: ReportBlock, received_short: int) -> float | None:
    """Round-trip time (s) by a report block that arrived at `received_short` (short NTP).

    None where the block answers no sender report, or claims to have been held
    for longer than the report was away.
    """
    if not block.last_sr:
        return None
    ticks = received_short - block.last_sr - block.delay_since_last_sr & 0xFFFFFFFF
    return ticks / 65536.0 if ticks < 0x80000000 else None


def _encode_blocks(reports: list[ReportBlock]) -> bytes:
    if len(reports) > MAX_REPORTS:
        raise LocalMisuse(f"{len(reports)} report blocks, the limit is {MAX_REPORTS}")
    return b"".join(map(_encode_block, reports))


def _encode_block(block: ReportBlock) -> bytes:
    lost = block.cumulative_lost
    if not -0x800000 <= lost <= 0x7FFFFF or not 0 <= block.fraction_lost <= 255:
        raise LocalMisuse(f"loss {block.fraction_lost}/256, {lost} in total")
    return pack_values(
        _BLOCK,
        block.ssrc,
        block.fraction_lost << 24 | lost & 0xFFFFFF,
        block.highest_seq,
        block.jitter,
        block.last_sr,
        block.delay_since_last_sr,
    )


def _decode_blocks(data: Buffer, count: int, start: int, end: int) -> list[ReportBlock]:
    if end - start < count * _BLOCK.size:
        raise WireError("rtcp_report_blocks", f"{count} blocks in {end - start} bytes")
    blocks = []
    for position in range(start, start + count * _BLOCK.size, _BLOCK.size):
        ssrc, loss, highest, jitter, last_sr, delay = _BLOCK.unpack_from(data, position)
        lost = (loss + 0x800000 & 0xFFFFFF) - 0x800000
        blocks.append(ReportBlock(ssrc, loss >> 24, lost, highest, jitter, last_sr, delay))
    return blocks
