"""Builders the session tests share."""

from streamd.session.history import SentHistory
from streamd.session.queue import MediaPacket
from streamd.wire.ccfb import BlockList, CongestionFeedback, pack_block

SSRC = 0x1234ABCD


def packet(seq: int, *, size: int = 1200, rtp_time: int = 0, marker: bool = False) -> MediaPacket:
    """A packet that has just been popped from the queue."""
    made = MediaPacket(SSRC, seq, rtp_time, marker, bytes(size), 0.0)
    made.queued = False
    return made


def send(history: SentHistory, seqs: range, *, start: float, gap: float) -> list[MediaPacket]:
    """Packets sent at `start`, `start + gap`, ..."""
    packets = [packet(seq) for seq in seqs]
    for index, item in enumerate(packets):
        history.on_sent(item, start + index * gap)
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
