"""One incoming stream: numbers, duplicates, jitter, loss reports, capture times."""

import pytest
from session_parts import SSRC

from streamd.errors import WireError
from streamd.session.frames import Frame
from streamd.session.stats import ReceiverStats
from streamd.session.stream import IncomingStream
from streamd.wire.ntp import ntp_to_short, unix_to_ntp
from streamd.wire.rtcp import SenderReport
from streamd.wire.rtp import parse_rtp_fast
from streamd.wire.video_ext import pack_video_header


class Incoming:
    """Packets with 10 payload bytes and the video extension, fed by sequence number."""

    def __init__(self, first_seq: int = 0) -> None:
        self.stats = ReceiverStats()
        self.stream = IncomingStream(SSRC, first_seq, self.stats)

    def feed(
        self, seq: int, *, at: float = 0.0, timestamp: int = 0, frame_id: int | None = None
    ) -> Frame | None:
        header = pack_video_header(
            98, seq, timestamp, SSRC, 0x80, seq if frame_id is None else frame_id, 0, 1
        )
        data = b"junk" + header + bytes(10)
        return self.stream.on_packet(parse_rtp_fast(data, 4, len(data)), data, at)


FIRST = [0, 1, 4_095, 65_530, 65_535]


@pytest.mark.parametrize("first", FIRST)
def test_duplicates_and_reordered_packets_are_told(first: int) -> None:
    incoming = Incoming(first)
    for seq in (first, first + 2, first + 1, first + 2, first, first + 3):
        incoming.feed(seq & 0xFFFF)
    assert incoming.stats.duplicates == 2
    assert incoming.stats.reordered == 1
    assert incoming.stats.payload_bytes == 40


@pytest.mark.parametrize("first", FIRST)
def test_a_packet_before_the_first_is_late_not_a_duplicate(first: int) -> None:
    incoming = Incoming(first)
    incoming.feed(first)
    incoming.feed(first - 1 & 0xFFFF)
    assert (incoming.stats.duplicates, incoming.stats.reordered) == (0, 1)
    incoming.feed(first - 1 & 0xFFFF)
    assert incoming.stats.duplicates == 1


@pytest.mark.parametrize("first", FIRST)
def test_what_belongs_to_the_numbering(first: int) -> None:
    incoming = Incoming(first)
    incoming.feed(first, timestamp=50)

    def belongs(step: int, timestamp: int = 50) -> bool:
        return incoming.stream.belongs(first + step & 0xFFFF, timestamp & 0xFFFFFFFF)

    assert belongs(2_999)
    # further ahead only with the next one behind it
    assert not belongs(3_000)
    assert belongs(3_001)
    assert not belongs(28_670)
    assert belongs(28_671)
    assert not belongs(28_672)
    assert belongs(-4_095)
    assert not belongs(-4_096)
    assert belongs(0)
    # a repair may be old, but not five seconds, and a packet ahead may be of any time
    assert belongs(-10, 50 - 449_999)
    assert not belongs(-10, 50 - 450_000)
    assert not belongs(0, 50 - 450_000)
    assert belongs(-10, 50 + 900_000)
    assert belongs(1, 50 - 900_000)


def test_the_oldest_number_that_belongs_does_not_hide_the_newest() -> None:
    incoming = Incoming(5_000)
    incoming.feed(5_000)
    incoming.feed(5_000 - 4_095)
    incoming.feed(5_000)
    assert incoming.stats.duplicates == 1


def test_jitter_as_in_rfc_3550() -> None:
    incoming = Incoming()
    seen = []
    # sent at 0, 20, 40, 60 ms; received at 100, 121, 140, 166 ms
    for seq, at in enumerate((0.100, 0.121, 0.140, 0.166)):
        incoming.feed(seq, at=at, timestamp=seq * 1800)
        seen.append(incoming.stream.jitter * 1000)
    assert seen == pytest.approx([0.0, 0.0625, 0.12109375, 0.488525390625])


def test_a_timestamp_wrap_is_no_jitter() -> None:
    incoming = Incoming()
    incoming.feed(0, at=1.0, timestamp=0xFFFFFFFF)
    incoming.feed(1, at=1.0, timestamp=0)
    incoming.feed(2, at=1.02, timestamp=1800)
    assert incoming.stream.jitter == pytest.approx(0.0, abs=1e-4)


def test_the_reception_report_counts_loss_since_the_last_and_in_total() -> None:
    incoming = Incoming(65_534)
    for seq in (65_534, 65_535, 2, 3):
        incoming.feed(seq)
    block = incoming.stream.report_block(1.0)
    # 6 expected, 4 received: 2/6 of 256
    assert (block.fraction_lost, block.cumulative_lost) == (85, 2)
    assert block.highest_seq == 65_539
    assert (block.last_sr, block.delay_since_last_sr) == (0, 0)
    for seq in (0, 1, 4, 5):
        incoming.feed(seq)
    block = incoming.stream.report_block(2.0)
    # repaired: more than expected arrived, which is no negative loss
    assert (block.fraction_lost, block.cumulative_lost) == (0, 0)
    block = incoming.stream.report_block(3.0)
    assert (block.fraction_lost, block.cumulative_lost) == (0, 0)
    for seq in (6, 8):
        incoming.feed(seq)
    block = incoming.stream.report_block(4.0)
    assert (block.fraction_lost, block.cumulative_lost) == (85, 1)


def test_the_reception_report_refers_to_the_last_sender_report() -> None:
    incoming = Incoming()
    incoming.feed(0)
    ntp = unix_to_ntp(1_700_000_000.5)
    incoming.stream.on_report(SenderReport(SSRC, ntp, 0, 0, 0), 10.0)
    block = incoming.stream.report_block(10.5)
    assert block.last_sr == ntp_to_short(ntp)
    assert block.delay_since_last_sr == 32_768


def test_capture_times_come_from_sender_reports_across_the_wrap() -> None:
    incoming = Incoming()
    assert incoming.stream.captured_unix(0) is None
    report = SenderReport(SSRC, unix_to_ntp(1_700_000_000.0), 0xFFFFFFFF - 89_999, 0, 0)
    incoming.stream.on_report(report, 1.0)
    assert incoming.stream.captured_unix(0) == pytest.approx(1_700_000_001.0, abs=1e-4)
    assert incoming.stream.captured_unix(0xFFFFFFFF - 179_999) == pytest.approx(
        1_699_999_999.0, abs=1e-4
    )


def test_a_bad_extension_is_an_error_and_the_packet_received_all_the_same() -> None:
    incoming = Incoming()
    header = pack_video_header(98, 0, 0, SSRC, 0x80, 0, 5, 5)
    with pytest.raises(WireError) as caught:
        incoming.stream.on_packet(parse_rtp_fast(header, 0, 24), header, 0.0)
    assert caught.value.reason == "video_fragment"
    assert incoming.stream.report_block(1.0).cumulative_lost == 0


def plain(seq: int, *, marker: bool) -> bytes:
    return bytes((0x80, 98 | (0x80 if marker else 0), seq >> 8, seq & 0xFF)) + bytes(108)


def test_without_extension_a_frame_ends_with_its_marker() -> None:
    stats = ReceiverStats()
    stream = IncomingStream(100, 0, stats)
    completed = []
    for seq in (0, 1, 2, 3, 5, 6, 7, 8):
        data = plain(seq, marker=seq in (1, 3, 6, 8))
        frame = stream.on_packet(parse_rtp_fast(data, 0, len(data)), data, float(seq))
        if frame is not None:
            completed.append(frame.completed_at)
    # the frame 4, 5, 6 misses number 4
    assert completed == [1.0, 3.0, 8.0]
    assert (stream.assembler.completed, stream.assembler.lost) == (3, 1)
