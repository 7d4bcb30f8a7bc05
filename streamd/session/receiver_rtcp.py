"""The RTCP a receiver sends, and what it reads from the sender's."""

import math
from collections.abc import Sequence

from streamd.session.clock_offset import ClockOffset
from streamd.session.rtcp import INTERVAL
from streamd.session.stream import IncomingStream
from streamd.wire.ccfb import BlockList, CongestionFeedback, encode_ccfb
from streamd.wire.ntp import seconds_to_short
from streamd.wire.rtcp import (
    Goodbye,
    PictureLossIndication,
    ReceiverReport,
    RtcpPacket,
    SenderReport,
    cname_description,
    decode_compound,
    encode_compound,
)


class ReceiverRtcp:
    """Reports of one receiver; with the BW tool only the feedback exists."""

    def __init__(
        self,
        ssrc: int,
        *,
        cname: str,
        bwtool: bool,
        minus_one: bool,
        unix_offset: float,
        now: float,
    ) -> None:
        """`unix_offset`: Unix time minus session time (s)."""
        self._ssrc = ssrc
        self.clock = ClockOffset(ssrc=ssrc, cname=cname, unix_offset=unix_offset)
        self._cname = cname_description(ssrc, cname)
        self._bwtool = bwtool
        self._minus_one = minus_one
        self._next_at = now
        self._early: tuple[SenderReport, float] | None = None
        """A report on a stream that has not begun, and when it came."""

    def feedback(self, lists: list[BlockList], now: float) -> bytes:
        """A bare RFC 8888 packet (reduced size, RFC 5506), stamped with our clock."""
        timestamp = seconds_to_short(now)
        feedback = CongestionFeedback(self._ssrc, lists, timestamp)
        return encode_ccfb(feedback, minus_one=self._minus_one)

    def poll(self, stream: IncomingStream | None, now: float) -> bytes | None:
        """RR + SDES when due, and what the sender needs to compare our clocks."""
        if self._bwtool or now < self._next_at:
            return None
        self._next_at = now + INTERVAL
        report = self._receiver_report(stream, now)
        return encode_compound([report, self._cname, self.clock.ask(now)])

    def begin(self, stream: IncomingStream) -> None:
        """A stream begins: a report is due at once."""
        self.clock.attend(stream.ssrc)
        self._next_at = -math.inf
        if self._early is not None and self._early[0].ssrc == stream.ssrc:
            stream.on_report(*self._early)
        self._early = None

    def keyframe_request(self, media_ssrc: int) -> bytes:
        """PLI (RFC 4585 section 6.3.1), reduced size."""
        return encode_compound([PictureLossIndication(self._ssrc, media_ssrc)])

    def bye(self, stream: IncomingStream | None, now: float) -> bytes | None:
        """The last packet of the session; None with the BW tool."""
        if self._bwtool:
            return None
        report = self._receiver_report(stream, now)
        return encode_compound([report, self._cname, Goodbye([self._ssrc])])

    def parse(self, data: bytes) -> list[RtcpPacket]:
        """Read a compound packet of the sender. Raises WireError."""
        return decode_compound(data)

    def read(
        self,
        packets: Sequence[RtcpPacket],
        stream: IncomingStream | None,
        *,
        flowing: bool,
        now: float,
    ) -> bool:
        """Take what the sender tells, which arrived at `now` (s); True: it said BYE.

        Raises ProtocolViolation on what cannot be.
        """
        ended = False
        for packet in packets:
            if isinstance(packet, SenderReport):
                if stream is not None and packet.ssrc == stream.ssrc:
                    stream.on_report(packet, now)
                else:
                    # A sender reports before its first packet, so that no frame is without
                    # capture time.
                    self._early = packet, now
            elif isinstance(packet, Goodbye):
                ended |= stream is not None and stream.ssrc in packet.ssrcs
        source = stream.ssrc if stream is not None and flowing else None
        self.clock.read(packets, source=source, now=now)
        return ended

    def _receiver_report(self, stream: IncomingStream | None, now: float) -> ReceiverReport:
        blocks = [] if stream is None else [stream.report_block(now)]
        return ReceiverReport(self._ssrc, blocks)
