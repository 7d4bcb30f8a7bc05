"""Copies as packets of their own stream, and the originals out of them."""

import pytest

from streamd.errors import WireError
from streamd.wire.rtp import parse_rtp_fast
from streamd.wire.rtx import original_seq, unwrap, wrap
from streamd.wire.video_ext import pack_video_header

HEADER = pack_video_header(98 | 0x80, 0xABCD, 0x01020304, 0x11111111, 0x80, 5, 1, 2)
PACKET = HEADER + b"picture"


def test_the_copy_has_its_own_numbering_and_begins_with_the_original_number() -> None:
    copy = wrap(PACKET, ssrc=0x22222222, payload_type=108, seq=0x10007)
    assert copy[:12] == bytes.fromhex("90EC0007 01020304 22222222")
    assert copy[12:24] == HEADER[12:]
    assert copy[24:] == b"\xab\xcdpicture"


def test_the_original_comes_back_byte_for_byte() -> None:
    copy = wrap(PACKET, ssrc=0x22222222, payload_type=108, seq=7)
    fields = parse_rtp_fast(copy, 0, len(copy))
    assert original_seq(copy, fields) == 0xABCD
    assert unwrap(copy, fields, ssrc=0x11111111, payload_type=98) == PACKET


def test_a_copy_without_an_original_number_is_an_error() -> None:
    copy = wrap(HEADER, ssrc=1, payload_type=108, seq=7)[:-1]
    with pytest.raises(WireError, match="1 bytes of payload"):
        unwrap(copy, parse_rtp_fast(copy, 0, len(copy)), ssrc=2, payload_type=98)
