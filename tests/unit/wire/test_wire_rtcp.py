"""RTCP packets: literal bytes of every kind, compounds, and every way they can be wrong."""

import pytest

from streamd.errors import LocalMisuse, WireError
from streamd.wire.ccfb import BlockList, CongestionFeedback
from streamd.wire.rtcp import (
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
    cname_description,
    decode_compound,
    encode_compound,
    round_trip,
    split_compound,
)

BLOCK = ReportBlock(0x64, 64, -2, 0x1FFFF, 5, 0x7E818000, 0x8000)
BLOCK_HEX = "0000006440fffffe0001ffff000000057e81800000008000"

PACKETS: list[tuple[RtcpPacket, str]] = [
    (
        SenderReport(0xA, 0x83AA7E8180000000, 90000, 7, 8400, [BLOCK]),
        "81c8000c0000000a83aa7e818000000000015f9000000007000020d0" + BLOCK_HEX,
    ),
    (SenderReport(1, 2, 3, 4, 5), "80c80006000000010000000000000002000000030000000400000005"),
    (ReceiverReport(0xA, [BLOCK]), "81c900070000000a" + BLOCK_HEX),
    (ReceiverReport(0xA), "80c900010000000a"),
    (cname_description(0x64, "a@b"), "81ca0003000000640103614062000000"),
    (
        SourceDescription(
            [SdesChunk(1, [(1, b"ab")]), SdesChunk(2), SdesChunk(3, [(2, b"x" * 9)])]
        ),
        "83ca00090000000101026162000000000000000200000000000000030209" + "78" * 9 + "00",
    ),
    (SourceDescription(), "80ca0000"),
    (Goodbye([0x64]), "81cb000100000064"),
    (Goodbye([1, 2], b"end"), "82cb0003000000010000000203656e64"),
    (Goodbye([], b"x"), "80cb000101780000"),
    (PictureLossIndication(0xA, 0x64), "81ce00020000000a00000064"),
    (FullIntraRequest(0xA, [(0x64, 255)]), "84ce00040000000a0000000000000064ff000000"),
    (GenericNack(0xA, 0x64, [65535, 0, 15]), "81cd00030000000a00000064ffff8001"),
    (GenericNack(0xA, 0x64, [1, 18]), "81cd00040000000a000000640001000000120000"),
    (
        CongestionFeedback(0xA, [BlockList(0x64, 7, [0xA001])], 9),
        "8bcd00050000000a0000006400070001a001000000000009",
    ),
    (Opaque(204, 3, b"namedata"), "83cc00026e616d6564617461"),
    (Opaque(206, 15, b"REMB"), "8fce000152454d42"),
    (Opaque(205, 15, b"twcc"), "8fcd000174776363"),
]


@pytest.mark.parametrize(("packet", "expected"), PACKETS)
def test_packet_and_its_literal_bytes(packet: RtcpPacket, expected: str) -> None:
    assert encode_compound([packet]).hex() == expected
    assert decode_compound(bytes.fromhex(expected)) == [packet]


def test_a_compound_of_all_of_them_within_a_larger_buffer() -> None:
    data = bytes.fromhex("ffff" + "".join(text for _, text in PACKETS) + "ff")
    packets = [packet for packet, _ in PACKETS]
    assert decode_compound(data, start=2, end=len(data) - 1) == packets


def test_feedback_in_a_compound_in_either_dialect() -> None:
    packets: list[RtcpPacket] = [
        ReceiverReport(0xA),
        CongestionFeedback(0xA, [BlockList(0x64, 7, [0xA001] * 64)], 9),
        PictureLossIndication(0xA, 0x64),
    ]
    data = encode_compound(packets, minus_one=True)
    assert data[22:24].hex() == "003f"
    assert decode_compound(data, minus_one=True) == packets
    # Read with the plain count, an even list parses and silently loses its newest packet.
    feedback = decode_compound(data)[1]
    assert isinstance(feedback, CongestionFeedback)
    assert len(feedback.lists[0].blocks) == 63


def test_split_gives_the_slices_without_decoding() -> None:
    data = bytes.fromhex("80c900010000000a" + "8bcd00020000000a00000001")
    assert split_compound(data) == [(201, 0, 0, 8, 8), (205, 11, 8, 20, 20)]


def test_the_last_packet_may_be_padded() -> None:
    data = bytes.fromhex("80c900010000000a" + "a1cb00020000006400000004")
    assert decode_compound(data) == [ReceiverReport(0xA), Goodbye([0x64])]


def test_padding_before_the_last_packet_is_refused() -> None:
    data = bytes.fromhex("a0c900020000000a00000004" + "81cb000100000064")
    with pytest.raises(WireError, match="rtcp_padding"):
        decode_compound(data)


def test_profile_extensions_of_reports_are_skipped() -> None:
    data = bytes.fromhex("80c900020000000adeadbeef")
    assert decode_compound(data) == [ReceiverReport(0xA)]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ("", "rtcp_truncated"),
        ("80c900", "rtcp_truncated"),
        ("80c900010000000a80", "rtcp_truncated"),
        ("40c900010000000a", "rtcp_version"),
        ("80e200010000000a", "rtcp_type"),
        ("80c900020000000a", "rtcp_length"),
        ("a0c900010000000a", "rtcp_padding"),
        ("a0c9000100000000", "rtcp_padding"),
        ("a0c9000100000008", "rtcp_padding"),
        ("80c8000500000001000000000000000200000003", "rtcp_length"),
        ("80c800050000000100000000000000020000000300000004", "rtcp_sr"),
        ("80c90000", "rtcp_rr"),
        ("81c900010000000a", "rtcp_report_blocks"),
        ("81ca000100000064", "rtcp_sdes"),
        ("81ca00020000006401036140", "rtcp_sdes"),
        ("81ca000200000064000000ff" + "81cb000100000064", "ok"),
        ("81ca00020000006401026162", "rtcp_sdes"),
        ("81ca0003000000640102616200000000" + "80c90000", "rtcp_rr"),
        ("81ca00030000006400000000deadbeef", "rtcp_sdes"),
        ("81ca000200000064010161" + "05", "rtcp_sdes"),
        ("82cb000100000064", "rtcp_bye"),
        ("81cb00020000006404616263", "rtcp_bye"),
        ("81ce00010000000a", "rtcp_feedback"),
        ("81cd00010000000a", "rtcp_feedback"),
        ("84ce00030000000a0000000000000064", "rtcp_fir"),
        ("8bcd00010000000a", "ccfb_truncated"),
    ],
)
def test_bad_bytes_give_a_reason(data: str, reason: str) -> None:
    raw = bytes.fromhex(data)
    if reason == "ok":
        assert len(decode_compound(raw)) == 2
        return
    with pytest.raises(WireError) as caught:
        decode_compound(raw)
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    "packet",
    [
        SenderReport(1 << 32, 0, 0, 0, 0),
        SenderReport(0, 1 << 64, 0, 0, 0),
        ReceiverReport(0, [BLOCK] * 32),
        ReceiverReport(0, [ReportBlock(0, fraction_lost=256)]),
        ReceiverReport(0, [ReportBlock(0, cumulative_lost=0x800000)]),
        ReceiverReport(0, [ReportBlock(0, jitter=-1)]),
        SourceDescription([SdesChunk(0)] * 32),
        SourceDescription([SdesChunk(0, [(0, b"")])]),
        SourceDescription([SdesChunk(0, [(1, bytes(256))])]),
        Goodbye([0] * 32),
        Goodbye([-1]),
        Goodbye([0], bytes(256)),
        GenericNack(0, 0, [65536]),
        FullIntraRequest(0, [(0, 256)]),
        PictureLossIndication(-1, 0),
        Opaque(204, 32, b""),
        Opaque(204, 0, b"odd"),
        Opaque(204, 0, bytes(65536 * 4)),
    ],
)
def test_values_that_do_not_fit_are_our_own_mistake(packet: RtcpPacket) -> None:
    with pytest.raises(LocalMisuse):
        encode_compound([packet])


def test_round_trip_time_of_a_report_block() -> None:
    # Sent at 100.0 s, held for 0.5 s, back at 100.75 s.
    block = ReportBlock(1, last_sr=100 << 16, delay_since_last_sr=0x8000)
    assert round_trip(block, (100 << 16) + 0xC000) == 0.25


def test_round_trip_time_across_the_18_hour_wrap() -> None:
    block = ReportBlock(1, last_sr=0xFFFFC000, delay_since_last_sr=0x4000)
    assert round_trip(block, 0x4000) == 0.25


def test_no_round_trip_time_without_a_sender_report_or_when_held_too_long() -> None:
    assert round_trip(ReportBlock(1), 5) is None
    assert round_trip(ReportBlock(1, last_sr=100, delay_since_last_sr=50), 149) is None
