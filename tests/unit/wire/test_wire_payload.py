"""Payload formats: bytes as the RFCs draw them, and what contradicts itself."""

import pytest

from streamd.errors import LocalMisuse, WireError
from streamd.wire.payload import Part, PayloadFormat
from streamd.wire.payload.h264 import H264, split
from streamd.wire.payload.raw import Raw
from streamd.wire.payload.vp8 import Vp8
from streamd.wire.payload.vp9 import Vp9

SPS, PPS = b"\x67\x42\x01", b"\x68\xce"
IDR = b"\x65" + bytes(range(1, 30))


def test_vp9_of_one_key_frame_in_two_packets() -> None:
    parts = Vp9().cut(b"\x82bcdef", keyframe=True, picture_id=0x8001, size=6)
    assert parts == [b"\x88\x80\x01\x82bc", b"\x84\x80\x01def"]
    assert Vp9().join(parts) == b"\x82bcdef"
    assert Vp9().describe(parts[0]) == Part(True, None, True, 1)
    assert Vp9().describe(parts[1]).start is False


def test_vp9_of_a_small_frame_begins_and_ends_at_once() -> None:
    (part,) = Vp9().cut(b"x", keyframe=False, picture_id=300, size=100)
    assert part == b"\xcc\x81\x2cx"
    assert Vp9().describe(part) == Part(True, None, False, 300)


@pytest.mark.parametrize(
    ("head", "keyframe"),
    [
        ("82", True),  # profile 0
        ("86", False),
        ("92", True),  # profile 2
        ("b1", True),  # profile 3 has one bit more
        ("b2", False),
        ("8a", False),  # shows a frame that exists
        ("42", False),  # no VP9
    ],
)
def test_vp9_of_senders_that_never_say_predicted(head: str, keyframe: bool) -> None:
    assert Vp9().describe(b"\x0c" + bytes.fromhex(head)).keyframe is keyframe
    assert not Vp9().describe(b"\x04" + bytes.fromhex(head)).keyframe
    assert not Vp9().describe(b"\x0c").keyframe


def test_vp9_of_others_layers_references_and_structure_are_read() -> None:
    # I L F P B E V: id 7, T1 S0, two references, one layer of 352x288, two pictures in a group
    payload = bytes.fromhex("fe 07 20 03 04 18 01600120 02 04 01 20") + b"body"
    part = Vp9().describe(payload)
    assert (part.picture_id, part.temporal_id, part.spatial_id) == (7, 1, 0)
    assert Vp9().join([payload]) == b"body"
    # non-flexible with layers: TL0PICIDX follows
    assert Vp9().join([bytes.fromhex("2c 00 09") + b"body"]) == b"body"


def test_vp9_of_two_spatial_layers_is_one_frame() -> None:
    base, upper = bytes.fromhex("ac 05 00 01") + b"ba", bytes.fromhex("ac 05 02 01") + b"up"
    assert Vp9().join([base, upper]) == b"baup"
    assert not Vp9().describe(upper).start


@pytest.mark.parametrize(
    "parts",
    [
        [],
        [b""],
        [b"\x80"],
        [b"\x88\x80"],
        [b"\x80\x01abc"],
        [b"\x88\x01abc"],
        [b"\x88\x01abc", b"\x88\x01def"],
        [b"\xd8\x07\x03\x03\x03\x03\x03"],
        [b"\x0a\xff\xff"],
        [b"\x88\x01a", b"\x84\x02b"],  # another picture
        [b"\x88\x01a", b"\x04b"],  # of no picture
        [b"\x8c\x01a", b"\x8c\x02b"],
        [b"\x28\x20\x01a", b"\x24\x40\x01b"],  # T1 becomes T2
        [b"\x28\x00\x01a", b"\x24\x02\x01b"],  # S0 becomes S1
    ],
)
def test_vp9_that_contradicts_itself_is_refused(parts: list[bytes]) -> None:
    with pytest.raises(WireError):
        Vp9().join(parts)


def test_vp8_of_a_key_frame_in_two_packets() -> None:
    parts = Vp8().cut(b"\x10bcdef", keyframe=True, picture_id=1, size=7)
    assert parts == [b"\x90\x80\x80\x01\x10bc", b"\x80\x80\x80\x01def"]
    assert Vp8().join(parts) == b"\x10bcdef"
    assert Vp8().describe(parts[0]) == Part(True, None, True, 1)
    assert Vp8().describe(b"\x90\x80\x80\x01\x11").keyframe is False


def test_vp8_of_others_short_ids_and_layers_are_read() -> None:
    payload = bytes.fromhex("90 f0 11 22 40") + b"\x00body"
    part = Vp8().describe(payload)
    assert (part.picture_id, part.temporal_id, part.keyframe) == (0x11, 1, True)
    assert Vp8().join([bytes.fromhex("10") + b"plain"]) == b"plain"


def test_vp8_of_others_in_partitions_is_one_frame() -> None:
    assert Vp8().join([b"\x10a", b"\x00b", b"\x11c", b"\x01d", b"\x13e"]) == b"abcde"
    assert not Vp8().describe(b"\x11c").start


@pytest.mark.parametrize(
    "parts",
    [
        [],
        [b""],
        [b"\x80"],
        [b"\x90\x80"],
        [b"\x00a"],
        [b"\x10"] * 2,
        [b"\x11a"],  # begins a partition, but not the first
        [b"\x10a", b"\x12b", b"\x11c"],  # partitions go up
        [b"\x90\x80\x01a", b"\x80\x80\x02b"],  # another picture
        [b"\x90\x80\x01a", b"\x00b"],
    ],
)
def test_vp8_that_contradicts_itself_is_refused(parts: list[bytes]) -> None:
    with pytest.raises(WireError):
        Vp8().join(parts)


def test_h264_parameter_sets_share_a_packet_and_a_large_unit_is_cut() -> None:
    data = b"\x00\x00\x00\x01" + SPS + b"\x00\x00\x01" + PPS + b"\x00\x00\x00\x01" + IDR
    parts = H264().cut(data, keyframe=True, picture_id=0, size=16)
    assert parts[0] == b"\x78\x00\x03" + SPS + b"\x00\x02" + PPS
    assert [part[:2] for part in parts[1:]] == [b"\x7c\x85", b"\x7c\x05", b"\x7c\x45"]
    assert all(len(part) <= 16 for part in parts)
    assert H264().join(parts) == b"".join(b"\x00\x00\x00\x01" + u for u in (SPS, PPS, IDR))
    assert H264().describe(parts[0]) == Part(True, None, True)
    assert H264().describe(parts[1]) == Part(True, None, True)
    assert H264().describe(parts[2]).start is False


def test_h264_of_one_small_unit_is_that_unit() -> None:
    assert H264().cut(b"\x00\x00\x01\x41\x9a", keyframe=False, picture_id=0, size=99) == [
        b"\x41\x9a"
    ]


def test_h264_of_nothing_is_a_packet_all_the_same() -> None:
    for data in (b"", b"\x00\x00\x01"):
        (part,) = H264().cut(data, keyframe=False, picture_id=0, size=99)
        assert H264().join([part]) == b"\x00\x00\x00\x01\x09\xf0"


def test_h264_zeros_before_a_start_code_belong_to_no_unit() -> None:
    assert split(b"\x00\x00\x01\x41\x80\x00\x00\x00\x01\x41") == [b"\x41\x80", b"\x41"]
    assert split(b"\x00\x00\x01\x41\x80\x00\x00") == [b"\x41\x80"]
    assert split(b"\x41\x9a") == [b"\x41\x9a"]
    assert split(b"") == []


@pytest.mark.parametrize(
    "parts",
    [
        [],
        [b""],
        [b"\x7c"],
        [b"\x7c\x05a"],
        [b"\x7c\x85a"],
        [b"\x7c\x85a", b"\x41b"],
        [b"\x7c\x85a", b"\x7c\x85a"],
        [b"\x78\x00\x09a"],
        [b"\x78"],
        [b"\x79abc"],
        [b"\x00"],
        [b"\x7c\x85a", b"\x7c\x41b"],  # an IDR becomes another type
        [b"\x7c\x98a", b"\x7c\x58b"],  # fragments of an aggregate
        [b"\x7c\x80a", b"\x7c\x40b"],
        [b"\x78\x00\x02\x78\x00"],  # an aggregate in an aggregate
        [b"\x78\x00\x01\x00"],
    ],
)
def test_h264_that_contradicts_itself_is_refused(parts: list[bytes]) -> None:
    with pytest.raises(WireError):
        H264().join(parts)


@pytest.mark.parametrize(
    "payload", ["", "00", "19", "1d", "1f", "7c", "7c98", "780009", "78000118"]
)
def test_h264_that_mode_1_does_not_know_is_not_described(payload: str) -> None:
    with pytest.raises(WireError):
        H264().describe(bytes.fromhex(payload))


def test_h264_units_share_no_packet_whose_sizes_do_not_fit() -> None:
    large = b"\x41" + b"a" * 70_000
    data = b"\x00\x00\x00\x01" + large + b"\x00\x00\x00\x01\x41b"
    parts = H264().cut(data, keyframe=False, picture_id=0, size=80_000)
    assert [len(part) for part in parts] == [65_535, 4_469, 2]
    assert H264().join(parts) == data


@pytest.mark.parametrize("form", [Vp9(), Vp8(), H264(), Raw()], ids=lambda form: form.name)
def test_no_room_beside_the_descriptor_is_told(form: PayloadFormat) -> None:
    with pytest.raises(LocalMisuse):
        form.cut(b"\x41bcdef", keyframe=True, picture_id=1, size=form.overhead)
    parts = form.cut(b"\x41bcdef", keyframe=True, picture_id=1, size=form.overhead + 1)
    assert max(map(len, parts)) <= form.overhead + 1
    assert form.join(parts).endswith(b"\x41bcdef")


def test_raw_is_what_it_is() -> None:
    assert Raw().cut(b"abcde", keyframe=True, picture_id=1, size=2) == [b"ab", b"cd", b"e"]
    assert Raw().cut(b"", keyframe=True, picture_id=1, size=2) == [b""]
    assert Raw().join([b"ab", b"c"]) == b"abc"
    assert Raw().describe(b"x") == Part(True, None, False)
