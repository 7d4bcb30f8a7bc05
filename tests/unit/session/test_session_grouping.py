"""Frames of a stream without our extension: order, gaps, markers, contradictions."""

from streamd.session.grouping import MAX_AGE, MAX_BYTES, MAX_HELD, MAX_WAIT, FrameGrouper
from streamd.wire.payload.vp8 import Vp8

FORM = Vp8()


class Feed:
    """Frames of three packets from number 100 on; frame n has the timestamp 3000 n."""

    def __init__(self) -> None:
        self.grouper = FrameGrouper(FORM)
        self.out: list[tuple[int, bytes, bool]] = []

    def parts(self, frame: int, *, key: bool = False) -> list[bytes]:
        data = (b"\x00" if key else b"\x01") + f"frame{frame:06}".encode()
        return FORM.cut(data, keyframe=key, picture_id=frame, size=8)

    def give(
        self, frame: int, index: int, *, key: bool = False, now: float = 0.0, marker: bool = True
    ) -> None:
        part = self.parts(frame, key=key)[index]
        got = self.grouper.add(
            100 + 3 * frame + index, 3000 * frame, marker and index == 2, part, now
        )
        self.out += [(item.number, item.data[1:], item.keyframe) for item in got]

    def whole(self, frame: int, *, key: bool = False, now: float = 0.0) -> None:
        for index in range(3):
            self.give(frame, index, key=key, now=now)

    def numbers(self) -> list[int]:
        return [number for number, _, _ in self.out]


def test_frames_come_out_whole_and_in_order() -> None:
    feed = Feed()
    feed.whole(0, key=True)
    feed.whole(1)
    assert feed.out == [(0, b"frame000000", True), (1, b"frame000001", False)]
    assert feed.grouper.frames_seen == 2


def test_reordering_is_mended() -> None:
    feed = Feed()
    feed.whole(0, key=True)
    feed.give(1, 1)
    feed.give(2, 0)
    feed.give(1, 2)
    assert feed.numbers() == [0]
    feed.give(1, 0)
    feed.give(2, 1)
    feed.give(2, 2)
    assert feed.numbers() == [0, 1, 2]
    assert feed.grouper.gaps == 0


def test_a_frame_without_a_marker_ends_with_the_next_timestamp() -> None:
    feed = Feed()
    for index in range(3):
        feed.give(0, index, key=True, marker=False)
    assert feed.numbers() == []
    feed.give(1, 0)
    assert feed.numbers() == [0]


def test_a_lost_packet_costs_its_frame_and_a_number() -> None:
    feed = Feed()
    feed.whole(0, key=True)
    feed.give(1, 0)
    feed.give(1, 2)
    feed.whole(2, now=0.1)
    assert feed.numbers() == [0]
    feed.whole(3, now=MAX_AGE + 0.125)
    assert feed.numbers() == [0, 2, 3]
    assert feed.grouper.gaps == 1


def test_many_packets_behind_a_gap_end_the_wait_too() -> None:
    feed = Feed()
    feed.whole(0, key=True)
    feed.give(1, 0)
    for frame in range(2, 2 + MAX_WAIT // 3 + 1):
        feed.whole(frame)
    assert feed.grouper.gaps == 1
    assert feed.numbers()[:3] == [0, 2, 3]


def test_a_large_frame_is_no_gap() -> None:
    grouper = FrameGrouper(FORM)
    parts = FORM.cut(b"\x00" * 3000, keyframe=True, picture_id=0, size=8)
    assert len(parts) > 2 * MAX_WAIT
    got = []
    for index, part in enumerate(parts):
        got += grouper.add(index, 0, index == len(parts) - 1, part, 0.0)
    assert len(got) == 1
    assert grouper.gaps == 0


def test_what_comes_after_its_frame_is_nothing() -> None:
    feed = Feed()
    feed.whole(0, key=True)
    feed.give(0, 1)
    assert feed.numbers() == [0]


def test_a_frame_that_contradicts_itself_is_an_error_and_the_next_one_is_fine() -> None:
    feed = Feed()
    feed.whole(0, key=True)
    wrong = feed.parts(1)
    feed.grouper.add(103, 3000, False, wrong[0], 0.0)
    assert feed.grouper.add(104, 3000, True, wrong[0], 0.0) == []
    assert [error.reason for error in feed.grouper.take_errors()] == ["vp8_payload"]
    assert feed.grouper.take_errors() == []
    assert feed.grouper.gaps == 1
    part = FORM.cut(b"\x01ok", keyframe=False, picture_id=2, size=99)[0]
    (frame,) = feed.grouper.add(105, 6000, True, part, 0.0)
    assert (frame.number, frame.data) == (2, b"\x01ok")


def test_who_joins_in_the_middle_of_a_frame_begins_with_the_next_one() -> None:
    feed = Feed()
    feed.give(0, 1, key=True)
    feed.give(0, 2, key=True)
    feed.whole(1, key=True)
    assert feed.out == [(0, b"frame000001", True)]
    assert feed.grouper.take_errors() == []


def test_behind_a_gap_the_rest_of_a_frame_is_skipped_whenever_it_comes() -> None:
    feed = Feed()
    feed.whole(0, key=True)
    feed.give(2, 1)
    feed.give(2, 0, now=MAX_AGE + 0.125)
    assert feed.grouper.gaps == 1
    feed.give(2, 2, now=MAX_AGE + 0.25)
    feed.whole(3, now=MAX_AGE + 0.25)
    assert feed.numbers() == [0, 2]
    assert feed.out[-1][1] == b"frame000003"


def test_a_frame_larger_than_any_is_given_up_and_memory_stays_bounded() -> None:
    grouper = FrameGrouper(FORM)
    for seq in range(65_535):
        assert grouper.add(seq, 0, False, b"\x10\x00" if not seq else b"\x00x", 0.0) == []
        assert grouper.bytes_held <= 2 * (MAX_HELD + 1)
    assert grouper.gaps == 1
    assert grouper.bytes_held == 0
    (frame,) = grouper.add(65_535, 3000, True, b"\x10\x00next", 0.0)
    assert (frame.number, frame.data) == (1, b"\x00next")


def test_bytes_are_bounded_too() -> None:
    grouper = FrameGrouper(FORM)
    most = 0
    for seq in range(600):
        grouper.add(seq, 0, False, b"\x10" + bytes(60_000), 0.0)
        most = max(most, grouper.bytes_held)
    assert MAX_BYTES - 60_001 <= most <= MAX_BYTES
