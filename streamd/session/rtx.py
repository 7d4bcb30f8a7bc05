"""Retransmissions as a stream of their own (RFC 4588), at the sender.

Congestion control, ledger and repair go on as with plain copies: they know the packet
by its original number. Here the copies get their own SSRC and numbering, and feedback
about those is led back to the packets they carry.
"""

from dataclasses import dataclass

from streamd.session.queue import MediaPacket
from streamd.wire.ccfb import BlockList
from streamd.wire.rtx import wrap

PAYLOAD_TYPE_STEP = 10
"""Payload type of the copies over that of the originals: 108 for VP9's 98."""
MAX_COPIES = 2048
"""Copies remembered until they are reported; older ones are forgotten."""


@dataclass(frozen=True, slots=True)
class RtxIdentity:
    """What the RTP header of the copies starts from."""

    ssrc: int
    payload_type: int
    first_seq: int = 0


class RtxStream:
    """The copies of one media stream."""

    def __init__(self, identity: RtxIdentity) -> None:
        self._identity = identity
        self._next = identity.first_seq
        self._sent: dict[int, MediaPacket] = {}

    @property
    def ssrc(self) -> int:
        return self._identity.ssrc

    def wrap(self, packet: MediaPacket) -> bytes:
        """The bytes of the next copy."""
        identity, seq = self._identity, self._next
        self._next = seq + 1
        self._sent[seq] = packet
        if len(self._sent) > MAX_COPIES:
            del self._sent[next(iter(self._sent))]
        return wrap(packet.data, ssrc=identity.ssrc, payload_type=identity.payload_type, seq=seq)

    def arrived(self, blocks: BlockList) -> list[tuple[MediaPacket, int]]:
        """Packets whose copies a list newly names as received, each with its block."""
        sent, last = self._sent, self._next - 1
        begin = last + ((blocks.begin_seq - last + 0x8000) & 0xFFFF) - 0x8000
        news = []
        for seq, word in enumerate(blocks.blocks, begin):
            if word >= 0x8000:
                packet = sent.pop(seq, None)
                if packet is not None:
                    news.append((packet, word))
        return news
