"""Fragments into frames and frames into decoding order; every frame ends in one count."""

import pytest

from streamd.errors import WireError
from streamd.session import frames
from streamd.session.frames import FrameAssembler
from streamd.session.runs import Run

KEY, DELTA = True, False


class Feeder:
    """Feeds frames of one or more fragments and collects what may be decoded."""

    def __init__(self) -> None:
        self.assembler = FrameAssembler()
        self.out: list[int] = []

    def part(
        self,
        frame_id: int,
        index: int,
        count: int,
        *,
        key: bool = False,
        now: float = 0.0,
        refers: int | None = None,
    ) -> bool:
        """One fragment; True if it completed its frame."""
        done = self.assembler.add(
            (0x80 if key else 0, frame_id & 0xFFFF, index, count),
            key,
            3000 * frame_id,
            f"{frame_id}.{index};".encode(),
            now,
            refers=refers,
        )
        return done is not None

    def whole(
        self, frame_id: int, *, key: bool = False, now: float = 0.0, refers: int | None = None
    ) -> list[int]:
        """A frame of one fragment; the frame numbers that may be decoded after it."""
        assert self.part(frame_id, 0, 1, key=key, now=now, refers=refers)
        return self.poll(now)

    def poll(self, now: float = 0.0) -> list[int]:
        ready = [number for number, _ in self.assembler.poll(now)]
        self.out += ready
        return ready

    def started(self) -> bool:
        return self.assembler.started

    def counts(self) -> tuple[int, int, int]:
        """Handed out, lost, skipped."""
        return len(self.out), self.assembler.lost, self.assembler.skipped


def test_frames_come_out_in_order_with_their_data() -> None:
    feeder = Feeder()
    assert not feeder.part(0, 1, 2, key=True, now=1.0)
    assert feeder.poll() == []
    assert feeder.part(0, 0, 2, key=True, now=2.0)
    ((number, frame),) = list(feeder.assembler.poll(2.0))
    assert number == 0
    assert b"".join(frame.payloads()) == b"0.0;0.1;"
    assert (frame.first_at, frame.completed_at, frame.keyframe) == (1.0, 2.0, True)
    assert feeder.whole(1) == [1]
    assert feeder.assembler.completed == 2


def test_nothing_leaves_before_the_first_key_frame() -> None:
    feeder = Feeder()
    assert feeder.whole(5) == []
    assert feeder.whole(6) == []
    assert not feeder.started()
    assert feeder.whole(7, key=True) == [7]
    assert feeder.started()
    assert feeder.counts() == (1, 0, 2)


def test_a_later_frame_waits_for_the_one_it_refers_to() -> None:
    feeder = Feeder()
    feeder.whole(0, key=True)
    assert feeder.whole(2) == []
    assert feeder.whole(3) == []
    assert feeder.whole(1) == [1, 2, 3]
    assert feeder.counts() == (4, 0, 0)


def test_a_complete_key_frame_ahead_ends_the_waiting() -> None:
    feeder = Feeder()
    feeder.whole(0, key=True)
    feeder.part(1, 0, 2)
    feeder.whole(2)
    assert not feeder.part(4, 0, 2, key=True)
    assert feeder.poll() == []
    assert feeder.part(4, 1, 2, key=True)
    assert feeder.poll() == [4]
    # 1 half there and 3 never seen are lost, 2 was complete but without its reference
    assert feeder.counts() == (2, 2, 1)
    assert feeder.whole(5) == [5]


def test_a_missing_reference_is_never_decoded_even_if_it_comes_later() -> None:
    feeder = Feeder()
    feeder.whole(0, key=True)
    feeder.whole(2)
    feeder.whole(3, key=True)
    assert not feeder.part(1, 0, 1)
    assert feeder.poll() == []
    assert feeder.assembler.late_fragments == 1
    assert feeder.out == [0, 3]


def test_of_two_key_frames_ahead_the_first_is_taken_and_the_second_follows_in_turn() -> None:
    feeder = Feeder()
    feeder.whole(0, key=True)
    feeder.part(3, 0, 1, key=True)
    feeder.part(2, 0, 1, key=True)
    assert feeder.poll() == [2, 3]
    assert feeder.counts() == (3, 1, 0)


def test_a_key_frame_in_turn_gives_nothing_up() -> None:
    feeder = Feeder()
    for number in range(4):
        feeder.whole(number, key=True)
    assert feeder.counts() == (4, 0, 0)


def test_after_a_decoder_failure_only_a_key_frame_goes_on() -> None:
    feeder = Feeder()
    feeder.whole(0, key=True)
    feeder.assembler.break_chain()
    assert feeder.whole(1) == []
    assert not feeder.started()
    assert feeder.whole(2, key=True) == [2]
    assert feeder.whole(3) == [3]
    assert feeder.counts() == (3, 0, 1)


@pytest.mark.parametrize("first", [0, 1, 65_530, 65_535])
def test_frame_ids_wrap(first: int) -> None:
    feeder = Feeder()
    for step in range(70_000):
        feeder.whole(first + step, key=step == 0)
    assert feeder.out == [first + step for step in range(70_000)]


def test_reordering_at_the_very_start_across_the_wrap() -> None:
    feeder = Feeder()
    feeder.whole(0)
    feeder.whole(65_535)
    assert feeder.whole(65_534, key=True) == [-2, -1, 0]
    assert feeder.counts() == (3, 0, 0)
    assert feeder.assembler.take_seen() == 3


def test_a_repeated_fragment_changes_nothing() -> None:
    feeder = Feeder()
    assert not feeder.part(0, 0, 2, key=True)
    assert not feeder.part(0, 0, 2, key=True)
    assert feeder.part(0, 1, 2, key=True)
    assert not feeder.part(0, 1, 2, key=True)
    assert feeder.poll() == [0]
    assert not feeder.part(0, 1, 2, key=True)
    assert feeder.assembler.late_fragments == 1
    assert feeder.assembler.completed == 1


@pytest.mark.parametrize(("count", "key"), [(3, True), (2, False)])
def test_a_fragment_that_contradicts_its_frame_is_refused(count: int, key: bool) -> None:
    feeder = Feeder()
    feeder.part(0, 0, 2, key=True)
    with pytest.raises(WireError) as caught:
        feeder.part(0, 1, count, key=key)
    assert caught.value.reason == "video_mismatch"
    assert feeder.part(0, 1, 2, key=True)
    assert feeder.poll() == [0]


def test_closing_ends_every_frame_in_one_count() -> None:
    feeder = Feeder()
    feeder.whole(10, key=True)
    feeder.part(11, 0, 2)
    feeder.whole(12)
    feeder.part(14, 1, 2)
    assert feeder.assembler.take_seen() == 5
    feeder.assembler.close()
    assert feeder.counts() == (1, 3, 1)
    feeder.assembler.close()
    assert feeder.counts() == (1, 3, 1)
    assert feeder.assembler.take_seen() == 0


def test_closing_before_any_frame() -> None:
    assembler = FrameAssembler()
    assembler.close()
    assert (assembler.lost, assembler.skipped, assembler.take_seen()) == (0, 0, 0)


def test_stalled_is_the_time_frames_are_there_and_none_can_leave() -> None:
    feeder = Feeder()
    feeder.whole(0, key=True, now=1.0)
    assert feeder.assembler.stalled_for(5.0) == 0.0
    feeder.whole(2, now=1.5)
    feeder.whole(3, now=2.0)
    assert feeder.assembler.stalled_for(2.25) == 0.75
    feeder.whole(1, now=2.5)
    assert feeder.assembler.stalled_for(9.0) == 0.0
    feeder.part(4, 0, 2, now=3.0)
    feeder.poll(3.0)
    assert feeder.assembler.stalled_for(3.5) == 0.5


def test_the_stall_goes_on_when_only_the_oldest_frames_are_given_up() -> None:
    feeder = Feeder()
    for number in range(frames.MAX_FRAMES + 10):
        feeder.whole(number, now=number / 64)
    assert feeder.assembler.stalled_for(16.0) == 16.0


def test_the_frames_in_the_making_are_bounded_without_a_poll() -> None:
    feeder = Feeder()
    feeder.whole(0, key=True)
    for number in range(2, 2 + 600):
        feeder.part(number, 0, 2)
    # 512 are kept; 1 to 89 were given up
    assert feeder.assembler.lost == 89
    assert not feeder.part(50, 0, 1)
    assert feeder.assembler.late_fragments == 1
    feeder.poll()
    assert feeder.whole(602, key=True) == [602]
    assert feeder.counts() == (2, 601, 0)


def test_a_frame_older_than_all_in_the_making_does_not_push_them_out_twice() -> None:
    feeder = Feeder()
    for number in range(100, 100 + 512):
        feeder.part(number, 0, 2)
    assert not feeder.part(50, 0, 1)
    # 100 was given up for it, and then 50 itself is of the past
    assert feeder.assembler.late_fragments == 1
    assert feeder.assembler.lost == 1


def test_the_bytes_in_the_making_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "MAX_BYTES", 100)
    assembler = FrameAssembler()
    for index in range(9):
        assembler.add((0, 1, index, 300), False, 0, bytes(10), 0.0)
    for index in range(10):
        assembler.add((0, 2, index, 300), False, 0, bytes(10), 0.0)
    # 110 bytes in two frames: the first frame went
    assert assembler.lost == 1
    for index in range(10, 300):
        assert assembler.add((0, 2, index, 300), False, 0, bytes(10), 0.0) is None
    assert assembler.lost == 2
    assert assembler.late_fragments == 300 - 11


def run_of_fragments(first: int, *payloads: bytes) -> Run:
    """Fragments `first` and following of frame 1, which has four."""
    marker = first + len(payloads) == 4
    return Run(98, 0, 0, 1, False, 1, first, 4, marker, list(payloads), sum(map(len, payloads)))


def test_a_run_that_overlaps_what_is_there_adds_the_missing_only() -> None:
    feeder = Feeder()
    feeder.whole(0, key=True)
    assembler = feeder.assembler
    assert assembler.add_run(run_of_fragments(1, b"bb", b"cc"), 1.0) is None
    assert assembler.add_run(run_of_fragments(0, b"aa", b"XX", b"YY"), 2.0) is None
    frame = assembler.add_run(run_of_fragments(2, b"ZZ", b"dd"), 3.0)
    assert frame is not None
    assert b"".join(frame.payloads()) == b"aabbccdd"
    assert frame.completed_at == 3.0
    assert assembler.bytes_held == 8
    assert feeder.poll() == [1]
    assert assembler.bytes_held == 0
    # and of a frame that has left, every fragment is late
    assert assembler.add_run(run_of_fragments(0, b"aa", b"bb"), 4.0) is None
    assert assembler.late_fragments == 2


def test_a_repair_frame_mends_the_chain_if_what_it_refers_to_left() -> None:
    feeder = Feeder()
    feeder.whole(0, key=True)
    feeder.whole(1)
    feeder.whole(3)
    assert feeder.out == [0, 1]
    assert feeder.whole(4, refers=1) == [4]
    assert feeder.whole(5) == [5]
    assert feeder.assembler.repaired == 1
    assert feeder.counts() == (4, 1, 1)


def test_a_repair_frame_that_refers_to_a_frame_never_handed_out_does_not_leave() -> None:
    feeder = Feeder()
    feeder.whole(0, key=True)
    feeder.whole(2)
    assert feeder.whole(3, refers=2) == []
    assert feeder.whole(4, refers=0) == [4]


def test_a_repair_frame_in_its_turn_is_nothing_special() -> None:
    feeder = Feeder()
    feeder.whole(0, key=True)
    assert feeder.whole(1, refers=0) == [1]
    assert feeder.assembler.repaired == 0


def test_after_the_decoder_failed_nothing_it_had_can_be_referred_to() -> None:
    feeder = Feeder()
    feeder.whole(0, key=True)
    feeder.whole(1)
    feeder.assembler.break_chain()
    assert feeder.whole(3, refers=1) == []
    assert feeder.whole(4, key=True) == [4]


def test_references_are_compared_beyond_the_wrap_of_frame_ids() -> None:
    feeder = Feeder()
    feeder.whole(0xFFFE, key=True)
    feeder.whole(0xFFFF)
    assert feeder.whole(0x10001, refers=0xFFFF) == [0x10001]


def test_an_id_far_ahead_is_believed_when_the_next_packet_has_it_too() -> None:
    feeder = Feeder()
    feeder.whole(0, key=True)
    with pytest.raises(WireError, match="599 frames ahead"):
        feeder.part(599, 0, 2, key=True)
    assert feeder.whole(1) == [1]
    with pytest.raises(WireError):
        feeder.part(700, 0, 2, key=True)
    assert not feeder.part(700, 1, 2, key=True)
    assert feeder.part(700, 0, 2, key=True)
    assert feeder.poll() == [700]
