"""Extended reports: reference times and the answers to them, byte for byte."""

import pytest

from streamd.errors import LocalMisuse, WireError
from streamd.wire.rtcp import ExtendedReport, decode_compound, encode_compound
from streamd.wire.xr import LastReference, LastReferences, OtherBlock, ReferenceTime

REFERENCE = "80cf0004 11223344 04000002 0102030405060708"
ANSWERS = "80cf0008 11223344 05000006 aabbccdd03040506 00010000 aabbccee00000000 00000000"
OTHER = "80cf0003 11223344 06800001 00000007"


def test_a_reference_time() -> None:
    report = ExtendedReport(0x11223344, [ReferenceTime(0x0102030405060708)])
    assert report.encode() == bytes.fromhex(REFERENCE)
    assert decode_compound(bytes.fromhex(REFERENCE)) == [report]
    assert report.reference_time() == 0x0102030405060708
    assert report.answer_to(0x11223344) is None


def test_answers_to_two_participants_one_of_them_not_heard_yet() -> None:
    answers = [LastReference(0xAABBCCDD, 0x03040506, 65536), LastReference(0xAABBCCEE)]
    report = ExtendedReport(0x11223344, [LastReferences(answers)])
    assert report.encode() == bytes.fromhex(ANSWERS)
    assert decode_compound(bytes.fromhex(ANSWERS)) == [report]
    assert report.answer_to(0xAABBCCDD) == answers[0]
    assert report.answer_to(0xAABBCCEE) is None
    assert report.reference_time() is None


def test_other_blocks_stay_as_they_are() -> None:
    report = ExtendedReport(0x11223344, [OtherBlock(6, 0x80, bytes((0, 0, 0, 7)))])
    assert decode_compound(bytes.fromhex(OTHER)) == [report]
    assert encode_compound([report]) == bytes.fromhex(OTHER)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ("80cf0000", "rtcp_xr"),
        ("80cf0003 11223344 04000001 01020304", "rtcp_xr_rrtr"),
        ("80cf0005 11223344 04000003 0102030405060708 00000000", "rtcp_xr_rrtr"),
        ("80cf0004 11223344 05000002 aabbccdd03040506", "rtcp_xr_dlrr"),
        ("80cf0003 11223344 04000002 01020304", "rtcp_xr_block"),
        ("80cf0003 11223344 06000002 01020304", "rtcp_xr_block"),
    ],
)
def test_lengths_that_cannot_be(data: str, reason: str) -> None:
    with pytest.raises(WireError) as caught:
        decode_compound(bytes.fromhex(data))
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    "block",
    [
        ReferenceTime(1 << 64),
        LastReferences([LastReference(1 << 32)]),
        OtherBlock(6, 0, b"odd"),
        OtherBlock(256, 0, b""),
    ],
)
def test_what_does_not_fit_is_not_sent(
    block: ReferenceTime | LastReferences | OtherBlock,
) -> None:
    with pytest.raises(LocalMisuse):
        ExtendedReport(1, [block]).encode()
