"""RFC 8285 elements and the video extension made of one of them."""

import pytest

from streamd.errors import LocalMisuse, WireError
from streamd.wire.extension import decode_elements, encode_elements
from streamd.wire.rtp import parse_rtp_fast
from streamd.wire.video_ext import (
    FLAG_KEYFRAME,
    pack_video_ext,
    pack_video_header,
    parse_video_ext,
)

VIDEO = bytes.fromhex("bede000216800102000300 04".replace(" ", ""))


def test_one_byte_form() -> None:
    profile, data = encode_elements([(1, b"\xaa"), (14, b"\x01\x02\x03")])
    assert (profile, data.hex()) == (0xBEDE, "10aae20102030000")
    assert decode_elements(profile, data, 0, 8) == [(1, b"\xaa"), (14, b"\x01\x02\x03")]


def test_two_byte_form() -> None:
    elements = [(1, b""), (255, b"\x01\x02\x03")]
    profile, data = encode_elements(elements, two_byte=True)
    assert (profile, data.hex()) == (0x1000, "0100ff0301020300")
    assert decode_elements(profile, data, 0, 8) == elements
    assert decode_elements(0x100F, data, 0, 8) == elements


def test_padding_between_elements_is_skipped() -> None:
    assert decode_elements(0xBEDE, bytes.fromhex("0010aa0020bb0000"), 0, 8) == [
        (1, b"\xaa"),
        (2, b"\xbb"),
    ]


@pytest.mark.parametrize("stop", ["f1", "01"])
def test_reserved_heads_end_the_extension_without_an_error(stop: str) -> None:
    assert decode_elements(0xBEDE, bytes.fromhex("10aa" + stop + "20bb00"), 0, 6) == [(1, b"\xaa")]


def test_another_profile_has_no_elements() -> None:
    assert decode_elements(0xABAC, b"\x10\xaa\x00\x00", 0, 4) == []


@pytest.mark.parametrize(
    ("profile", "data"),
    [(0xBEDE, "12aabb"), (0xBEDE, "10"), (0x1000, "01"), (0x1000, "0103aabb"), (0x1001, "0001")],
)
def test_an_element_beyond_the_extension_is_refused(profile: int, data: str) -> None:
    raw = bytes.fromhex(data)
    with pytest.raises(WireError, match="extension_element"):
        decode_elements(profile, raw + b"\xff" * 300, 0, len(raw))


@pytest.mark.parametrize(
    ("element", "two_byte"),
    [
        ((0, b"a"), False),
        ((15, b"a"), False),
        ((1, b""), False),
        ((1, bytes(17)), False),
        ((0, b"a"), True),
        ((256, b"a"), True),
        ((1, bytes(256)), True),
    ],
)
def test_elements_that_do_not_fit_are_our_own_mistake(
    element: tuple[int, bytes], two_byte: bool
) -> None:
    with pytest.raises(LocalMisuse):
        encode_elements([element], two_byte=two_byte)


def test_the_video_extension_has_twelve_bytes() -> None:
    assert pack_video_ext(FLAG_KEYFRAME, 0x0102, 3, 4) == VIDEO
    assert parse_video_ext(VIDEO, 0, 12) == (0x80, 0x0102, 3, 4)


def test_header_and_video_extension_in_one_go() -> None:
    packet = pack_video_header(98, 65536, (1 << 32) + 1, 100, 0, 65536 + 5, 0, 1) + b"payload"
    assert packet.hex() == "906200000000000100000064bede000216000005000000017061796c6f6164"
    buffer = b"x" * 9 + packet
    *_, ext_start, payload_start, payload_end = parse_rtp_fast(buffer, 9, len(buffer))
    assert parse_video_ext(buffer, ext_start, payload_start) == (0, 5, 0, 1)
    assert buffer[payload_start:payload_end] == b"payload"


def test_no_extension_is_legal() -> None:
    assert parse_video_ext(b"\x80" * 30, 12, 12) is None


def test_an_extension_without_the_element_is_legal() -> None:
    assert parse_video_ext(bytes.fromhex("bede000220aa0000000000" + "00"), 0, 12) is None
    assert parse_video_ext(bytes.fromhex("abac00011680aaaa"), 0, 8) is None


def test_the_element_is_found_beside_others_and_in_two_byte_form() -> None:
    beside = bytes.fromhex("bede000320aa16800102000300040000")
    assert parse_video_ext(beside, 0, 16) == (0x80, 0x0102, 3, 4)
    two_byte = bytes.fromhex("100000030107800102000300040000" + "00")
    assert parse_video_ext(two_byte, 0, 16) == (0x80, 0x0102, 3, 4)


@pytest.mark.parametrize(
    ("extension", "reason"),
    [
        ("bede00021680010200040004", "video_fragment"),
        ("bede00021680010200000000", "video_fragment"),
        ("bede000320aa16800102000500040000", "video_fragment"),
        ("bede00011280010200", "video_ext"),
        ("bede00011680010200", "extension_element"),
    ],
)
def test_a_malformed_video_extension_is_refused(extension: str, reason: str) -> None:
    raw = bytes.fromhex(extension)
    with pytest.raises(WireError) as caught:
        parse_video_ext(raw, 0, len(raw) // 4 * 4)
    assert caught.value.reason == reason


@pytest.mark.parametrize("fields", [(256, 0, 0, 1), (0, 0, 65536, 1), (0, 0, 0, 65536)])
def test_video_fields_that_do_not_fit_are_our_own_mistake(
    fields: tuple[int, int, int, int],
) -> None:
    with pytest.raises(LocalMisuse):
        pack_video_ext(*fields)
    with pytest.raises(LocalMisuse):
        pack_video_header(98, 0, 0, 100, *fields)
