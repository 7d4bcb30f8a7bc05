"""Key-frame requests: one answer for all, the guard time, the loss delay, receivers that insist."""

from streamd.session.keyframes import KeyframePolicy


def test_nothing_asked_nothing_taken() -> None:
    assert not KeyframePolicy().take(5.0)


def test_a_target_request_is_answered_by_the_next_frame_once() -> None:
    policy = KeyframePolicy()
    policy.on_decision(True, False, 1.0)
    assert policy.take(1.0)
    assert not policy.take(2.0)
    assert policy.taken == {"target": 1, "loss": 0, "receiver": 0}


def test_never_two_within_a_tenth_of_a_second_and_the_request_waits() -> None:
    policy = KeyframePolicy()
    policy.on_decision(True, False, 1.0)
    assert policy.take(1.0)
    policy.on_decision(True, False, 1.0625)
    assert not policy.take(1.0625)
    assert not policy.take(1.09375)
    assert policy.take(1.125)
    assert policy.taken["target"] == 2


def test_the_guard_counts_key_frames_nobody_asked_for() -> None:
    policy = KeyframePolicy()
    policy.on_keyframe(1.0)
    policy.on_decision(True, False, 1.03125)
    assert not policy.take(1.03125)
    assert policy.take(1.125)


def test_the_guard_can_be_longer() -> None:
    policy = KeyframePolicy(min_interval=0.5)
    policy.on_keyframe(1.0)
    policy.on_decision(True, False, 1.25)
    assert not policy.take(1.4375)
    assert policy.take(1.5)


def test_a_loss_epoch_is_answered_a_tenth_of_a_second_later() -> None:
    policy = KeyframePolicy()
    policy.on_decision(False, True, 2.0)
    assert not policy.take(2.0)
    assert not policy.take(2.09375)
    # a later epoch does not push the answer away
    policy.on_decision(False, True, 2.0625)
    assert policy.take(2.125)
    assert not policy.take(2.5)
    assert policy.taken == {"target": 0, "loss": 1, "receiver": 0}


def test_one_key_frame_answers_every_cause_also_a_loss_still_in_its_delay() -> None:
    policy = KeyframePolicy()
    policy.on_decision(True, True, 3.0)
    policy.on_receiver_request(3.0)
    assert policy.take(3.0)
    assert policy.taken == {"target": 1, "loss": 1, "receiver": 1}
    assert not policy.take(3.5)


def test_an_unasked_key_frame_answers_what_was_pending() -> None:
    policy = KeyframePolicy()
    policy.on_receiver_request(1.0)
    policy.on_keyframe(1.03125)
    assert policy.taken["receiver"] == 1
    assert not policy.take(2.0)


def test_a_receiver_is_answered_at_once_and_then_every_three_tenths() -> None:
    policy = KeyframePolicy()
    answered = []
    for frame in range(33):
        now = frame / 32
        policy.on_receiver_request(now)
        policy.on_receiver_request(now)
        if policy.take(now):
            policy.on_keyframe(now)
            answered.append(now)
    # 0.3 s is 9.6 frames of 1/32 s
    assert answered == [0.0, 0.3125, 0.625, 0.9375]


def test_causes_can_be_switched_off() -> None:
    policy = KeyframePolicy(on_target=False, on_loss=False)
    policy.on_decision(True, True, 1.0)
    assert not policy.take(9.0)
    policy.on_receiver_request(9.0)
    assert policy.take(9.0)
