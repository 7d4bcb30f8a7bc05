"""The element that names the only frame a repair frame is predicted from."""

import pytest

from streamd.errors import WireError
from streamd.wire.rtp import parse_rtp_fast
from streamd.wire.video_ext import (
    pack_reference,
    pack_video_header,
    pack_video_header_with,
    parse_reference,
    parse_video_ext,
)

FIELDS = (98, 7, 3000, 0x1234ABCD, 0, 0x10005, 1, 3)


def test_it_stands_behind_the_video_element_and_both_are_read() -> None:
    header = pack_video_header_with(pack_reference(0x10002), *FIELDS)
    assert header[12:] == bytes.fromhex("BEDE0003 16000005 00010003 31000200")
    ext, start = parse_rtp_fast(header + b"payload", 0, len(header) + 7)[5:7]
    assert start == len(header)
    assert parse_video_ext(header, ext, start) == (0, 5, 1, 3)
    assert parse_reference(header, ext, start) == 2


def test_a_packet_without_it_has_none() -> None:
    header = pack_video_header(*FIELDS)
    ext, start = parse_rtp_fast(header + b"payload", 0, len(header) + 7)[5:7]
    assert parse_reference(header, ext, start) is None


def test_one_of_another_length_is_an_error() -> None:
    header = pack_video_header_with(bytes((0x32, 0, 0, 0)), *FIELDS)
    ext, start = parse_rtp_fast(header + b"payload", 0, len(header) + 7)[5:7]
    with pytest.raises(WireError, match="3 bytes"):
        parse_reference(header, ext, start)
