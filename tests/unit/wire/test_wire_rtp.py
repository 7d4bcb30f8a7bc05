"""RTP packets: literal bytes, the fast parse within larger buffers, and bad bytes."""

import pytest

from streamd.errors import LocalMisuse, WireError
from streamd.wire.rtp import (
    MARKER,
    RtpPacket,
    decode_rtp,
    encode_rtp,
    is_rtcp,
    pack_header,
    pack_header_into,
    parse_rtp_fast,
)

PLAIN = bytes.fromhex("80e2ffff000000590000006401020304")
# Two CSRCs, a one-word extension, two payload bytes, three bytes of padding.
FULL = bytes.fromhex("b2620001ffffffff0000006400000001deadbeefbede000110aa0000" + "0506" + "000003")


def test_fields_of_a_plain_packet() -> None:
    assert parse_rtp_fast(PLAIN, 0, 16) == (True, 98, 65535, 89, 100, 12, 12, 16)


def test_fields_of_a_packet_with_everything() -> None:
    assert parse_rtp_fast(FULL, 0, len(FULL)) == (False, 98, 1, 0xFFFFFFFF, 100, 20, 28, 30)


def test_fields_of_a_packet_with_an_extension_only() -> None:
    packet = bytes.fromhex("906200010000000200000003bede000110aa0000ff")
    assert parse_rtp_fast(packet, 0, 21) == (False, 98, 1, 2, 3, 12, 20, 21)


def test_fields_of_a_packet_with_a_csrc_only() -> None:
    packet = bytes.fromhex("81620001000000020000000300000004ff")
    assert parse_rtp_fast(packet, 0, 17) == (False, 98, 1, 2, 3, 16, 16, 17)


def test_a_packet_of_padding_only() -> None:
    packet = bytes.fromhex("a06200010000000200000003000003")
    assert parse_rtp_fast(packet, 0, 15) == (False, 98, 1, 2, 3, 12, 12, 12)


def test_offsets_are_into_the_larger_buffer() -> None:
    buffer = PLAIN + FULL + PLAIN
    start = len(PLAIN)
    end = start + len(FULL)
    assert parse_rtp_fast(buffer, start, end)[5:] == (start + 20, start + 28, start + 30)
    assert parse_rtp_fast(buffer, end, end + 16)[5:] == (end + 12, end + 12, end + 16)
    assert parse_rtp_fast(memoryview(buffer), end, end + 16)[2] == 65535


def test_decode_a_packet_with_everything() -> None:
    packet = decode_rtp(b"\xff" * 5 + FULL + b"\xff", 5, 5 + len(FULL))
    assert packet == RtpPacket(
        payload_type=98,
        seq=1,
        timestamp=0xFFFFFFFF,
        ssrc=100,
        payload=b"\x05\x06",
        csrcs=[1, 0xDEADBEEF],
        extension_profile=0xBEDE,
        extension=bytes.fromhex("10aa0000"),
        padding=3,
    )
    assert encode_rtp(packet) == FULL


def test_decode_a_plain_packet() -> None:
    packet = RtpPacket(98, 65535, 89, 100, b"\x01\x02\x03\x04", marker=True)
    assert decode_rtp(PLAIN) == packet
    assert encode_rtp(packet) == PLAIN


def test_an_empty_extension_is_not_no_extension() -> None:
    packet = RtpPacket(96, 0, 0, 0, extension_profile=0x1234)
    assert encode_rtp(packet).hex() == "90600000000000000000000012340000"
    assert decode_rtp(encode_rtp(packet)) == packet


def test_header_is_packed_with_wrapped_numbers() -> None:
    header = pack_header(98 | MARKER, 65536 + 7, (1 << 32) + 9, 100)
    assert header.hex() == "80e200070000000900000064"
    buffer = bytearray(14)
    pack_header_into(buffer, 1, 98 | MARKER, 65536 + 7, (1 << 32) + 9, 100)
    assert buffer == b"\0" + header + b"\0"


@pytest.mark.parametrize(
    ("packet", "reason"),
    [
        ("", "rtp_truncated"),
        ("80620001000000020000ff", "rtp_truncated"),
        ("006200010000000200000003", "rtp_version"),
        ("406200010000000200000003", "rtp_version"),
        ("c06200010000000200000003", "rtp_version"),
        ("81620001000000020000000300", "rtp_csrc"),
        ("906200010000000200000003", "rtp_extension"),
        ("906200010000000200000003bede00", "rtp_extension"),
        ("906200010000000200000003bede000110aa00", "rtp_extension"),
        ("906200010000000200000003bedeffff10aa0000", "rtp_extension"),
        ("b06200010000000200000003bede000210aa0001", "rtp_extension"),
        ("a06200010000000200000003", "rtp_padding"),
        ("a0620001000000020000000300", "rtp_padding"),
        ("a06200010000000200000003000004", "rtp_padding"),
        ("b06200010000000200000003bede000110aa000401", "ok"),
        ("b06200010000000200000003bede000110aa000402", "rtp_padding"),
    ],
)
def test_bad_bytes_give_a_reason(packet: str, reason: str) -> None:
    data = bytes.fromhex(packet)
    if reason == "ok":
        assert decode_rtp(data).padding == 1
        return
    with pytest.raises(WireError) as caught:
        decode_rtp(data)
    assert caught.value.reason == reason


def test_bytes_behind_the_slice_do_not_complete_a_packet() -> None:
    with pytest.raises(WireError, match="rtp_truncated"):
        parse_rtp_fast(PLAIN, 0, 11)
    extended = bytes.fromhex("906200010000000200000003bede000110aa0000ff")
    with pytest.raises(WireError, match="rtp_extension"):
        parse_rtp_fast(extended, 0, 19)


@pytest.mark.parametrize(
    "packet",
    [
        RtpPacket(128, 0, 0, 0),
        RtpPacket(-1, 0, 0, 0),
        RtpPacket(96, 65536, 0, 0),
        RtpPacket(96, 0, 1 << 32, 0),
        RtpPacket(96, 0, 0, -1),
        RtpPacket(96, 0, 0, 0, csrcs=[0] * 16),
        RtpPacket(96, 0, 0, 0, csrcs=[1 << 32]),
        RtpPacket(96, 0, 0, 0, extension_profile=65536),
        RtpPacket(96, 0, 0, 0, extension_profile=0, extension=b"abc"),
        RtpPacket(96, 0, 0, 0, padding=256),
        RtpPacket(96, 0, 0, 0, padding=-1),
    ],
)
def test_values_that_do_not_fit_are_our_own_mistake(packet: RtpPacket) -> None:
    with pytest.raises(LocalMisuse):
        encode_rtp(packet)


@pytest.mark.parametrize(
    ("second_byte", "expected"),
    [(191, False), (192, True), (200, True), (223, True), (224, False), (98, False), (226, False)],
)
def test_demultiplexing_by_the_second_byte(second_byte: int, expected: bool) -> None:
    assert is_rtcp(second_byte) is expected
