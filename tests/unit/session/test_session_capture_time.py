"""Capture times on frames: when they are told, what they cost, how they are read."""

import pytest
import session_receiver_rig
import session_sender_rig
from session_parts import OFFSET, SENDER, SSRC, Source

from streamd.datagram import Datagram
from streamd.errors import WireError
from streamd.media.model import EncodedFrame
from streamd.session.packetize import Packetizer, StreamIdentity
from streamd.session.queue import MediaPacket
from streamd.session.runs import match_run
from streamd.session.stats import ReceiverStats
from streamd.session.stream import IncomingStream
from streamd.wire.abs_capture_time import CaptureTime, pack_capture_element, parse_capture_time
from streamd.wire.ntp import ntp_to_short, unix_to_ntp
from streamd.wire.rtcp import (
    ExtendedReport,
    ReceiverReport,
    SenderReport,
    cname_description,
    encode_compound,
)
from streamd.wire.rtp import parse_rtp_fast
from streamd.wire.video_ext import pack_video_header_with
from streamd.wire.xr import LastReference

PAYLOAD = 1200
TELLING = StreamIdentity(SSRC, 98, capture_times=True)


def cut(
    packetizer: Packetizer, at: float, *, size: int = 3000, key: bool = False
) -> list[MediaPacket]:
    return packetizer.packetize(EncodedFrame(bytes(size), key, at), payload=PAYLOAD, now=at)


def told(packet: MediaPacket) -> CaptureTime | None:
    fields = parse_rtp_fast(packet.data, 0, packet.size)
    return parse_capture_time(packet.data, fields[5], fields[6])


def test_key_frames_tell_it_and_a_frame_every_half_second() -> None:
    packetizer = Packetizer(TELLING, unix_offset=OFFSET)
    keys = {0, 20, 21}
    telling = []
    for number in range(100):
        at = 10.0 + number / 32
        first, *others = cut(packetizer, at, key=number in keys)
        assert all(told(packet) is None for packet in others)
        capture = told(first)
        if capture is not None:
            assert capture.sender_unix() == OFFSET + at
            assert capture.clock_offset is None
            telling.append(number)
    assert telling == [0, 16, 20, 21, 37, 53, 69, 85]


def test_packets_without_it_are_as_ever_and_stay_runs() -> None:
    packetizer, plain = Packetizer(TELLING, unix_offset=OFFSET), Packetizer(StreamIdentity(SSRC))
    first = cut(packetizer, 0.0)
    cut(plain, 0.0)
    silent, same = cut(packetizer, 0.25), cut(plain, 0.25)
    assert [packet.data for packet in silent] == [packet.data for packet in same]
    assert match_run(b"".join(packet.data for packet in silent), silent[0].size) is not None
    # The one that tells is no run with the others; these are one without it.
    assert match_run(b"".join(packet.data for packet in first[:2]), first[0].size) is None
    assert match_run(b"".join(packet.data for packet in first[1:]), first[1].size) is not None


def test_no_packet_is_larger_than_without() -> None:
    packets = cut(Packetizer(TELLING, unix_offset=OFFSET), 0.0, size=3588)
    assert [packet.size for packet in packets] == [1224, 1212, 1212, 48]
    assert [packet.size for packet in cut(Packetizer(TELLING), 0.0, size=1188)] == [1224]


def test_it_goes_with_a_reference_in_one_packet() -> None:
    packetizer = Packetizer(TELLING, unix_offset=OFFSET)
    frame = EncodedFrame(bytes(2000), False, 2.0)
    first, second = packetizer.packetize(frame, payload=PAYLOAD, now=2.0, refers=7)
    assert told(first) == CaptureTime(unix_to_ntp(OFFSET + 2.0))
    assert (first.size, second.size) == (24 + 12 + 1188, 24 + 4 + 812)


@pytest.mark.parametrize(
    "identity",
    [StreamIdentity(SSRC), StreamIdentity(SSRC, video_extension=False, capture_times=True)],
)
def test_streams_that_do_not_tell(identity: StreamIdentity) -> None:
    packetizer = Packetizer(identity, unix_offset=OFFSET)
    for packet in cut(packetizer, 0.0, key=True):
        assert told(packet) is None


def feed(stream: IncomingStream, elements: bytes, *, seq: int = 0, timestamp: int = 0) -> None:
    data = pack_video_header_with(elements, 98, seq, timestamp, SSRC, 0, 0, seq, 9) + b"payload"
    stream.on_packet(parse_rtp_fast(data, 0, len(data)), data, 1.0)


def test_other_frames_are_reckoned_from_it_before_any_report() -> None:
    stream = IncomingStream(SSRC, 0, ReceiverStats())
    element = pack_capture_element(CaptureTime(unix_to_ntp(OFFSET + 5.0)))
    feed(stream, element, timestamp=0xFFFFFFFF - 89_999)
    assert stream.captured_unix(0) == OFFSET + 6.0
    assert stream.captured_unix(0xFFFFFFFF - 134_999) == OFFSET + 4.5
    # ... but not from far away.
    assert stream.captured_unix(90_000 * 10) is None


def test_it_counts_more_than_the_report_while_it_is_fresh() -> None:
    stream = IncomingStream(SSRC, 0, ReceiverStats())
    stream.on_report(SenderReport(SSRC, unix_to_ntp(OFFSET + 1.0), 0, 0, 0), 1.0)
    feed(stream, pack_capture_element(CaptureTime(unix_to_ntp(OFFSET + 1.5), 1 << 30)))
    assert stream.captured_unix(9_000) == pytest.approx(OFFSET + 1.35, abs=1e-6)
    assert stream.captured_unix(990_000) == pytest.approx(OFFSET + 12.0, abs=1e-6)


def test_a_bad_one_is_counted_and_the_stream_goes_on() -> None:
    stream = IncomingStream(SSRC, 0, ReceiverStats())
    with pytest.raises(WireError, match="4 bytes"):
        feed(stream, bytes((0x43, 1, 2, 3, 4)))
    assert stream.captured_unix(0) is None
    feed(stream, pack_capture_element(CaptureTime(unix_to_ntp(OFFSET))), seq=1)
    assert stream.captured_unix(0) == OFFSET


# --- the exchange ------------------------------------------------------------------------------


def test_the_receiver_asks_when_a_stream_begins_and_with_every_report() -> None:
    rig = session_receiver_rig.Rig(peer=SENDER)
    rig.until(10.2)
    session_receiver_rig.started(rig, Source(), at=10.3)
    rig.until(12.6)
    reports = [packet for packet in rig.rtcp() if isinstance(packet, ReceiverReport)]
    questions = [packet for packet in rig.rtcp() if isinstance(packet, ExtendedReport)]
    assert len(questions) == len(reports) == 4
    first = questions[0].reference_time()
    assert first is not None
    assert first >= unix_to_ntp(OFFSET + 10.0)
    assert {question.ssrc for question in questions} == {77}


def test_with_the_bw_tool_nobody_asks() -> None:
    rig = session_receiver_rig.Rig(peer=SENDER, bwtool=True)
    rig.until(12.0)
    assert rig.sent
    assert not [data for _, _, data in rig.sent if len(data) > 1 and data[1] != 205]


def test_the_first_question_is_answered_at_once_the_others_beside_reports() -> None:
    rig = session_sender_rig.Rig()
    rig.frame()
    rig.until(10.3)
    before = len(rig.control)
    ask(rig, 0x11111111_80000000, at=10.25)
    (at, (report, description, answer)) = rig.control[-1]
    assert (len(rig.control), at) == (before + 1, 10.3)
    assert isinstance(report, SenderReport)
    assert report.ntp == unix_to_ntp(OFFSET + 10.3)
    assert description == cname_description(SSRC, "streamd")
    assert answer == ExtendedReport.of_answer(
        SSRC, LastReference(77, 0x11118000, int((10.3 - 10.25) * 65536))
    )
    ask(rig, 0x11111112_80000000, at=10.3)
    assert len(rig.control) == before + 1
    rig.until(11.45)
    assert len(rig.control) == before + 2
    assert isinstance(rig.control[-1][1][2], ExtendedReport)
    rig.until(12.45)
    # Answered once: a lost answer is asked for again.
    assert [type(packet) for packet in rig.control[-1][1][2:]] == []


def test_nobody_gets_many_reports_at_once_by_many_names() -> None:
    rig = session_sender_rig.Rig()
    rig.frame()
    rig.until(10.3)
    before = len(rig.control)
    for ssrc in range(50):
        rig.give(ExtendedReport.of_reference_time(ssrc, 1 << 40).encode())
    assert len(rig.control) == before + 1


def ask(rig: session_sender_rig.Rig, ntp: int, *, at: float) -> None:
    data = encode_compound([ReceiverReport(77), ExtendedReport.of_reference_time(77, ntp)])
    rig.give(data, arrived_at=at)


def test_two_sessions_measure_what_their_clocks_are_apart() -> None:
    """Answers come back through the receiver: times of arrival count, not of handling."""
    rig = session_receiver_rig.Rig(peer=SENDER)
    source = Source()
    session_receiver_rig.started(rig, source)
    rig.until(10.1)
    (question,) = [packet for packet in rig.rtcp() if isinstance(packet, ExtendedReport)][-1:]
    ntp = question.reference_time()
    assert ntp is not None
    asked_at = rig.sent[-1][0]
    # The sender, 2 s ahead, hears it after 10 ms, answers 20 ms later, and 10 ms go by.
    report = SenderReport(SSRC, unix_to_ntp(OFFSET + asked_at + 0.03 + 2.0), 0, 0, 0)
    answer = ExtendedReport.of_answer(SSRC, LastReference(77, ntp_to_short(ntp), 1310))
    data = encode_compound([report, answer])
    rig.session.handle_datagrams([Datagram(data, SENDER, 0, asked_at + 0.04)], now=11.0)
    events = rig.give(*source.frame(11.5))
    rig.decode(*session_receiver_rig.frames_in(events))
    assert rig.session.stats.clock_offset == pytest.approx(2.0, abs=20e-6)
    assert rig.session.stats.clock_bound == pytest.approx(0.01006, abs=20e-6)
