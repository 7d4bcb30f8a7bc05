"""Frames into packets: sizes, numbers, headers, and every wrap of them."""

import pytest

from streamd.media.model import EncodedFrame
from streamd.session.packetize import Packetizer, StreamIdentity
from streamd.wire.rtp import decode_rtp, parse_rtp_fast
from streamd.wire.video_ext import FLAG_KEYFRAME, parse_video_ext


def frame(size: int, *, keyframe: bool = False, at: float = 0.0) -> EncodedFrame:
    return EncodedFrame(bytes(i & 0xFF for i in range(size)), keyframe, at)


def test_a_frame_is_cut_at_the_payload_size_and_marked_at_its_end() -> None:
    packetizer = Packetizer(StreamIdentity(ssrc=7, payload_type=98))
    source = frame(2500, keyframe=True, at=2.0)
    packets = packetizer.packetize(source, payload=1200, now=3.0)
    assert [item.size for item in packets] == [1224, 1224, 124]
    assert [item.seq for item in packets] == [0, 1, 2]
    assert [item.marker for item in packets] == [False, False, True]
    assert {item.rtp_time for item in packets} == {180_000}
    assert {item.frame_time for item in packets} == {3.0}
    payload = b""
    for index, item in enumerate(packets):
        marker, kind, seq, timestamp, ssrc, ext, start, end = parse_rtp_fast(
            item.data, 0, len(item.data)
        )
        assert (marker, kind, seq, timestamp, ssrc) == (index == 2, 98, index, 180_000, 7)
        assert parse_video_ext(item.data, ext, start) == (FLAG_KEYFRAME, 0, index, 3)
        payload += item.data[start:end]
    assert payload == source.data


@pytest.mark.parametrize(
    ("size", "sizes"), [(0, [24]), (1, [25]), (1200, [1224]), (1201, [1224, 25])]
)
def test_sizes_around_the_cut(size: int, sizes: list[int]) -> None:
    packetizer = Packetizer(StreamIdentity(ssrc=7))
    packets = packetizer.packetize(frame(size), payload=1200, now=0.0)
    assert [item.size for item in packets] == sizes
    assert packets[-1].marker


def test_without_the_extension_the_header_has_twelve_bytes() -> None:
    packetizer = Packetizer(StreamIdentity(ssrc=100, video_extension=False))
    packets = packetizer.packetize(frame(1300), payload=1200, now=0.0)
    assert [item.size for item in packets] == [1212, 112]
    assert packetizer.header_size == 12
    decoded = decode_rtp(packets[1].data)
    assert decoded.extension_profile is None
    assert decoded.marker
    assert decoded.payload == frame(1300).data[1200:]


def test_sequence_number_frame_id_and_timestamp_wrap_on_the_wire_only() -> None:
    identity = StreamIdentity(ssrc=7, first_seq=65_535, first_timestamp=0xFFFFFFFF - 44_999)
    packetizer = Packetizer(identity)
    first = packetizer.packetize(frame(10, at=0.0), payload=1200, now=0.0)[0]
    second = packetizer.packetize(frame(10, at=1.0), payload=1200, now=1.0)[0]
    assert (first.seq, second.seq) == (65_535, 65_536)
    assert second.rtp_time - first.rtp_time == 90_000
    assert [decode_rtp(item.data).seq for item in (first, second)] == [65_535, 0]
    assert [decode_rtp(item.data).timestamp for item in (first, second)] == [4_294_922_296, 45_000]
    assert packetizer.next_seq == 65_537


def test_frame_ids_wrap_after_65536_frames() -> None:
    packetizer = Packetizer(StreamIdentity(ssrc=7))
    ids = []
    for _ in range(65_538):
        (item,) = packetizer.packetize(frame(1), payload=1200, now=0.0)
        fields = parse_video_ext(item.data, 12, 24)
        assert fields is not None
        ids.append(fields[1])
    assert ids[65_534:] == [65_534, 65_535, 0, 1]


def test_a_frame_with_more_than_65535_fragments_is_cut_coarser() -> None:
    packetizer = Packetizer(StreamIdentity(ssrc=7))
    packets = packetizer.packetize(EncodedFrame(bytes(65_536), False, 0.0), payload=1, now=0.0)
    assert len(packets) == 32_768
    assert parse_video_ext(packets[-1].data, 12, 24) == (0, 0, 32_767, 32_768)
    assert sum(item.size - 24 for item in packets) == 65_536


def test_a_clock_that_starts_negative_gives_timestamps_from_zero_on() -> None:
    packetizer = Packetizer(StreamIdentity(ssrc=100, first_timestamp=-int(1234.5 * 90_000)))
    (item,) = packetizer.packetize(frame(1, at=1235.5), payload=1200, now=1235.5)
    assert item.rtp_time == 90_000


def test_standard_payloads_are_cut_to_the_same_size() -> None:
    packetizer = Packetizer(StreamIdentity(ssrc=7, payload="vp9"))
    packets = packetizer.packetize(frame(2500, keyframe=True), payload=1200, now=0.0)
    assert [item.size for item in packets] == [1224, 1224, 24 + 3 + 106]
    assert packets[0].data[24:27] == b"\x88\x80\x00"
    (second,) = packetizer.packetize(frame(5), payload=1200, now=0.0)
    assert second.data[24:] == b"\xcc\x80\x01" + frame(5).data


@pytest.mark.parametrize(("payload", "size"), [("raw", 25), ("vp8", 29), ("vp9", 28)])
def test_no_room_for_the_descriptor_still_moves_on(payload: str, size: int) -> None:
    packetizer = Packetizer(StreamIdentity(ssrc=7, payload=payload))
    packets = packetizer.packetize(frame(3), payload=1, now=0.0)
    assert [item.size for item in packets] == [size] * 3
