"""RFC 8888 feedback: literal bytes in both dialects, and every way a packet can be wrong."""

import struct

import pytest

from streamd.errors import LocalMisuse, WireError
from streamd.wire.ccfb import (
    ATO_OVER_RANGE,
    ATO_UNAVAILABLE,
    BlockList,
    CongestionFeedback,
    arrival_ticks,
    decode_ccfb,
    encode_ccfb,
    offset_from_ticks,
    pack_block,
    unpack_block,
)

# Sender SSRC 10; SSRC 100 from seq 0xfffe: received ECT(1) 3/1024 s ago, lost, received CE just
# now (odd count, so two bytes of padding); SSRC 200 from seq 7: two blocks; report time 1.5 s.
TWO_SSRCS = bytes.fromhex(
    "8bcd0009 0000000a"
    "00000064 fffe0003 a003 0000 e000 0000"
    "000000c8 00070002 bffe 9fff"
    "00018000".replace(" ", "")
)
FEEDBACK = CongestionFeedback(
    10,
    [BlockList(100, 0xFFFE, [0xA003, 0, 0xE000]), BlockList(200, 7, [0xBFFE, 0x9FFF])],
    0x18000,
)


def test_two_ssrcs_encode_to_the_literal_bytes() -> None:
    assert encode_ccfb(FEEDBACK) == TWO_SSRCS


def test_two_ssrcs_decode_from_the_literal_bytes() -> None:
    assert decode_ccfb(TWO_SSRCS) == FEEDBACK


def test_minus_one_differs_in_num_reports_only() -> None:
    expected = bytearray(TWO_SSRCS)
    expected[15] = 2
    expected[31] = 1
    assert encode_ccfb(FEEDBACK, minus_one=True) == bytes(expected)
    assert decode_ccfb(expected, minus_one=True) == FEEDBACK


def test_bw_tool_report_of_64_blocks_has_0x3f_in_num_reports() -> None:
    packet = encode_ccfb(
        CongestionFeedback(10, [BlockList(100, 0xFFC3, [0] * 61 + [0xA001, 0xA000, 0xE000])], 841),
        minus_one=True,
    )
    assert packet[:16].hex() == "8bcd00240000000a00000064ffc3003f"
    assert packet[-12:].hex() == "0000a001a000e00000000349"
    assert len(packet) == 148


def test_the_wrong_dialect_does_not_parse_a_lone_even_list() -> None:
    packet = encode_ccfb(CongestionFeedback(10, [BlockList(100, 0, [0x8000] * 64)], 1))
    with pytest.raises(WireError, match="ccfb_blocks"):
        decode_ccfb(packet, minus_one=True)


def test_several_lists_of_one_ssrc_stay_apart_and_in_order() -> None:
    lists = [BlockList(100, first, [0x8000] * 64) for first in (0, 64, 128)]
    packet = encode_ccfb(CongestionFeedback(10, lists, 9), minus_one=True)
    assert decode_ccfb(packet, minus_one=True).lists == lists


def test_empty_list_is_legal_with_the_plain_count() -> None:
    packet = bytes.fromhex("8bcd0004000000010000000200030000000000ff")
    feedback = CongestionFeedback(1, [BlockList(2, 3, [])], 255)
    assert decode_ccfb(packet) == feedback
    assert encode_ccfb(feedback) == packet


def test_empty_list_cannot_be_said_with_minus_one() -> None:
    with pytest.raises(LocalMisuse, match="empty list"):
        encode_ccfb(CongestionFeedback(1, [BlockList(2, 3, [])], 0), minus_one=True)


@pytest.mark.parametrize("minus_one", [False, True])
def test_the_largest_list_is_16384_blocks(minus_one: bool) -> None:
    feedback = CongestionFeedback(1, [BlockList(2, 3, [0x8001] * 16384)], 0)
    assert decode_ccfb(encode_ccfb(feedback, minus_one=minus_one), minus_one=minus_one) == feedback
    feedback.lists[0].blocks.append(0)
    with pytest.raises(LocalMisuse, match="16385 blocks"):
        encode_ccfb(feedback, minus_one=minus_one)


@pytest.mark.parametrize("minus_one", [False, True])
def test_a_list_of_more_than_16384_blocks_is_refused(minus_one: bool) -> None:
    count = 16385 - minus_one
    body = struct.pack("!IIHH", 1, 2, 3, count) + bytes(16386 * 2) + bytes(4)
    packet = struct.pack("!BBH", 0x8B, 205, len(body) // 4) + body
    with pytest.raises(WireError, match="ccfb_blocks"):
        decode_ccfb(packet, minus_one=minus_one)


def test_a_slice_of_a_larger_buffer_decodes_alone() -> None:
    buffer = b"\xff" * 7 + TWO_SSRCS + b"\xff" * 9
    assert decode_ccfb(buffer, start=7, end=7 + len(TWO_SSRCS)) == FEEDBACK


def test_rtcp_padding_is_taken_off() -> None:
    padded = bytearray(TWO_SSRCS + bytes([0, 0, 0, 4]))
    padded[0] |= 0x20
    padded[3] += 1
    assert decode_ccfb(padded) == FEEDBACK


@pytest.mark.parametrize("count", [0, 3, 36, 255])
def test_impossible_rtcp_padding_is_refused(count: int) -> None:
    padded = bytearray(TWO_SSRCS + bytes([0, 0, 0, count]))
    padded[0] |= 0x20
    padded[3] += 1
    with pytest.raises(WireError, match="ccfb_padding"):
        decode_ccfb(padded)


@pytest.mark.parametrize(
    ("packet", "reason"),
    [
        ("", "ccfb_truncated"),
        ("8bcd0001000000ff", "ccfb_truncated"),
        ("4bcd00020000000a00000000", "ccfb_type"),
        ("81cd00020000000a00000000", "ccfb_type"),
        ("8bce00020000000a00000000", "ccfb_type"),
        ("8bcd00030000000a00000000", "ccfb_length"),
        ("8bcd00020000000a0000000000", "ccfb_length"),
        ("8bcd00030000000a0000006400000000", "ccfb_list"),
        ("8bcd00040000000a000000640000000100000000", "ccfb_blocks"),
    ],
)
def test_bad_bytes_give_a_reason(packet: str, reason: str) -> None:
    with pytest.raises(WireError) as caught:
        decode_ccfb(bytes.fromhex(packet))
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    "feedback",
    [
        CongestionFeedback(1 << 32, [], 0),
        CongestionFeedback(0, [], -1),
        CongestionFeedback(0, [BlockList(0, 65536, [])], 0),
        CongestionFeedback(0, [BlockList(0, 0, [65536])], 0),
        CongestionFeedback(0, [BlockList(0, 0, [0] * 16384)] * 9, 0),
    ],
)
def test_values_that_do_not_fit_are_our_own_mistake(feedback: CongestionFeedback) -> None:
    with pytest.raises(LocalMisuse):
        encode_ccfb(feedback)


def test_no_lists_at_all_is_a_report_of_twelve_bytes() -> None:
    packet = bytes.fromhex("8bcd00020000000a00010000")
    assert decode_ccfb(packet) == CongestionFeedback(10, [], 65536)
    assert encode_ccfb(CongestionFeedback(10, [], 65536)) == packet


def test_block_words() -> None:
    assert pack_block(1, 3) == 0xA003
    assert pack_block(3, 0x1FFF) == 0xFFFF
    assert unpack_block(0xA003) == (True, 1, 3)
    assert unpack_block(0xFFFE) == (True, 3, 0x1FFE)
    assert unpack_block(0) == (False, 0, 0)


@pytest.mark.parametrize(
    ("report", "arrival", "offset"),
    [
        (841, 841, 0),
        (841, 778, 0),
        (841, 777, 1),
        (65536, 0, 1024),
        (100, 0xFFFFFFFF - 27, 2),  # 128 ticks across the 18.2 h wrap
        (8189 << 6, 0, 8189),
        ((8190 << 6) - 1, 0, 8189),
        (8190 << 6, 0, ATO_OVER_RANGE),
        (0x7FFFFFFF, 0, ATO_OVER_RANGE),
        (100, 101, ATO_UNAVAILABLE),
        (0, 1, ATO_UNAVAILABLE),
    ],
)
def test_offset_is_truncated_saturated_and_modular(report: int, arrival: int, offset: int) -> None:
    assert offset_from_ticks(report, arrival) == offset


def test_arrival_time_is_the_report_time_less_the_offset() -> None:
    assert arrival_ticks(841, 0xA001) == 777
    assert arrival_ticks(0, 0x8001) == 0xFFFFFFC0
    assert arrival_ticks(0x100000, 0x8000 | ATO_OVER_RANGE) == 0x100000 - 8190 * 64
    assert arrival_ticks(841, 0x8000 | ATO_UNAVAILABLE) is None
