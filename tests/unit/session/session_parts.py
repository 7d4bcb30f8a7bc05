"""Builders the session tests share."""

from streamd.datagram import Address, Datagram, Transmit
from streamd.media.model import EncodedFrame
from streamd.session.events import Event
from streamd.session.history import SentHistory
from streamd.session.packetize import Packetizer, StreamIdentity
from streamd.session.queue import MediaPacket
from streamd.session.receiver import ReceiverSession
from streamd.session.sender import SenderSession
from streamd.wire.ccfb import BlockList, CongestionFeedback, pack_block
from streamd.wire.ntp import unix_to_ntp
from streamd.wire.rtcp import Goodbye, RtcpPacket, SenderReport, encode_compound

SSRC = 0x1234ABCD
SENDER = ("192.0.2.1", 5000)
RECEIVER = ("192.0.2.2", 6000)
STRANGER = ("198.51.100.9", 7000)
OFFSET = 1_700_000_000.0
"""Unix time at the zero of the sessions' clock."""


def packet(seq: int, *, size: int = 1200, rtp_time: int = 0, marker: bool = False) -> MediaPacket:
    """A packet that has just been popped from the queue."""
    made = MediaPacket(SSRC, seq, rtp_time, marker, bytes(size), 0.0)
    made.queued = False
    return made


def send(history: SentHistory, seqs: range, *, start: float, gap: float) -> list[MediaPacket]:
    """Packets sent at `start`, `start + gap`, ..."""
    packets = [packet(seq) for seq in seqs]
    for index, item in enumerate(packets):
        item.frame_time = item.queued_at = start + index * gap
        history.on_sent(item, item.frame_time)
    return packets


def report(
    begin: int,
    words: list[int | None],
    *,
    at: float,
    ssrc: int = SSRC,
) -> CongestionFeedback:
    """A report stamped `at` (s of the receiver's clock).

    `words`: None = not received, else the arrival time offset in 1/1024 s, ECT(1).
    """
    blocks = [0 if word is None else pack_block(1, word) for word in words]
    lists = [BlockList(ssrc, begin & 0xFFFF, blocks)]
    return CongestionFeedback(1, lists, int(at * 65536) & 0xFFFFFFFF)


class Source:
    """A sender's end of the wire, without the sender: frames as datagrams."""

    def __init__(
        self,
        *,
        ssrc: int = SSRC,
        first_seq: int = 100,
        payload_type: int = 98,
        address: Address = SENDER,
        extension: bool = True,
        first_timestamp: int = 0,
    ) -> None:
        self.ssrc = ssrc
        self.address = address
        self._packetizer = Packetizer(
            StreamIdentity(
                ssrc,
                payload_type,
                first_seq=first_seq,
                first_timestamp=first_timestamp,
                video_extension=extension,
            )
        )
        self.frames: list[bytes] = []

    def frame(self, at: float, *, fragments: int = 2, key: bool = False) -> list[Datagram]:
        """The datagrams of the next frame, captured and received at `at`, ECT(1)."""
        size = 100 * fragments
        data = (len(self.frames).to_bytes(4, "big") * size)[:size]
        self.frames.append(data)
        packets = self._packetizer.packetize(EncodedFrame(data, key, at), payload=100, now=at)
        return [Datagram(item.data, self.address, 1, at) for item in packets]

    def report(self, at: float, *, unix_offset: float, bye: bool = False) -> bytes:
        """A sender report, with BYE if asked for."""
        parts: list[RtcpPacket] = [
            SenderReport(
                self.ssrc,
                unix_to_ntp(at + unix_offset),
                self._packetizer.rtp_time(at) & 0xFFFFFFFF,
                0,
                0,
            )
        ]
        if bye:
            parts.append(Goodbye([self.ssrc]))
        return encode_compound(parts)


def run_of(datagrams: list[Datagram]) -> Datagram:
    """Datagrams of one size (the last may be shorter) as one GRO run."""
    first = datagrams[0]
    data = b"".join(item.data for item in datagrams)
    return Datagram(data, first.address, first.ecn, first.received_at, len(first.data))


def drain_events(session: ReceiverSession | SenderSession) -> list[Event]:
    """Everything `poll_event` has."""
    events = []
    while (event := session.poll_event()) is not None:
        events.append(event)
    return events


def drain_transmits(session: ReceiverSession | SenderSession, now: float) -> list[Transmit]:
    """Everything `poll_transmit` has."""
    transmits = []
    while (transmit := session.poll_transmit(now=now)) is not None:
        transmits.append(transmit)
    return transmits
