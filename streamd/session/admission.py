"""Which packets may start a stream: two in sequence, from a source that may.

Source: RFC 3550 appendix A.1 (probation). A source is admitted when it is the
peer, or when there is none, or the peer has been silent or said BYE (`PeerLatch`).
While a stream is flowing, another one of the same source is refused, so that two
streams from one port do not push each other out in turn.
"""

from streamd.datagram import Address, Datagram
from streamd.errors import ProtocolViolation
from streamd.wire.rtp import RtpFields

TAKEOVER_GAP = 0.1
"""A stream that had a packet this recently is not replaced by another of its source (s)."""


class StreamAdmission:
    """Remembers one packet: the first of what may become a stream."""

    __slots__ = ("_awaited", "_candidate")

    def __init__(self) -> None:
        self._candidate: Datagram | None = None
        self._awaited: tuple[int, int, Address] | None = None

    def offer(
        self, fields: RtpFields, data: bytes, datagram: Datagram, last_arrival: float | None
    ) -> tuple[Datagram, Datagram] | None:
        """The two packets that start a stream, once the second is there.

        `last_arrival`: of the stream that flows at present; None: there is none.
        Raises ProtocolViolation on a packet that has no business here.
        """
        ssrc, seq, address = fields[4], fields[2], datagram.address
        if last_arrival is not None and datagram.received_at - last_arrival < TAKEOVER_GAP:
            raise ProtocolViolation("second_stream", f"SSRC {ssrc:#x} from {address}")
        before, awaited = self._candidate, self._awaited
        packet = Datagram(data, address, datagram.ecn, datagram.received_at)
        self._candidate = packet
        self._awaited = (ssrc, seq + 1 & 0xFFFF, address)
        if before is None:
            return None
        if awaited != (ssrc, seq, address):
            raise ProtocolViolation("stray_packet", f"SSRC {ssrc:#x}, number {seq}")
        self._candidate = self._awaited = None
        return before, packet
