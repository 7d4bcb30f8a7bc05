"""The ledger: acknowledged, overtaken, lost, forgotten; whatever a report may claim."""

import pytest
from session_parts import SSRC, packet, report, send

from streamd.session import history as history_module
from streamd.session.history import MAX_AGE, MAX_OUTSTANDING, SentHistory
from streamd.wire.ccfb import ATO_OVER_RANGE, ATO_UNAVAILABLE, BlockList, CongestionFeedback

STARTS = [0, 1, 40_000, 65_530, 65_535, 65_536 * 3 + 65_533]


@pytest.mark.parametrize("first", STARTS)
def test_a_report_acknowledges_what_it_names(first: int) -> None:
    history = SentHistory(SSRC)
    sent = send(history, range(first, first + 6), start=10.0, gap=0.0625)
    result = history.on_feedback(report(first, [64, 32, None, 0], at=500.0), now=10.5)
    (stream,) = result.streams
    assert [item.seq for item in stream.acked] == [first, first + 1, first + 3]
    assert stream.end_seq == first + 3
    assert stream.end_received
    assert not stream.repeats
    assert [item.arrived_at for item in stream.acked] == [499.9375, 499.96875, 500.0]
    assert [item.ecn for item in stream.acked] == [1, 1, 1]
    assert [item.acked for item in sent] == [True, True, False, True, False, False]
    assert len(history) == 3
    assert history.highest_acked == first + 3
    assert list(history.overtaken()) == [first + 2]


@pytest.mark.parametrize("first", STARTS)
def test_a_list_may_begin_before_the_first_packet(first: int) -> None:
    history = SentHistory(SSRC)
    send(history, range(first, first + 2), start=0.0, gap=0.0)
    result = history.on_feedback(report(first - 62, [None] * 62 + [8, 0], at=1.0), now=1.0)
    (stream,) = result.streams
    assert [item.seq for item in stream.acked] == [first, first + 1]
    assert history.unsent_count == 0


@pytest.mark.parametrize("first", STARTS)
def test_packets_never_sent_are_counted_and_cut_off(first: int) -> None:
    history = SentHistory(SSRC)
    send(history, range(first, first + 2), start=0.0, gap=0.0)
    result = history.on_feedback(report(first - 2, [5, None, 4, 3, 2, None, 0], at=1.0), now=1.0)
    (stream,) = result.streams
    assert [item.seq for item in stream.acked] == [first, first + 1]
    assert stream.end_seq == first + 1
    assert stream.end_received
    assert history.unsent_count == 3


def test_a_report_wholly_from_the_future_is_no_report() -> None:
    history = SentHistory(SSRC)
    send(history, range(100, 110), start=0.0, gap=0.0)
    assert history.on_feedback(report(110, [0, 0], at=1.0), now=1.0).streams == []
    assert history.on_feedback(report(110 + 32_000, [0], at=1.0), now=1.0).streams == []
    assert history.unsent_count == 3
    assert len(history) == 10


def test_before_anything_was_sent_every_block_is_unsent() -> None:
    history = SentHistory(SSRC)
    assert history.on_feedback(report(7, [0, None, 0], at=1.0), now=1.0).streams == []
    assert history.unsent_count == 2


def test_lists_of_other_sources_and_empty_lists() -> None:
    history = SentHistory(SSRC)
    send(history, range(0, 2), start=0.0, gap=0.0)
    foreign = report(0, [0, 0], at=1.0, ssrc=99)
    assert history.on_feedback(foreign, now=1.0).streams == []
    assert history.foreign_lists == 1
    empty = CongestionFeedback(1, [BlockList(SSRC, 0, [])], 65536)
    assert history.on_feedback(empty, now=1.0).streams == []
    assert len(history) == 2


def test_a_repeated_report_says_nothing_new() -> None:
    history = SentHistory(SSRC)
    send(history, range(0, 4), start=0.0, gap=0.0)
    again = report(0, [1, 0], at=1.0)
    history.on_feedback(again, now=1.0)
    (stream,) = history.on_feedback(again, now=1.1).streams
    assert stream.acked == []
    assert stream.repeats
    assert stream.end_received
    assert history.highest_acked == 1
    assert history.unsent_count == 0


def test_lists_overlap_and_only_the_new_part_acknowledges() -> None:
    history = SentHistory(SSRC)
    send(history, range(0, 8), start=0.0, gap=0.0)
    history.on_feedback(report(0, [3, None, 1, 0], at=1.0), now=1.0)
    (stream,) = history.on_feedback(report(0, [9, 8, 7, 6, 1, None, 0], at=1.1), now=1.1).streams
    assert [item.seq for item in stream.acked] == [1, 4, 6]
    assert stream.repeats
    assert list(history.overtaken()) == [5]


def test_several_lists_of_one_source_are_reports_of_their_own() -> None:
    history = SentHistory(SSRC)
    send(history, range(0, 6), start=0.0, gap=0.0)
    first, second = report(0, [2, 1], at=1.0), report(2, [None, 0], at=1.0)
    both = CongestionFeedback(1, first.lists + second.lists, first.timestamp)
    result = history.on_feedback(both, now=1.0)
    assert [[item.seq for item in stream.acked] for stream in result.streams] == [[0, 1], [3]]
    assert [stream.end_seq for stream in result.streams] == [1, 3]


def test_a_late_report_still_acknowledges_and_moves_nothing_back() -> None:
    history = SentHistory(SSRC)
    send(history, range(0, 8), start=0.0, gap=0.0)
    history.on_feedback(report(4, [1, 0], at=1.1), now=1.1)
    assert list(history.overtaken()) == [0, 1, 2, 3]
    (stream,) = history.on_feedback(report(0, [1, 0], at=1.0), now=1.2).streams
    assert [item.seq for item in stream.acked] == [0, 1]
    assert stream.end_seq == 1
    assert history.highest_acked == 5
    assert list(history.overtaken()) == [2, 3]


def test_lost_is_what_was_overtaken_by_a_packet_sent_30_ms_later() -> None:
    history = SentHistory(SSRC)
    send(history, range(0, 5), start=1.0, gap=0.015625)
    (stream,) = history.on_feedback(report(0, [None, None, 0], at=5.0), now=1.1).streams
    # 31.25 ms and 15.625 ms before the newest acknowledged
    assert [item.seq for item in stream.lost] == [0]
    assert stream.lost[0].lost
    (stream,) = history.on_feedback(report(3, [0], at=5.1), now=1.2).streams
    assert [item.seq for item in stream.lost] == [1]
    (stream,) = history.on_feedback(report(4, [0], at=5.2), now=1.3).streams
    assert stream.lost == []
    # both are still waited for
    (stream,) = history.on_feedback(report(0, [100, 100], at=5.3), now=1.4).streams
    assert [item.seq for item in stream.acked] == [0, 1]
    assert history.overtaken() == {}
    assert len(history) == 0


def test_a_retransmission_is_lost_again_only_by_packets_sent_after_it() -> None:
    history = SentHistory(SSRC)
    sent = send(history, range(0, 2), start=1.0, gap=0.0625)
    (stream,) = history.on_feedback(report(1, [0], at=5.0), now=1.2).streams
    assert stream.lost == [sent[0]]
    history.on_sent(sent[0], 1.25)
    assert not sent[0].lost
    assert sent[0].transmissions == 2
    assert sent[0].first_sent_at == 1.0
    send(history, range(2, 4), start=1.265625, gap=0.0625)
    (stream,) = history.on_feedback(report(2, [0], at=5.2), now=1.4).streams
    assert stream.lost == []
    (stream,) = history.on_feedback(report(3, [0], at=5.3), now=1.5).streams
    assert stream.lost == [sent[0]]


def test_a_packet_given_up_can_still_be_acknowledged() -> None:
    history = SentHistory(SSRC)
    sent = send(history, range(0, 2), start=1.0, gap=0.0625)
    history.on_feedback(report(1, [0], at=5.0), now=1.2)
    history.give_up(0)
    assert history.overtaken() == {}
    assert not history.awaits(sent[0])
    assert (len(history), history.given_up_count) == (0, 1)
    assert history.network_loss(9.0, 1.0) == (1, 2)
    (stream,) = history.on_feedback(report(0, [0], at=5.2), now=1.4).streams
    assert stream.acked == [sent[0]]
    assert (history.given_up_count, history.first_lost_count) == (0, 0)


def test_packets_given_up_are_forgotten_as_lost_in_time() -> None:
    history = SentHistory(SSRC)
    send(history, range(0, 3), start=1.0, gap=0.0)
    history.on_feedback(report(2, [0], at=5.0), now=1.2)
    history.give_up(0)
    history.give_up(1)
    history.expire(10.9)
    assert history.given_up_count == 2
    history.expire(11.0)
    assert history.given_up_count == 0
    assert history.first_lost_count == 2


def test_packets_given_up_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_module, "MAX_OUTSTANDING", 100)
    history = SentHistory(SSRC)
    for batch in range(3):
        send(history, range(90 * batch, 90 * batch + 90), start=1.0, gap=0.0)
        history.on_feedback(report(90 * batch + 89, [0], at=5.0), now=1.2)
        for seq in list(history.overtaken()):
            history.give_up(seq)
    assert history.given_up_count == 100
    assert history.first_lost_count == 3 * 89 - 100
    history.forget()
    assert history.given_up_count == 0
    assert history.first_lost_count == 3 * 89


# --- network loss: first transmissions ---------------------------------------------------------


def warmed_up() -> SentHistory:
    """A path with a one-way delay of 250 ms at least, on a receiver clock 100 s ahead."""
    history = SentHistory(SSRC)
    history.on_sent(packet(0), 0.0)
    history.on_feedback(report(0, [0], at=100.25), now=0.5)
    return history


def test_a_repaired_packet_stays_a_network_loss() -> None:
    history = warmed_up()
    lost = packet(1)
    history.on_sent(lost, 1.0)
    history.on_sent(lost, 1.5)
    history.on_feedback(report(1, [0], at=101.75), now=2.0)
    assert history.first_lost_count == 1
    assert history.network_loss(9.0, 1.0) == (1, 2)


def test_a_spurious_retransmission_is_no_network_loss() -> None:
    history = warmed_up()
    late = packet(1)
    history.on_sent(late, 1.0)
    history.on_sent(late, 1.5)
    # arrived at 101.625: 125 ms after the copy left, less than any packet ever took
    history.on_feedback(report(1, [128], at=101.75), now=2.0)
    assert history.first_lost_count == 0
    assert history.network_loss(9.0, 1.0) == (0, 2)


def test_the_second_of_three_transmissions_arrived() -> None:
    history = warmed_up()
    lost = packet(1)
    for at in (1.0, 1.5, 2.0):
        history.on_sent(lost, at)
    # too early for the third, not for the second: the first was lost
    history.on_feedback(report(1, [0], at=102.0), now=2.5)
    assert history.first_lost_count == 1


def test_the_arrival_of_an_earlier_transmission_is_measured_from_that_one() -> None:
    history = warmed_up()
    late = packet(1)
    for at in (1.0, 1.5, 2.0):
        history.on_sent(late, at)
    # 101.5: before the second could be there; 500 ms after the first left
    (stream,) = history.on_feedback(report(1, [0], at=101.5), now=2.5).streams
    assert stream.acked[0].arrived_at - stream.acked[0].sent_at == 100.5
    again = packet(2)
    for at in (3.0, 3.5, 4.0):
        history.on_sent(again, at)
    # 104.0: the second, after 500 ms
    (stream,) = history.on_feedback(report(2, [0], at=104.0), now=4.5).streams
    assert stream.acked[0].arrived_at - stream.acked[0].sent_at == 100.5
    last = packet(3)
    for at in (5.0, 5.5, 6.0):
        history.on_sent(last, at)
    # 106.5: nothing speaks against the last one
    (stream,) = history.on_feedback(report(3, [0], at=106.5), now=7.0).streams
    assert stream.acked[0].arrived_at - stream.acked[0].sent_at == 100.5


def test_packets_sent_within_the_margin_are_left_out_and_older_ones_are_lost() -> None:
    history = SentHistory(SSRC)
    send(history, range(0, 10), start=0.0, gap=1.0)
    history.on_feedback(report(0, [0] * 4, at=4.0), now=4.0)
    assert history.network_loss(9.5, 2.0) == (4, 8)


def test_nothing_sent_nothing_lost() -> None:
    assert SentHistory(SSRC).network_loss(9.0, 1.0) == (0, 0)


# --- arrival times the format cannot carry -----------------------------------------------------


def test_an_arrival_without_a_time_is_taken_as_now() -> None:
    history = SentHistory(SSRC)
    send(history, range(0, 1), start=0.0, gap=0.0)
    (stream,) = history.on_feedback(report(0, [ATO_UNAVAILABLE], at=50.0), now=1.0).streams
    assert stream.acked[0].arrived_at == 50.0


def test_an_arrival_beyond_the_range_is_long_ago() -> None:
    history = SentHistory(SSRC)
    send(history, range(0, 1), start=0.0, gap=0.0)
    (stream,) = history.on_feedback(report(0, [ATO_OVER_RANGE], at=50.0), now=1.0).streams
    assert stream.acked[0].arrived_at == 50.0 - 8190 / 1024


@pytest.mark.parametrize("offset", [ATO_UNAVAILABLE, ATO_OVER_RANGE])
def test_arrivals_without_a_time_do_not_spoil_the_smallest_delay(offset: int) -> None:
    history = warmed_up()
    history.on_sent(packet(1), 1.0)
    history.on_feedback(report(1, [offset], at=101.25), now=1.5)
    late = packet(2)
    history.on_sent(late, 2.0)
    history.on_sent(late, 2.5)
    history.on_feedback(report(2, [128], at=102.75), now=3.0)
    assert history.first_lost_count == 0


# --- bounds ------------------------------------------------------------------------------------


def test_the_ledger_is_bounded_and_forgets_the_oldest_as_lost() -> None:
    history = SentHistory(SSRC)
    sent = send(history, range(0, MAX_OUTSTANDING + 3), start=0.0, gap=0.0)
    assert len(history) == 16_384
    assert not history.awaits(sent[2])
    assert history.awaits(sent[3])
    assert history.first_lost_count == 3
    assert history.network_loss(0.0, 1.0) == (3, 3)


def test_a_forgotten_packet_is_not_lost_twice_and_a_late_report_of_it_a_repeat() -> None:
    history = SentHistory(SSRC)
    send(history, range(0, 3), start=0.0, gap=0.0)
    history.forget()
    assert len(history) == 0
    assert history.first_lost_count == 3
    (stream,) = history.on_feedback(report(0, [0, 0], at=1.0), now=1.0).streams
    assert stream.acked == []
    assert stream.repeats
    assert history.first_lost_count == 3


def test_packets_unanswered_for_ten_seconds_are_forgotten() -> None:
    history = SentHistory(SSRC)
    send(history, range(0, 3), start=0.0, gap=1.0)
    oldest = history.oldest()
    assert oldest is not None
    assert oldest.sent_at == 0.0
    history.expire(MAX_AGE - 0.125)
    assert len(history) == 3
    history.expire(MAX_AGE)
    assert len(history) == 2
    history.on_feedback(report(2, [0], at=1.0), now=10.5)
    assert list(history.overtaken()) == [1]
    history.expire(11.0)
    assert history.overtaken() == {}
    assert history.oldest() is None
    assert history.first_lost_count == 2


def test_overtaken_packets_are_found_after_a_jump_over_many() -> None:
    history = SentHistory(SSRC)
    send(history, range(60_000, 70_000), start=0.0, gap=0.0)
    history.on_feedback(report(69_999, [0], at=1.0), now=1.0)
    assert len(history.overtaken()) == 9_999
    words: list[int | None] = [1] * 9_000
    (stream,) = history.on_feedback(report(60_000, words, at=1.1), now=1.1).streams
    assert len(stream.acked) == 9_000
    assert len(history.overtaken()) == 999
