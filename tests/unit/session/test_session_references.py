"""Long-term references: what is stored, when it counts as received, what a hole does."""

from session_parts import SSRC, packet, report

from streamd.media.model import EncodedFrame
from streamd.session.history import SentHistory
from streamd.session.queue import PacketQueue
from streamd.session.references import ReferenceTracker


class Track:
    """Frames of two packets each; frame n has the packets 2n and 2n + 1."""

    def __init__(self) -> None:
        self.history = SentHistory(SSRC)
        self.queue = PacketQueue()
        self.references = ReferenceTracker(self.history, self.queue)
        self.number = 0

    def frame(
        self, *, key: bool = False, store: int | None = None, refer: int | None = None
    ) -> None:
        first = 2 * self.number
        for seq in (first, first + 1):
            self.history.on_sent(packet(seq), 1.0)
        made = EncodedFrame(b"", key, 1.0, store=store, refer=refer)
        self.references.on_frame(made, self.number, first, first + 1)
        self.number += 1

    def plain(self, count: int) -> None:
        for _ in range(count):
            self.frame()

    def acknowledge(self, *frames: int) -> bool:
        for number in frames:
            self.history.on_feedback(report(2 * number, [0, 0], at=1.1), now=1.1)
        return self.references.look()


def test_nothing_is_stored_before_the_first_key_frame() -> None:
    track = Track()
    track.plain(20)
    assert track.references.to_store() is None
    assert track.references.to_refer() is None


def test_an_acknowledged_key_frame_is_a_reference_and_the_other_slot_is_replaced() -> None:
    track = Track()
    track.frame(key=True)
    assert track.references.to_refer() is None
    track.acknowledge(0)
    assert track.references.to_refer() == 0
    assert track.references.frame_no(0) == 0
    track.plain(6)
    assert track.references.to_store() is None
    track.frame()
    assert track.references.to_store() == 1


def test_a_stored_frame_counts_once_all_before_it_arrived() -> None:
    track = Track()
    track.frame(key=True)
    track.plain(7)
    track.acknowledge(0)
    track.frame(store=1)
    track.acknowledge(1, 2, 3, 4, 5, 6, 8)
    assert track.references.to_refer() == 0
    track.acknowledge(7)
    assert track.references.to_refer() == 1
    assert track.references.frame_no(1) == 8


def test_a_slot_that_can_still_be_confirmed_is_left_alone() -> None:
    track = Track()
    track.frame(key=True)
    track.acknowledge(0)
    track.plain(7)
    track.frame(store=1)
    track.plain(9)
    assert track.references.to_store() is None
    track.acknowledge(*range(1, 18))
    # now slot 1 is the younger, and slot 0 is next
    assert track.references.to_store() == 0


def test_a_packet_given_up_is_a_hole_told_once_and_nothing_after_it_counts() -> None:
    track = Track()
    track.frame(key=True)
    track.plain(3)
    track.acknowledge(0, 1, 3)
    track.history.give_up(4)
    assert track.references.look()
    assert not track.references.look()
    assert track.references.to_store() is None
    track.frame(store=1)
    track.acknowledge(4)
    assert track.references.to_refer() == 0


def test_a_packet_thrown_out_of_the_queue_is_a_hole_too() -> None:
    track = Track()
    track.frame(key=True)
    track.acknowledge(0)
    track.queue.push(packet(2))
    track.queue.clear()
    assert track.references.look()


def test_a_repair_frame_begins_a_new_chain() -> None:
    track = Track()
    track.frame(key=True)
    track.plain(2)
    track.acknowledge(0, 2)
    for seq in (2, 3):
        track.history.give_up(seq)
    assert track.references.look()
    track.frame(refer=0)
    track.plain(7)
    assert track.references.to_store() == 1
    track.frame(store=1)
    track.acknowledge(*range(3, 12))
    assert track.references.to_refer() == 1


def test_references_grow_too_old() -> None:
    track = Track()
    track.frame(key=True)
    track.acknowledge(0)
    track.plain(89)
    assert track.references.to_refer() == 0
    track.frame()
    assert track.references.to_refer() is None


def test_another_receiver_has_nothing() -> None:
    track = Track()
    track.frame(key=True)
    track.acknowledge(0)
    track.references.forget()
    assert track.references.to_refer() is None
    assert track.references.to_store() is None
