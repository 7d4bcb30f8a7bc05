"""Key-frame requests: one answer for all, the bounds, the loss delay, receivers that insist."""

import pytest

from streamd.session.keyframes import Cause, KeyframeOptions, KeyframePolicy

RATE = 1e9
"""A target (bit/s) at which no key frame costs anything."""


class Heard(KeyframePolicy):
    """One whose peer acknowledges all the time."""

    def take(self, now: float, target_bps: float) -> frozenset[str]:
        self.on_report()
        return super().take(now, target_bps)


def answers(**taken: int) -> dict[str, int]:
    none = dict.fromkeys(("target", "loss", "unacked", "periodic", "receiver"), 0)
    return {**none, **taken}


def test_nothing_asked_nothing_taken() -> None:
    assert not KeyframePolicy().take(5.0, RATE)


def test_a_target_request_is_answered_by_the_next_frame_once() -> None:
    policy = Heard()
    policy.on_decision(True, False, 1.0)
    assert policy.take(1.0, RATE) == {"target"}
    assert not policy.take(2.0, RATE)
    assert policy.taken == answers(target=1)


def test_never_two_within_a_tenth_of_a_second_and_the_request_waits() -> None:
    policy = Heard()
    policy.on_decision(True, False, 1.0)
    assert policy.take(1.0, RATE)
    policy.on_decision(True, False, 1.0625)
    assert not policy.take(1.0625, RATE)
    assert not policy.take(1.09375, RATE)
    assert policy.take(1.125, RATE)
    assert policy.taken["target"] == 2


def test_the_guard_counts_key_frames_nobody_asked_for() -> None:
    policy = Heard()
    policy.on_keyframe(1000, 1.0)
    policy.on_decision(True, False, 1.03125)
    assert not policy.take(1.03125, RATE)
    assert policy.take(1.125, RATE)


def test_the_guard_can_be_longer() -> None:
    policy = Heard(KeyframeOptions(interval=0.5))
    policy.on_keyframe(1000, 1.0)
    policy.on_decision(True, False, 1.25)
    assert not policy.take(1.4375, RATE)
    assert policy.take(1.5, RATE)


def test_key_frames_take_no_more_than_their_share_of_the_rate_for_long() -> None:
    policy = Heard(KeyframeOptions(share=0.25))
    taken = []
    for frame in range(160):
        now = frame / 8
        policy.on_decision(True, False, now)
        if policy.take(now, 400_000):
            policy.on_keyframe(10_000, now)  # 80 kbit: 0.8 s of a quarter of the rate
            taken.append(now)
    # two at once are within the credit of 1 s; then one in 0.8 s, as the frames fall
    assert taken[:4] == [0.0, 0.125, 0.625, 1.5]
    assert len(taken) == 27  # the first, and (20 + 1) s of debt at 0.8 s each


def test_a_rate_that_rises_makes_the_next_ones_cheaper() -> None:
    policy = Heard(KeyframeOptions(share=0.25))
    taken = []
    for frame in range(40):
        now = frame / 8
        policy.on_decision(True, False, now)
        if policy.take(now, 4_000_000):
            policy.on_keyframe(10_000, now)
            taken.append(now)
    assert taken[:8] == [0.0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875]


def test_however_large_the_last_one_was_the_next_may_come_after_two_seconds() -> None:
    policy = Heard()
    assert not policy.take(1.0, 100_000)
    policy.on_keyframe(1_000_000, 1.0)
    policy.on_decision(True, False, 1.5)
    assert not policy.take(2.9375, 100_000)
    assert policy.take(3.0, 100_000)


def test_for_long_there_are_no_more_than_two_per_second() -> None:
    policy = Heard()
    taken = 0
    for frame in range(32 * 60):
        now = frame / 32
        policy.on_decision(True, True, now)
        if policy.take(now, RATE):
            policy.on_keyframe(1000, now)
            taken += 1
    assert taken == 127  # 8, and 2 per second until just before the minute is over


def test_in_an_outage_the_next_one_waits_for_a_second() -> None:
    policy = KeyframePolicy()
    taken = []
    for frame in range(33):
        now = 1.0 + frame / 8
        policy.on_decision(True, False, now)
        if policy.take(now, RATE):
            taken.append(now)
    assert taken == [1.0, 2.0, 3.0, 4.0, 5.0]


def test_the_first_report_after_an_outage_ends_the_wait() -> None:
    policy = KeyframePolicy()
    policy.on_keyframe(1000, 1.0)
    policy.on_decision(True, False, 1.25)
    assert not policy.take(1.25, RATE)
    policy.on_report()
    assert policy.take(1.28125, RATE) == {"target"}


def test_a_loss_epoch_is_answered_a_tenth_of_a_second_later() -> None:
    policy = Heard()
    policy.on_decision(False, True, 2.0)
    assert not policy.take(2.0, RATE)
    assert not policy.take(2.09375, RATE)
    # a later epoch does not push the answer away
    policy.on_decision(False, True, 2.0625)
    assert policy.take(2.125, RATE)
    assert not policy.take(2.5, RATE)
    assert policy.taken == answers(loss=1)


def test_a_packet_unacknowledged_for_a_second_asks_once() -> None:
    policy = Heard()
    policy.on_outstanding(7, sent_at=1.0, now=2.0)
    assert not policy.take(2.0, RATE)
    policy.on_outstanding(7, sent_at=1.0, now=2.0625)
    assert policy.take(2.0625, RATE) == {"unacked"}
    policy.on_outstanding(7, sent_at=1.0, now=4.0)
    assert not policy.take(4.0, RATE)
    policy.on_outstanding(9, sent_at=2.0625, now=4.0)
    assert policy.take(4.0, RATE) == {"unacked"}
    assert policy.taken == answers(unacked=2)


def test_periodic_key_frames_keep_their_beat_whatever_comes_between() -> None:
    policy = Heard(KeyframeOptions(period=1.0))
    taken = []
    for frame in range(17):
        now = 10.0 + frame / 4
        policy.on_decision(frame == 6, False, now)
        if policy.take(now, RATE):
            taken.append(now)
    assert taken == [11.0, 11.5, 12.0, 13.0, 14.0]
    assert policy.taken == answers(periodic=4, target=1)


def test_a_source_that_paused_gets_one_periodic_key_frame_not_one_for_each_missed() -> None:
    policy = Heard(KeyframeOptions(period=1.0))
    assert not policy.take(0.0, RATE)
    assert policy.take(7.5, RATE)
    assert not policy.take(7.75, RATE)
    assert policy.take(8.0, RATE)


def test_one_key_frame_answers_every_cause_also_a_loss_still_in_its_delay() -> None:
    policy = Heard()
    policy.on_decision(True, True, 3.0)
    policy.on_receiver_request(3.0)
    assert policy.take(3.0, RATE) == {"target", "loss", "receiver"}
    assert policy.taken == answers(target=1, loss=1, receiver=1)
    assert not policy.take(3.5, RATE)


def test_an_unasked_key_frame_answers_what_was_pending() -> None:
    policy = Heard()
    policy.on_receiver_request(1.0)
    policy.on_keyframe(1000, 1.03125)
    assert policy.taken["receiver"] == 1
    assert not policy.take(2.0, RATE)


def test_a_receiver_is_answered_at_once_and_then_every_three_tenths() -> None:
    policy = Heard()
    answered = []
    for frame in range(33):
        now = frame / 32
        policy.on_receiver_request(now)
        policy.on_receiver_request(now)
        if policy.take(now, RATE):
            policy.on_keyframe(1000, now)
            answered.append(now)
    # 0.3 s is 9.6 frames of 1/32 s
    assert answered == [0.0, 0.3125, 0.625, 0.9375]


@pytest.mark.parametrize("cause", ["target", "loss", "unacked"])
def test_causes_can_be_switched_off(cause: Cause) -> None:
    policy = Heard(KeyframeOptions(causes=KeyframeOptions().causes - {cause}))
    policy.on_decision(cause == "target", cause == "loss", 1.0)
    policy.on_outstanding(1, sent_at=1.0 if cause == "unacked" else 9.0, now=9.0)
    assert not policy.take(9.0, RATE)
    policy.on_receiver_request(9.0)
    assert policy.take(9.0, RATE)
