"""How far the clock of a stream's sender is from ours, so that latency means something.

Theory of operation. Once a second, beside its report, the receiver says what its
wall clock shows (RFC 3611 section 4.4). The sender answers beside its next sender
report how long ago it heard that (section 4.5). The report's own timestamp is the time
of the answer, so four times of an exchange are known: t1 and t4 by our clock, t2
and t3 by the sender's. What they tell, and which exchange is believed, is in
`qoe.clocks` (specification of metrics, section 5.1). The answer's delay is cut to whole
1/65536 s: that makes the round trip, and so the bound, only longer.

Programs on one machine share their clock. A queue that stands in one direction would
show as an offset there, so it is not measured: CNAMEs with the same host part tell
that the clock is the same, unless an exchange proves otherwise.

Without an answer for longer than the memory the last exchange is kept, and its bound
grows by what clocks drift.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from streamd.errors import ProtocolViolation
from streamd.qoe.clocks import MEMORY, Exchange, OffsetEstimator, exchange
from streamd.wire.ntp import ntp_to_short, ntp_to_unix, short_to_seconds, unix_to_ntp
from streamd.wire.rtcp import (
    CNAME,
    ExtendedReport,
    RtcpPacket,
    SdesChunk,
    SenderReport,
    SourceDescription,
)
from streamd.wire.xr import LastReference

SAME_CLOCK_BOUND: Final = 0.0001
"""Two programs that compare wall and monotonic clock once each, at their start, agree to this
(s)."""
DRIFT: Final = 15e-6
"""Tolerance of a clock's frequency (RFC 5905 section 4, PHI)."""
MAX_ASKED: Final = 16
"""Questions whose answer is still expected."""


class Mapping(NamedTuple):
    """From the sender's clock to ours (s)."""

    offset: float
    """The sender's clock minus ours."""
    bound: float
    """The offset is wrong by no more than this."""


def host_part(cname: bytes) -> bytes:
    """The machine in a CNAME of the form user@host (RFC 3550 section 6.5.1); empty if none."""
    return cname.partition(b"@")[2]


class ClockOffset:
    """Of one sender at a time, told apart by SSRC."""

    def __init__(self, *, ssrc: int, cname: str, unix_offset: float) -> None:
        """`ssrc` and `cname` are ours. `unix_offset`: Unix time minus session time (s)."""
        self._ours = ssrc
        self._host = host_part(cname.encode())
        self._unix_offset = unix_offset
        self._sender: int | None = None
        self._same = False
        self._asked: dict[int, float] = {}
        """When questions were sent (Unix time), by the short form they are answered with."""
        self._estimator = OffsetEstimator()
        self._kept: tuple[float, Exchange] | None = None
        """The last exchange believed, and when."""

    def ask(self, now: float) -> ExtendedReport:
        """The question to send at `now` (s, session time)."""
        unix = now + self._unix_offset
        ntp = unix_to_ntp(unix)
        self._asked[ntp_to_short(ntp)] = unix
        if len(self._asked) > MAX_ASKED:
            del self._asked[next(iter(self._asked))]
        return ExtendedReport.of_reference_time(self._ours, ntp)

    def attend(self, ssrc: int) -> None:
        """This sender is meant; what was known of another one is forgotten."""
        if ssrc == self._sender:
            return
        self._sender, self._same, self._kept = ssrc, False, None
        self._estimator = OffsetEstimator()

    def read(self, packets: Iterable[RtcpPacket], *, source: int | None, now: float) -> None:
        """A compound that arrived at `now` (s) from `source`; None: from whoever reports.

        Raises ProtocolViolation on an answer that came before its question.
        """
        report: SenderReport | None = None
        for packet in packets:
            if isinstance(packet, SenderReport):
                if source is None or packet.ssrc == source:
                    report = packet
                    self.attend(packet.ssrc)
            elif report is None:
                continue
            elif isinstance(packet, SourceDescription):
                self._read_name(packet.chunks)
            elif isinstance(packet, ExtendedReport) and packet.ssrc == report.ssrc:
                answer = packet.answer_to(self._ours)
                if answer is not None:
                    self._on_answer(answer, ntp_to_unix(report.ntp), now)

    def mapping(self, now: float) -> Mapping | None:
        """What to believe at `now` (s); None: nothing is known."""
        found, stale = self._estimator.best(now), 0.0
        if found is None and self._kept is not None:
            at, found = self._kept
            stale = max(0.0, now - at - MEMORY)
        same = Mapping(0.0, SAME_CLOCK_BOUND)
        if found is None:
            return same if self._same else None
        bound = found.bound + stale * DRIFT
        if self._same and abs(found.offset) <= bound + SAME_CLOCK_BOUND:
            return same
        return Mapping(found.offset, bound)

    def _read_name(self, chunks: list[SdesChunk]) -> None:
        for chunk in chunks:
            if chunk.ssrc == self._sender:
                names = (text for kind, text in chunk.items if kind == CNAME)
                self._same = bool(self._host) and host_part(next(names, b"")) == self._host

    def _on_answer(self, answer: LastReference, t3: float, now: float) -> None:
        """`t3` is the sender's time of the answer (Unix seconds)."""
        t1 = self._asked.pop(answer.last_rr, None)
        if t1 is None:
            return
        t2 = t3 - short_to_seconds(answer.delay)
        found = exchange(t1, t2, t3, now + self._unix_offset)
        if found.rtt < 0:
            raise ProtocolViolation("clock_answer", f"after {found.rtt:.6f} s")
        self._estimator.add(found, now)
        best = self._estimator.best(now)
        if best is not None:
            self._kept = now, best
