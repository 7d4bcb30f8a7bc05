"""RTCP compound packets (RFC 3550 section 6.1): bytes to a list of packets and back.

Any packet may come first and alone (reduced size, RFC 5506). A packet type or
feedback format unknown here is kept as `Opaque` and does not spoil its
neighbours; everything else that does not parse is a WireError for the whole
compound, because then no boundary in it can be trusted.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from streamd.wire.buffer import Buffer
from streamd.wire.ccfb import FMT_CCFB, CongestionFeedback, decode_ccfb, encode_ccfb
from streamd.wire.rtcp_feedback import (
    FMT_FIR,
    FMT_NACK,
    FMT_PLI,
    PSFB,
    RTPFB,
    FullIntraRequest,
    GenericNack,
    PictureLossIndication,
    decode_fir,
    decode_nack,
    decode_pli,
)
from streamd.wire.rtcp_header import RtcpSlice, pack_packet, split_compound
from streamd.wire.rtcp_reports import (
    RR,
    SR,
    ReceiverReport,
    ReportBlock,
    SenderReport,
    decode_receiver_report,
    decode_sender_report,
    round_trip,
)
from streamd.wire.rtcp_source import (
    BYE,
    CNAME,
    SDES,
    Goodbye,
    SdesChunk,
    SourceDescription,
    cname_description,
    decode_goodbye,
    decode_source_description,
)
from streamd.wire.xr import XR, ExtendedReport, decode_extended_report

__all__ = [
    "CNAME",
    "CongestionFeedback",
    "ExtendedReport",
    "FullIntraRequest",
    "GenericNack",
    "Goodbye",
    "Opaque",
    "PictureLossIndication",
    "ReceiverReport",
    "ReportBlock",
    "RtcpPacket",
    "RtcpSlice",
    "SdesChunk",
    "SenderReport",
    "SourceDescription",
    "cname_description",
    "decode_compound",
    "decode_slice",
    "encode_compound",
    "round_trip",
    "split_compound",
]


@dataclass(slots=True)
class Opaque:
    """A packet of a type or format streamd has no use for (APP, REMB, ...)."""

    packet_type: int
    count: int
    """Its report count or FMT field."""
    body: bytes

    def encode(self) -> bytes:
        """The RTCP packet; LocalMisuse if a value does not fit its field."""
        return pack_packet(self.packet_type, self.count, self.body)


RtcpPacket = (
    SenderReport
    | ReceiverReport
    | SourceDescription
    | Goodbye
    | GenericNack
    | PictureLossIndication
    | FullIntraRequest
    | CongestionFeedback
    | ExtendedReport
    | Opaque
)


def encode_compound(packets: Iterable[RtcpPacket], *, minus_one: bool = False) -> bytes:
    """The packets one after the other; `minus_one` as in `encode_ccfb`.

    LocalMisuse if a value does not fit its field.
    """
    return b"".join(
        encode_ccfb(packet, minus_one=minus_one)
        if isinstance(packet, CongestionFeedback)
        else packet.encode()
        for packet in packets
    )


def decode_compound(
    data: Buffer, *, start: int = 0, end: int | None = None, minus_one: bool = False
) -> list[RtcpPacket]:
    """Every packet of `data[start:end]` in order; WireError if one does not parse."""
    return [
        decode_slice(data, packet, minus_one=minus_one)
        for packet in split_compound(data, start, end)
    ]


def decode_slice(data: Buffer, packet: RtcpSlice, *, minus_one: bool = False) -> RtcpPacket:
    """One packet that `split_compound` found in `data`; WireError if it does not parse."""
    packet_type, count, start, body_end, _ = packet
    if packet_type in (RTPFB, PSFB):
        return _decode_feedback(data, packet, minus_one)
    body = start + 4
    if packet_type == SR:
        return decode_sender_report(data, count, body, body_end)
    if packet_type == RR:
        return decode_receiver_report(data, count, body, body_end)
    if packet_type == SDES:
        return decode_source_description(data, count, body, body_end)
    if packet_type == BYE:
        return decode_goodbye(data, count, body, body_end)
    if packet_type == XR:
        return decode_extended_report(data, body, body_end)
    return Opaque(packet_type, count, bytes(data[body:body_end]))


def _decode_feedback(data: Buffer, packet: RtcpSlice, minus_one: bool) -> RtcpPacket:
    packet_type, fmt, start, body_end, end = packet
    body = start + 4
    if packet_type == RTPFB:
        if fmt == FMT_CCFB:
            return decode_ccfb(data, minus_one=minus_one, start=start, end=end)
        if fmt == FMT_NACK:
            return decode_nack(data, body, body_end)
    elif fmt == FMT_PLI:
        return decode_pli(data, body, body_end)
    elif fmt == FMT_FIR:
        return decode_fir(data, body, body_end)
    return Opaque(packet_type, fmt, bytes(data[body:body_end]))
