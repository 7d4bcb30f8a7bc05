"""Wire formats: what goes in comes out, and any bytes give a value or a WireError."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamd.errors import WireError
from streamd.wire import bwtool, video_ext
from streamd.wire.abs_capture_time import (
    CaptureTime,
    decode_capture_time,
    encode_capture_time,
    pack_capture_element,
    parse_capture_time,
)
from streamd.wire.buffer import Buffer
from streamd.wire.ccfb import (
    BlockList,
    CongestionFeedback,
    arrival_ticks,
    decode_ccfb,
    encode_ccfb,
    offset_from_ticks,
    pack_block,
    unpack_block,
)
from streamd.wire.extension import decode_elements, encode_elements
from streamd.wire.ntp import ntp_to_unix, seconds_to_short, short_diff, unix_to_ntp
from streamd.wire.rtcp import (
    ExtendedReport,
    FullIntraRequest,
    GenericNack,
    Goodbye,
    Opaque,
    PictureLossIndication,
    ReceiverReport,
    ReportBlock,
    RtcpPacket,
    SdesChunk,
    SenderReport,
    SourceDescription,
    decode_compound,
    encode_compound,
)
from streamd.wire.rtp import RtpPacket, decode_rtp, encode_rtp, parse_rtp_fast
from streamd.wire.seq import SeqUnwrapper, TimestampUnwrapper, nearest, seq_diff
from streamd.wire.xr import (
    LastReference,
    LastReferences,
    OtherBlock,
    ReferenceTime,
    XrBlock,
    decode_extended_report,
)

U8 = st.integers(0, 0xFF)
U16 = st.integers(0, 0xFFFF)
U32 = st.integers(0, 0xFFFFFFFF)
U64 = st.integers(0, 0xFFFFFFFFFFFFFFFF)
WORDS = st.integers(0, 6).flatmap(lambda n: st.binary(min_size=4 * n, max_size=4 * n))

block_lists = st.builds(BlockList, U32, U16, st.lists(U16, min_size=1, max_size=40))
feedbacks = st.builds(CongestionFeedback, U32, st.lists(block_lists, max_size=4), U32)

report_blocks = st.builds(
    ReportBlock, U32, U8, st.integers(-(2**23), 2**23 - 1), U32, U32, U32, U32
)
reports = st.lists(report_blocks, max_size=3)
sdes_items = st.lists(st.tuples(st.integers(1, 255), st.binary(max_size=255)), max_size=3)
xr_blocks: st.SearchStrategy[XrBlock] = st.one_of(
    st.builds(ReferenceTime, U64),
    st.builds(LastReferences, st.lists(st.builds(LastReference, U32, U32, U32), max_size=4)),
    st.builds(OtherBlock, st.sampled_from([1, 2, 3, 6, 7, 255]), U8, WORDS),
)
nack_starts = st.lists(st.integers(1, 40), min_size=1, max_size=30)


def _ascending(start: int, steps: list[int]) -> list[int]:
    lost = [start]
    for step in steps:
        lost.append(lost[-1] + step & 0xFFFF)
    return lost


rtcp_packets: st.SearchStrategy[RtcpPacket] = st.one_of(
    st.builds(SenderReport, U32, U64, U32, U32, U32, reports),
    st.builds(ReceiverReport, U32, reports),
    st.builds(SourceDescription, st.lists(st.builds(SdesChunk, U32, sdes_items), max_size=3)),
    st.builds(Goodbye, st.lists(U32, max_size=31), st.binary(max_size=255)),
    st.builds(GenericNack, U32, U32, st.builds(_ascending, U16, nack_starts)),
    st.builds(PictureLossIndication, U32, U32),
    st.builds(FullIntraRequest, U32, st.lists(st.tuples(U32, U8), max_size=4)),
    feedbacks,
    st.builds(ExtendedReport, U32, st.lists(xr_blocks, max_size=4)),
    st.builds(Opaque, st.sampled_from([192, 204, 223]), st.integers(0, 31), WORDS),
)
rtp_packets = st.builds(
    RtpPacket,
    payload_type=st.integers(0, 127),
    seq=U16,
    timestamp=U32,
    ssrc=U32,
    payload=st.binary(max_size=40),
    marker=st.booleans(),
    csrcs=st.lists(U32, max_size=15),
    padding=U8,
) | st.builds(
    RtpPacket,
    payload_type=st.integers(0, 127),
    seq=U16,
    timestamp=U32,
    ssrc=U32,
    payload=st.binary(max_size=40),
    extension_profile=U16,
    extension=WORDS,
)
video_packets = st.builds(
    lambda second, seq, time, fields, payload: (
        video_ext.pack_video_header(second, seq, time, 100, *fields) + payload
    ),
    U8,
    U16,
    U32,
    st.tuples(U8, U16, U16, U16),
    st.binary(max_size=20),
)


def _parse_video(data: Buffer, start: int, end: int) -> object:
    fields = parse_rtp_fast(data, start, end)
    video = video_ext.parse_video_ext(data, fields[5], fields[6])
    offsets = tuple(offset - start for offset in fields[5:])
    return fields[:5], offsets, video, bytes(data[fields[6] : fields[7]])


def _parse_text(data: Buffer, start: int, end: int) -> object:
    return bwtool.text_line(data, start, end)


def _parse_capture(data: Buffer, start: int, end: int) -> object:
    fields = parse_rtp_fast(data, start, end)
    return parse_capture_time(data, fields[5], fields[6], 1)


def _parse_xr(data: Buffer, start: int, end: int) -> object:
    """Bodies are whole words (`split_compound`)."""
    return decode_extended_report(data, start, end - (end - start) % 4)


Decoder = Callable[[Buffer, int, int], object]
DECODERS: dict[str, Decoder] = {
    "rtp": decode_rtp,
    "video": _parse_video,
    "rtcp": lambda data, start, end: decode_compound(data, start=start, end=end),
    "rtcp-minus-one": lambda data, start, end: decode_compound(
        data, start=start, end=end, minus_one=True
    ),
    "ccfb": lambda data, start, end: decode_ccfb(data, start=start, end=end),
    "bwtool-report": bwtool.decode_report,
    "bwtool-text": _parse_text,
    "one-byte-elements": lambda data, start, end: decode_elements(0xBEDE, data, start, end),
    "capture-time": _parse_capture,
    "xr": _parse_xr,
    "two-byte-elements": lambda data, start, end: decode_elements(0x1003, data, start, end),
}
valid_packets = st.one_of(
    feedbacks.map(encode_ccfb),
    feedbacks.map(lambda feedback: encode_ccfb(feedback, minus_one=True)),
    st.lists(rtcp_packets, min_size=1, max_size=4).map(encode_compound),
    rtp_packets.map(encode_rtp),
    video_packets,
)


@st.composite
def mutated_packets(draw: st.DrawFn) -> bytes:
    """A valid packet with a few bytes changed, and perhaps cut or lengthened."""
    data = bytearray(draw(valid_packets))
    for _ in range(draw(st.integers(0, 4))):
        data[draw(st.integers(0, len(data) - 1))] = draw(U8)
    length = draw(st.integers(0, len(data) + 8))
    return bytes(data[:length].ljust(length, draw(st.binary(min_size=1, max_size=1))))


def _outcome(decode: Decoder, data: Buffer, start: int, end: int) -> tuple[str, object]:
    """What a decoder makes of a slice; any exception but WireError passes through and fails."""
    try:
        return "value", decode(data, start, end)
    except WireError as error:
        return "error", error.reason


@pytest.mark.parametrize("name", DECODERS)
@given(data=st.binary(max_size=80) | mutated_packets(), before=st.binary(max_size=9), after=WORDS)
def test_any_bytes_give_one_outcome_wherever_they_lie(
    name: str, data: bytes, before: bytes, after: bytes
) -> None:
    decode = DECODERS[name]
    alone = _outcome(decode, data, 0, len(data))
    start, end = len(before), len(before) + len(data)
    assert _outcome(decode, before + data + after, start, end) == alone
    assert _outcome(decode, memoryview(before + data + after), start, end) == alone


@given(feedback=feedbacks, minus_one=st.booleans())
def test_feedback_round_trip(feedback: CongestionFeedback, minus_one: bool) -> None:
    data = encode_ccfb(feedback, minus_one=minus_one)
    assert len(data) % 4 == 0
    assert decode_ccfb(data, minus_one=minus_one) == feedback
    assert encode_ccfb(decode_ccfb(data, minus_one=minus_one), minus_one=minus_one) == data


@given(packets=st.lists(rtcp_packets, min_size=1, max_size=5), minus_one=st.booleans())
def test_rtcp_round_trip(packets: list[RtcpPacket], minus_one: bool) -> None:
    data = encode_compound(packets, minus_one=minus_one)
    assert decode_compound(data, minus_one=minus_one) == packets


capture_times = st.builds(CaptureTime, U64, st.none() | st.integers(-(2**63), 2**63 - 1))


@given(capture=capture_times, element_id=st.integers(2, 14))
def test_capture_time_round_trip(capture: CaptureTime, element_id: int) -> None:
    assert decode_capture_time(encode_capture_time(capture)) == capture
    element = pack_capture_element(capture, element_id)
    header = video_ext.pack_video_header_with(element, 98, 1, 2, 3, 0, 5, 0, 1)
    fields = parse_rtp_fast(header, 0, len(header))
    assert parse_capture_time(header, fields[5], fields[6], element_id) == capture
    assert len(header) % 4 == 0


@given(packet=rtp_packets)
def test_rtp_round_trip(packet: RtpPacket) -> None:
    assert decode_rtp(encode_rtp(packet)) == packet


@given(
    seq=st.integers(0, 1 << 40),
    time=st.integers(0, 1 << 40),
    frame=st.integers(0, 1 << 40),
    fragment=st.integers(0, 0xFFFE),
    payload=st.binary(max_size=9),
)
def test_video_packet_round_trip_of_unwrapped_numbers(
    seq: int, time: int, frame: int, fragment: int, payload: bytes
) -> None:
    data = video_ext.pack_video_header(98, seq, time, 100, 0x80, frame, fragment, fragment + 1)
    data += payload
    fields = parse_rtp_fast(data, 0, len(data))
    assert fields == (False, 98, seq % 2**16, time % 2**32, 100, 12, 24, 24 + len(payload))
    assert video_ext.parse_video_ext(data, 12, 24) == (0x80, frame % 2**16, fragment, fragment + 1)


@given(
    elements=st.lists(st.tuples(st.integers(1, 14), st.binary(min_size=1, max_size=16)), max_size=5)
)
def test_extension_elements_round_trip(elements: list[tuple[int, bytes]]) -> None:
    for two_byte in (False, True):
        profile, data = encode_elements(elements, two_byte=two_byte)
        assert len(data) % 4 == 0
        assert decode_elements(profile, data, 0, len(data)) == elements


@given(ecn=st.integers(0, 3), report=U32, ago=st.integers(0, 0x7FFFFFFF))
def test_arrival_offsets_lose_less_than_a_tick_within_range(
    ecn: int, report: int, ago: int
) -> None:
    block = pack_block(ecn, offset_from_ticks(report, report - ago & 0xFFFFFFFF))
    assert unpack_block(block)[:2] == (True, ecn)
    arrival = arrival_ticks(report, block)
    assert arrival is not None
    seen = report - arrival & 0xFFFFFFFF
    assert seen == min(ago // 64, 0x1FFE) * 64


@given(
    start=st.integers(0, 0xFFFFFFFF),
    steps=st.lists(st.integers(-(2**15), 2**15 - 1), max_size=50),
)
def test_unwrapping_gives_back_any_walk_of_short_steps(start: int, steps: list[int]) -> None:
    for unwrapper, size in ((SeqUnwrapper(), 2**16), (TimestampUnwrapper(), 2**32)):
        value = start % size
        assert unwrapper.unwrap(value) == value
        for step in steps:
            value += step
            assert unwrapper.unwrap(value % size) == value


@given(reference=st.integers(0, 1 << 48), distance=st.integers(-(2**15), 2**15 - 1))
def test_nearest_and_difference_agree(reference: int, distance: int) -> None:
    value = reference + distance & 0xFFFF
    assert nearest(value, reference) == reference + distance
    assert seq_diff(value, reference & 0xFFFF) == distance


@given(unix=st.floats(-60_000_000, 4_200_000_000))
def test_ntp_round_trip_within_a_float_of_this_size(unix: float) -> None:
    ntp = unix_to_ntp(unix)
    assert 0 <= ntp < 2**64
    assert abs(ntp_to_unix(ntp) - unix) <= 2**-20


@given(start=st.floats(0, 1e6), elapsed=st.floats(0, 30_000))
def test_short_difference_is_the_elapsed_time_at_any_point(start: float, elapsed: float) -> None:
    difference = short_diff(seconds_to_short(start + elapsed), seconds_to_short(start))
    assert abs(difference - elapsed) <= 1.5 / 65536


def test_the_decoders_see_valid_packets_too() -> None:
    """The two-sided property above must not hold because everything is refused."""
    samples: dict[str, tuple[str, Any]] = {
        "rtp": ("80620000000000000000000a", RtpPacket(98, 0, 0, 10)),
        "rtcp": ("80c900010000000a", [ReceiverReport(10)]),
        "ccfb": ("8bcd00020000000a00010000", CongestionFeedback(10, [], 65536)),
        "bwtool-text": ("807f6869", "hi"),
    }
    for name, (text, value) in samples.items():
        data = bytes.fromhex(text)
        assert _outcome(DECODERS[name], data, 0, len(data)) == ("value", value)
