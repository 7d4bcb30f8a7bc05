"""The element that tells when a frame was captured."""

import pytest

from streamd.errors import LocalMisuse, WireError
from streamd.wire.abs_capture_time import (
    CaptureTime,
    decode_capture_time,
    encode_capture_time,
    pack_capture_element,
    parse_capture_time,
)
from streamd.wire.extension import encode_elements
from streamd.wire.ntp import unix_to_ntp
from streamd.wire.rtp import parse_rtp_fast
from streamd.wire.video_ext import (
    pack_reference,
    pack_video_header,
    pack_video_header_with,
    parse_reference,
    parse_video_ext,
)

FIELDS = (98, 7, 3000, 0x1234ABCD, 0x80, 5, 0, 3)
NTP = 0xE8FE1D80_40000000


def test_the_short_form_is_the_timestamp_alone() -> None:
    assert encode_capture_time(CaptureTime(NTP)) == bytes.fromhex("E8FE1D80 40000000")
    assert decode_capture_time(bytes.fromhex("E8FE1D80 40000000")) == CaptureTime(NTP)


def test_the_long_form_has_a_signed_offset() -> None:
    half_a_second_behind = CaptureTime(NTP, -(1 << 31))
    data = bytes.fromhex("E8FE1D80 40000000 FFFFFFFF 80000000")
    assert encode_capture_time(half_a_second_behind) == data
    assert decode_capture_time(data) == half_a_second_behind


def test_the_senders_clock_is_the_capture_systems_minus_the_offset() -> None:
    ntp = unix_to_ntp(1_700_000_000.25)
    assert CaptureTime(ntp).sender_unix() == 1_700_000_000.25
    assert CaptureTime(ntp, 3 << 31).sender_unix() == 1_699_999_998.75
    assert CaptureTime(ntp, -(3 << 31)).sender_unix() == 1_700_000_001.75


@pytest.mark.parametrize("size", [1, 7, 9, 12, 15])
def test_other_lengths_are_errors(size: int) -> None:
    with pytest.raises(WireError, match=f"{size} bytes") as caught:
        decode_capture_time(bytes(size))
    assert caught.value.reason == "abs_capture_time"


@pytest.mark.parametrize(
    "capture", [CaptureTime(1 << 64), CaptureTime(-1), CaptureTime(0, 1 << 63)]
)
def test_what_does_not_fit_is_not_sent(capture: CaptureTime) -> None:
    with pytest.raises(LocalMisuse):
        encode_capture_time(capture)


@pytest.mark.parametrize("element_id", [0, 15])
def test_ids_are_those_of_the_one_byte_form(element_id: int) -> None:
    with pytest.raises(LocalMisuse, match="element id"):
        pack_capture_element(CaptureTime(NTP), element_id)


def test_it_stands_behind_the_video_element_and_beside_a_reference() -> None:
    elements = pack_reference(2) + pack_capture_element(CaptureTime(NTP))
    header = pack_video_header_with(elements, *FIELDS)
    assert header[12:] == bytes.fromhex("BEDE0005 16800005 00000003 31000247 E8FE1D80 40000000")
    ext, start = parse_rtp_fast(header + b"payload", 0, len(header) + 7)[5:7]
    assert start == len(header)
    assert parse_video_ext(header, ext, start) == (0x80, 5, 0, 3)
    assert parse_reference(header, ext, start) == 2
    assert parse_capture_time(header, ext, start) == CaptureTime(NTP)


def test_a_packet_without_it_has_none() -> None:
    header = pack_video_header(*FIELDS)
    ext, start = parse_rtp_fast(header + b"payload", 0, len(header) + 7)[5:7]
    assert parse_capture_time(header, ext, start) is None
    assert parse_capture_time(header, ext, ext) is None


def test_the_two_byte_form_is_read_too() -> None:
    profile, elements = encode_elements(
        [(20, encode_capture_time(CaptureTime(NTP, 1)))], two_byte=True
    )
    data = profile.to_bytes(2, "big") + (len(elements) // 4).to_bytes(2, "big") + elements
    assert parse_capture_time(data, 0, len(data), 20) == CaptureTime(NTP, 1)
