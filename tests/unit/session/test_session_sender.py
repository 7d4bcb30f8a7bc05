"""The sender session: frames to runs, its reports, and when it asks for a key frame."""

import pytest
from session_parts import SSRC
from session_sender_rig import RATE, Rig, Scripted

from streamd.wire.rtcp import FullIntraRequest, PictureLossIndication, SenderReport, encode_compound

# --- sending -----------------------------------------------------------------------------------


def test_a_frame_leaves_paced_in_two_thirds_of_its_time() -> None:
    rig = Rig()
    # 25 fps at 1.2 Mbit/s: 6000 bytes every 40 ms, 5 packets of 1224 and one of 124
    rig.frame(6000 - 5 * 24 - 24)
    rig.until(10.04)
    assert [seq for _, seq in rig.media] == list(range(5))
    times = [at - 10.0 for at, _ in rig.media]
    gap = 1224 * 8 / (1.5 * RATE)
    assert times == pytest.approx([0.0, gap, 2 * gap, 3 * gap, 4 * gap])


def test_packets_closer_than_a_quantum_leave_in_runs_of_equal_size() -> None:
    rig = Rig(rate=40_000_000)
    rig.frame(12_000)
    rig.until(10.01)
    # 60 Mbit/s pacing: a packet of 1224 bytes takes 0.1632 ms, four start within 0.5 ms
    assert rig.runs == [[1224] * 4, [1224] * 4, [1224] * 2]
    assert [at for at, seq in rig.media if seq in (4, 8)] == pytest.approx([10.0006528, 10.0013056])
    assert rig.session.stats.packets == 10
    assert rig.session.stats.bytes == 12_240


def test_a_shorter_last_packet_ends_its_run_and_a_longer_one_starts_another() -> None:
    rig = Rig(rate=400_000_000)
    rig.frame(2500)
    rig.frame(2500)
    rig.until(10.01)
    assert rig.runs == [[1224, 1224, 124], [1224, 1224, 124]]


def test_a_run_is_bounded() -> None:
    rig = Rig(controller=Scripted())
    rig.frame(1200 * 100)
    assert [len(run) for run in rig.runs] == [48, 48, 4]


def test_the_recommended_size_is_heeded_within_bounds() -> None:
    controller = Scripted()
    rig = Rig(controller=controller)
    controller.mss = 500
    rig.frame(1000)
    controller.mss = 9000
    rig.frame(1200)
    controller.mss = 0
    rig.frame(3)
    assert rig.runs == [[524, 524], [1224], [25, 25, 25]]


def test_the_window_blocks_until_a_report_without_asking_for_the_past() -> None:
    controller = Scripted()
    controller.may = None
    rig = Rig(controller=controller)
    rig.frame(3000)
    rig.until(11.0)
    assert rig.media == []
    controller.may = 0.0
    rig.feedback(0, [0])
    assert len(rig.media) == 3


def test_a_controllers_own_time_far_ahead_is_waited_for() -> None:
    controller = Scripted()
    controller.may = 10.25
    rig = Rig(controller=controller)
    rig.frame(1200)
    rig.until(10.2)
    assert rig.media == []
    controller.may = 10.25
    rig.until(10.3)
    assert [at for at, _ in rig.media] == [10.25]


def test_the_controllers_timeouts_are_kept() -> None:
    controller = Scripted()
    controller.due = 10.0125
    rig = Rig(controller=controller)
    rig.until(10.01)
    assert controller.timeouts == 0
    rig.until(10.02)
    assert controller.timeouts == 1


def test_the_encoder_may_drop_a_frame() -> None:
    rig = Rig()
    rig.session.handle_frame(None, now=10.0)
    assert rig.session.stats.frames_dropped_by_encoder == 1
    assert rig.session.stats.started_at == 10.0
    rig.frame(10, key=True)
    rig.frame(10)
    assert (rig.session.stats.frames_key, rig.session.stats.frames_delta) == (1, 1)
    assert rig.session.stats.frame_bytes == 20


def test_a_queue_nobody_serves_is_bounded_and_ends_in_a_key_frame() -> None:
    controller = Scripted()
    controller.may = None
    rig = Rig(controller=controller)
    for _ in range(12):
        plan = rig.frame(12_000)
        rig.until(rig.now + 1.0)
    assert plan.keyframe is False
    assert rig.session.stats.discarded_packets == 110
    assert rig.frame().keyframe
    assert rig.session.stats.keyframe_requests["target"] == 1


# --- sender reports ----------------------------------------------------------------------------


def test_a_sender_report_goes_before_the_first_packet_and_then_every_second() -> None:
    rig = Rig()
    rig.until(13.0)
    assert rig.control == []
    rig.frames(96, 1 / 32)
    times = [at for at, _ in rig.control]
    assert times[0] == 13.0
    assert len(times) == 3
    first = rig.control[0][1][0]
    assert isinstance(first, SenderReport)
    assert (first.ssrc, first.packet_count, first.octet_count) == (SSRC, 0, 0)
    assert first.rtp_timestamp == 13 * 90_000
    last = rig.control[-1][1][0]
    assert isinstance(last, SenderReport)
    assert last.octet_count == last.packet_count * 1200


# --- key frames --------------------------------------------------------------------------------


def test_pli_and_fir_for_our_stream_ask_for_a_key_frame() -> None:
    rig = Rig()
    assert not rig.frame().keyframe
    rig.give(encode_compound([PictureLossIndication(1, 99)]))
    assert not rig.frame().keyframe
    rig.give(encode_compound([PictureLossIndication(1, SSRC)]))
    assert rig.frame(key=True).keyframe
    rig.until(11.0)
    rig.give(encode_compound([FullIntraRequest(1, [(99, 1), (SSRC, 2)])]))
    assert rig.frame(key=True).keyframe
    assert rig.session.stats.keyframe_requests["receiver"] == 2


def test_a_key_frame_nobody_asked_for_keeps_a_receiver_waiting_too() -> None:
    rig = Rig()
    rig.frame(key=True)
    rig.until(10.125)
    rig.give(encode_compound([PictureLossIndication(1, SSRC)]))
    assert not rig.frame().keyframe
    rig.until(10.3125)
    assert rig.frame().keyframe


def test_a_negative_target_and_a_loss_epoch_ask_for_one_key_frame() -> None:
    controller = Scripted()
    rig = Rig(controller=controller)
    controller.wanted = controller.loss_epoch = True
    asked = []
    for _ in range(16):
        asked.append(rig.frame().keyframe)
        rig.until(rig.now + 1 / 32)
    assert asked == [True] + [False] * 15


def test_packets_unacknowledged_for_a_second_are_given_up_for_a_key_frame() -> None:
    rig = Rig(rate=12_000)
    rig.frame(12_000)
    rig.until(10.0625)
    rig.feedback(0, [0])
    rig.until(11.5625)
    sent = len(rig.media)
    assert 0 < sent < 10
    assert rig.frame(key=True).keyframe
    assert rig.session.stats.keyframe_requests["unacked"] == 1
    rig.until(12.25)
    assert rig.session.stats.discarded_packets == 10 - sent
    assert [seq for _, seq in rig.media] == [*range(sent), 10]
    # a late report of what was given up is still understood
    rig.feedback(1, [0] * (sent - 1))
    assert rig.session.network_loss(now=20.0) == (1, sent + 1)
