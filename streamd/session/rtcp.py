"""The RTCP either session sends on its own, and what it reads from the peer's.

Sender: SR + SDES at the start and once a second (RTP time against wall clock,
so that the receiver can tell capture times), BYE at the end. Receiver: RR +
SDES once a second, which also keep address bindings alive, PLI when it cannot
go on without a key frame, BYE at the end. Between them an XR with the receiver's
time, answered beside the next SR, compares their clocks (`clock_offset`). With
the BW tool none of this exists.
"""

import math
from dataclasses import dataclass, field

from streamd.errors import WireError
from streamd.session.packetize import Packetizer
from streamd.session.stats import SenderStats
from streamd.wire.ccfb import CongestionFeedback
from streamd.wire.ntp import ntp_to_short, seconds_to_short, unix_to_ntp
from streamd.wire.rtcp import (
    ExtendedReport,
    FullIntraRequest,
    Goodbye,
    PictureLossIndication,
    RtcpPacket,
    SenderReport,
    cname_description,
    decode_compound,
    encode_compound,
)
from streamd.wire.rtp import is_rtcp
from streamd.wire.xr import LastReference

INTERVAL = 1.0
"""Between sender or receiver reports (s): RFC 3550 section 6.2 for two members, reduced minimum."""


@dataclass(slots=True)
class PeerFeedback:
    """What one RTCP datagram from the receiver says."""

    feedback: list[CongestionFeedback] = field(default_factory=list)
    keyframe_requested: bool = False
    bye: bool = False
    question: tuple[int, int] | None = None
    """Whose clock shows what: SSRC and 64-bit NTP timestamp."""


class SenderRtcp:
    """Reports about one SSRC."""

    def __init__(
        self,
        ssrc: int,
        packetizer: Packetizer,
        *,
        cname: str,
        bwtool: bool,
        minus_one: bool,
        unix_offset: float,
        now: float,
    ) -> None:
        self._ssrc = ssrc
        self._packetizer = packetizer
        self._cname = cname_description(ssrc, cname)
        self._bwtool = bwtool
        self._minus_one = minus_one
        self._unix_offset = unix_offset
        self._next_at = now
        self._asked: tuple[int, int, float] | None = None
        """The question to answer with the next report: SSRC, NTP timestamp, when it came."""
        self._asking: int | None = None
        """Whom a report was sent to at once last."""
        self._soon_at = -math.inf
        """Before this nobody is answered at once again, whatever it calls itself."""

    def poll(self, stats: SenderStats, now: float) -> bytes | None:
        """The periodic report when it is due; none before there is anything to report on."""
        if now < self._next_at:
            return None
        self._next_at = now + INTERVAL
        if self._bwtool or stats.started_at is None:
            return None
        return encode_compound([self._report(stats, now), self._cname, *self._answer(now)])

    def on_question(self, question: tuple[int, int], now: float) -> None:
        """The receiver told its time, which came at `now`; its first one is answered at once."""
        self._asked = (*question, now)
        if question[0] != self._asking and now >= self._soon_at:
            self._asking, self._soon_at = question[0], now + INTERVAL
            self.poll_soon()

    def poll_soon(self) -> None:
        """The stream begins, or somebody new listens: a report is due at once."""
        self._next_at = -math.inf

    def bye(self, stats: SenderStats, now: float) -> bytes | None:
        """The last packet of the session."""
        if self._bwtool:
            return None
        return encode_compound([self._report(stats, now), self._cname, Goodbye([self._ssrc])])

    def parse(self, data: bytes) -> PeerFeedback:
        """Read a datagram from the receiver. Raises WireError."""
        if len(data) < 8 or not is_rtcp(data[1]):
            raise WireError("not_rtcp", f"{len(data)} bytes")
        contents = PeerFeedback()
        for packet in decode_compound(data, minus_one=self._minus_one):
            self._read(packet, contents)
        return contents

    def _read(self, packet: RtcpPacket, contents: PeerFeedback) -> None:
        if isinstance(packet, CongestionFeedback):
            contents.feedback.append(packet)
        elif isinstance(packet, PictureLossIndication):
            contents.keyframe_requested |= packet.media_ssrc == self._ssrc
        elif isinstance(packet, FullIntraRequest):
            contents.keyframe_requested |= any(ssrc == self._ssrc for ssrc, _ in packet.requests)
        elif isinstance(packet, Goodbye):
            contents.bye = True
        elif isinstance(packet, ExtendedReport):
            ntp = packet.reference_time()
            contents.question = contents.question if ntp is None else (packet.ssrc, ntp)

    def _answer(self, now: float) -> list[RtcpPacket]:
        """To the question heard since the last report, if there was one."""
        if self._asked is None:
            return []
        ssrc, ntp, at = self._asked
        self._asked = None
        delay = seconds_to_short(max(0.0, now - at))
        return [ExtendedReport.of_answer(self._ssrc, LastReference(ssrc, ntp_to_short(ntp), delay))]

    def _report(self, stats: SenderStats, now: float) -> SenderReport:
        """Counts are of first and repeated transmissions, as packets on the wire are."""
        headers = self._packetizer.header_size * stats.packets
        return SenderReport(
            self._ssrc,
            unix_to_ntp(now + self._unix_offset),
            self._packetizer.rtp_time(now) & 0xFFFFFFFF,
            stats.packets & 0xFFFFFFFF,
            (stats.bytes - headers) & 0xFFFFFFFF,
        )
