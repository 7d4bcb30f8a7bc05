"""The send queue, and what is sent again from its front."""

import pytest
from session_parts import SSRC, packet, report, send

from streamd.session.history import SentHistory
from streamd.session.queue import MediaPacket, PacketQueue
from streamd.session.repair import Retransmitter


def queued(seq: int, size: int, frame_time: float) -> MediaPacket:
    return MediaPacket(SSRC, seq, 0, False, bytes(size), frame_time)


def test_first_in_first_out_with_sizes_and_age_of_the_head() -> None:
    queue = PacketQueue()
    assert (len(queue), queue.head_size(), queue.head_time()) == (0, 0, None)
    queue.push(queued(1, 700, 3.0))
    queue.push(queued(2, 500, 4.0))
    assert (len(queue), queue.bytes_queued) == (2, 1200)
    assert (queue.head_size(), queue.head_time()) == (700, 3.0)
    assert queue.head().seq == 1
    first = queue.pop()
    assert first.seq == 1
    assert not first.queued
    assert (queue.bytes_queued, queue.head_time()) == (500, 4.0)


def test_popping_an_empty_queue_is_an_error() -> None:
    with pytest.raises(IndexError):
        PacketQueue().pop()


def test_a_retransmission_goes_to_the_front_and_its_age_starts_anew() -> None:
    queue = PacketQueue()
    queue.push(queued(2, 500, 4.0))
    queue.push_front(packet(1, size=700), 9.0)
    assert queue.head().seq == 1
    assert queue.head().queued
    assert queue.head_time() == 9.0
    assert queue.bytes_queued == 1200


def test_clearing_counts_and_lets_packets_be_queued_again() -> None:
    queue = PacketQueue()
    items = [queued(1, 700, 3.0), queued(2, 500, 3.0)]
    for item in items:
        queue.push(item)
    assert queue.clear() == 2
    assert (len(queue), queue.bytes_queued) == (0, 0)
    assert (queue.discarded_packets, queue.discarded_bytes) == (2, 1200)
    assert queue.discarded_frames == 1
    assert not any(item.queued for item in items)
    assert queue.clear() == 0
    assert queue.take_hole() == 1
    assert queue.take_hole() is None


class Repair:
    """Ten packets sent 10 ms apart from second 1 on, and what repair makes of reports."""

    def __init__(self, *, limit: int = 3, deadline: float = 1.0) -> None:
        self.history = SentHistory(SSRC)
        self.queue = PacketQueue()
        self.retransmitter = Retransmitter(self.history, self.queue, limit=limit, deadline=deadline)
        self.sent = send(self.history, range(0, 10), start=1.0, gap=0.01)

    def acknowledge(self, *seqs: int, now: float) -> None:
        for seq in seqs:
            self.history.on_feedback(report(seq, [0], at=now), now=now)

    def hopeless(self) -> bool:
        return self.retransmitter.hopeless

    def send_again(self, now: float) -> list[int]:
        seqs = []
        while len(self.queue):
            again = self.queue.pop()
            self.history.on_sent(again, now)
            seqs.append(again.seq)
        return seqs


def test_what_was_overtaken_goes_again_in_order_from_the_front() -> None:
    repair = Repair()
    repair.queue.push(queued(10, 100, 1.1))
    repair.acknowledge(0, 4, now=1.2)
    assert repair.retransmitter.on_report(0.05, 1.2) == 3
    assert [repair.queue.pop().seq for _ in range(4)] == [1, 2, 3, 10]


def test_nothing_newer_than_the_newest_acknowledged_is_repaired() -> None:
    repair = Repair()
    assert repair.retransmitter.on_report(0.05, 9.0) == 0
    repair.acknowledge(0, 1, now=1.2)
    assert repair.retransmitter.on_report(0.05, 9.0) == 0


def test_a_packet_in_the_queue_is_not_queued_twice() -> None:
    repair = Repair()
    repair.acknowledge(1, now=1.2)
    assert repair.retransmitter.on_report(0.05, 1.2) == 1
    assert repair.retransmitter.on_report(0.05, 1.5) == 0
    assert len(repair.queue) == 1


def test_a_round_trip_passes_between_transmissions() -> None:
    repair = Repair()
    repair.acknowledge(1, now=1.0625)
    assert repair.retransmitter.on_report(0.125, 1.0625) == 0
    assert repair.retransmitter.on_report(0.125, 1.125) == 1
    assert repair.send_again(1.125) == [0]
    send(repair.history, range(10, 11), start=1.15625, gap=0.0)
    repair.acknowledge(*range(2, 11), now=1.1875)
    assert repair.retransmitter.on_report(0.125, 1.1875) == 0
    assert repair.retransmitter.on_report(0.125, 1.25) == 1


def test_a_report_that_left_before_the_copy_came_does_not_send_another() -> None:
    repair = Repair()
    repair.acknowledge(1, now=1.0625)
    assert repair.retransmitter.on_report(0.0625, 1.0625) == 1
    assert repair.send_again(1.0625) == [0]
    # a round trip later, but everything acknowledged, up to 1.06, left before the copy did
    repair.acknowledge(*range(2, 7), now=1.125)
    assert repair.retransmitter.on_report(0.0625, 1.125) == 0
    repair.acknowledge(7, now=1.140625)
    assert repair.retransmitter.on_report(0.0625, 1.140625) == 1


def test_three_times_and_no_more_then_it_is_given_up_but_can_still_be_named() -> None:
    repair = Repair()
    repair.acknowledge(9, *range(1, 9), now=1.2)
    for at in (1.3, 1.4, 1.5):
        assert repair.retransmitter.on_report(0.05, at) == 1
        assert repair.send_again(at) == [0]
        newer = round(at * 10)
        send(repair.history, range(newer, newer + 1), start=at + 0.01, gap=0.0)
        repair.acknowledge(newer, now=at + 0.03)
    assert repair.retransmitter.on_report(0.05, 1.6) == 0
    assert repair.sent[0].transmissions == 4
    # one sent 30 ms later overtakes the last copy: lost for good, nothing is looked at any more
    send(repair.history, range(16, 17), start=1.6, gap=0.0)
    repair.acknowledge(16, now=1.7)
    assert repair.retransmitter.on_report(0.05, 1.7) == 0
    assert repair.history.overtaken() == {}
    assert repair.history.given_up_count == 1


def test_an_acknowledged_packet_is_never_repaired() -> None:
    repair = Repair()
    repair.acknowledge(1, now=1.2)
    repair.acknowledge(0, now=1.3)
    assert repair.retransmitter.on_report(0.05, 9.0) == 0


def test_limit_zero_switches_repair_off_and_keeps_no_list() -> None:
    repair = Repair(limit=0)
    repair.acknowledge(9, now=1.5)
    assert [item.seq for item in repair.sent if item.lost] == [0, 1, 2, 3, 4, 5]
    assert repair.retransmitter.on_report(0.05, 1.5) == 0
    assert len(repair.queue) == 0
    assert list(repair.history.overtaken()) == [6, 7, 8]


def test_a_discarded_retransmission_is_queued_again_by_the_next_report() -> None:
    repair = Repair()
    repair.acknowledge(1, now=1.2)
    repair.retransmitter.on_report(0.05, 1.2)
    repair.queue.clear()
    assert repair.retransmitter.on_report(0.05, 1.3) == 1


def test_what_would_arrive_after_its_deadline_is_given_up_with_all_behind_it() -> None:
    repair = Repair()
    repair.acknowledge(4, 9, now=1.9375)
    # half a round trip of 50 ms before the deadline of number 0, at 2.0
    assert repair.retransmitter.on_report(0.05, 1.96875) == 8
    repair.queue.clear()
    assert not repair.hopeless()
    assert repair.retransmitter.on_report(0.05, 1.984375) == 0
    assert repair.hopeless()
    assert repair.history.overtaken() == {}
    # told once, and a report can still name them
    repair.retransmitter.hopeless = False
    assert repair.retransmitter.on_report(0.05, 2.5) == 0
    assert not repair.hopeless()
    assert repair.history.given_up_count == 8
    assert repair.history.take_hole() == 0
    assert repair.history.take_hole() is None


def test_the_deadline_can_be_longer() -> None:
    repair = Repair(deadline=2.0)
    repair.acknowledge(9, now=2.5)
    assert repair.retransmitter.on_report(0.0625, 2.5) == 9


def test_the_tail_is_repaired_by_time_and_what_was_overtaken_is_not() -> None:
    repair = Repair()
    repair.acknowledge(0, 1, 5, now=1.1)
    # 150 ms after number 6 left
    assert repair.retransmitter.on_silence(0.05, 1.2125) == 1
    assert repair.queue.head().seq == 6
    assert repair.retransmitter.on_silence(0.05, 1.5) == 3
    assert [repair.queue.pop().seq for _ in range(4)] == [7, 8, 9, 6]


def test_a_packet_lost_out_of_one_run_is_repaired_by_the_rest_of_it() -> None:
    history, queue = SentHistory(SSRC), PacketQueue()
    retransmitter = Retransmitter(history, queue, limit=3)
    send(history, range(0, 4), start=1.0, gap=0.0)
    history.on_feedback(report(0, [0, None, 0, 0], at=1.05), now=1.05)
    assert retransmitter.on_report(0.05, 1.05) == 1
