"""The BW tool's side of the wire: text lines, keep-alives, reports."""

import pytest

from streamd.errors import WireError
from streamd.wire.bwtool import (
    KEEPALIVE,
    decode_report,
    encode_report,
    is_keepalive,
    is_text,
    text_line,
)
from streamd.wire.ccfb import BlockList, CongestionFeedback
from streamd.wire.rtp import is_rtcp

REPORT = bytes.fromhex("8bcd00050000000a0000006400050001a0010000" + "00000349")


def test_report_in_the_tools_form() -> None:
    lists = [BlockList(100, 5, [0xA001, 0])]
    assert encode_report(lists, 841) == REPORT
    assert decode_report(b"zz" + REPORT, 2) == CongestionFeedback(10, lists, 841)


def test_a_report_of_the_plain_form_is_refused() -> None:
    plain = bytearray(REPORT)
    plain[15] = 2
    with pytest.raises(WireError, match="ccfb_blocks"):
        decode_report(plain)


def test_one_byte_is_a_keepalive() -> None:
    assert is_keepalive(len(KEEPALIVE))
    assert not is_keepalive(0)
    assert not is_keepalive(2)


def test_text_lines_are_told_by_their_second_byte() -> None:
    line = b"\x80\x7frate 1.0 Mbps\x00"
    assert is_text(line, 0, len(line))
    assert text_line(b"x" + line, 1, 1 + len(line)) == "rate 1.0 Mbps"
    assert not is_text(b"\x80\xff....", 0, 6)
    assert not is_text(b"\x80\x7f", 0, 1)


def test_text_for_a_terminal_is_printable() -> None:
    assert text_line(b"\x80\x7f\x1b[2Jhi\xff", 0, 9) == "?[2Jhi?"


def test_text_of_something_else_is_refused() -> None:
    with pytest.raises(WireError, match="bwtool_text"):
        text_line(b"\x80\x62ab", 0, 4)


def test_rtp_of_payload_type_98_is_never_taken_for_rtcp() -> None:
    assert not is_rtcp(98)
    assert not is_rtcp(98 | 0x80)
