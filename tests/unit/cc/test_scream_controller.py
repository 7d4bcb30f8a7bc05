"""The controller as a session sees it: clock, start, deadlock, timeouts, and its spec."""

import random
from dataclasses import fields

import pytest
from scream_parts import LIMITS, TICK, ListQueue, Rig

from streamd.cc.api import Controller, FeedbackReport, Limits, SentPacket, StreamReport
from streamd.cc.scream import SPEC, ScreamConfig, ScreamController
from streamd.ecn import CE, ECT0, ECT1, NOT_ECT
from streamd.errors import ConfigError, LocalMisuse

FRAME = 1311
WEEKS = 30 * 86400.0


def run(
    rig: Rig, frames: int, *, mark_every: int = 0, lose_every: int = 0
) -> list[tuple[float, ...]]:
    """Frames at the rate asked for, sent as allowed, reported 10 ms later."""
    log = []
    count = 0
    for number in range(frames):
        t = 65 + number * FRAME
        decision = rig.controller.decision(100, now=rig.time(t))
        left = int(decision.target_bps / 50 / 8)
        sizes = [1212] * (left // 1200) + [left % 1200 + 12]
        rig.frame(t, sizes)
        sent = []
        for step in range(0, FRAME - 50, 30):
            sent += rig.send_all(t + step)
        kept = []
        for packet in sent:
            count += 1
            if not lose_every or count % lose_every:
                kept.append(packet)
        if kept:
            marked = bool(mark_every) and number % mark_every == 0
            rig.report(t + FRAME - 20, kept, ecn=CE if marked else ECT1)
        stats = rig.controller.stats(100)
        log.append((decision.target_bps, stats.bytes_in_flight, *stats.extra.values()))
    return log


@pytest.mark.parametrize(
    ("start", "first_seq", "first_rtp"),
    [
        (WEEKS, 0, 0),
        (0.0, 65_500, 0),
        (0.0, 1 << 40, 4_294_900_000),
        (WEEKS, 40_000, 3_000_000_000),
    ],
)
def test_random_starts_and_weeks_change_nothing(
    start: float, first_seq: int, first_rtp: int
) -> None:
    """Sequence numbers, RTP time and the clock may start anywhere, and wrap on the way."""
    plain = run(Rig(), 150, mark_every=7, lose_every=40)
    moved = run(
        Rig(start=start, first_seq=first_seq, first_rtp=first_rtp), 150, mark_every=7, lose_every=40
    )
    assert moved == plain
    assert plain[-1][0] > 1_500_000


def test_nothing_is_discarded_at_the_start() -> None:
    for offset in range(0, 6600, 60):
        rig = Rig()
        rig.frame(65 + offset, [1000])
        assert len(rig.queue) == 1


def test_rate_rises_on_a_clean_path_and_falls_on_marks() -> None:
    clean = run(Rig(), 200)[-1][0]
    marked = run(Rig(), 200, mark_every=1)[-1][0]
    assert clean > 2 * LIMITS.start_bps
    assert marked < 0.7 * clean


def test_window_blocks_and_the_deadlock_breaker_opens_it() -> None:
    rig = Rig()
    rig.frame(65, [1212] * 100)
    sent = rig.send_all(65)
    # 12500 bytes of start window, five times that of headroom, one packet
    assert len(sent) == (12_500 * 5 + 1212) // 1212
    assert rig.controller.may_send(100, 1212, now=rig.time(70)) is None
    due = rig.controller.next_timeout()
    assert due is not None
    assert due < rig.time(65 + 6553 + 3)
    t = 65 + 32768
    rig.controller.on_timeout(now=rig.time(t))
    due = rig.controller.next_timeout()
    assert due is not None
    assert rig.time(t) < due < rig.time(t + 3)
    assert rig.send(t) is None
    rig.controller.on_timeout(now=rig.time(t + 1))
    assert rig.send(t + 1) is not None
    assert rig.controller.stats(100).bytes_in_flight == 1212


def test_an_old_deadlock_leaves_no_deadline_in_the_past() -> None:
    rig = Rig()
    rig.frame(65, [1212] * 100)
    rig.send_all(65)
    rig.queue.items.clear()
    now = rig.time(65 + 40_000)
    rig.controller.on_timeout(now=now)
    due = rig.controller.next_timeout()
    assert due is not None
    assert due > now


def test_timeouts_keep_the_rate_tick_without_packets() -> None:
    rig = Rig()
    now = rig.time(65)
    for _ in range(50):
        due = rig.controller.next_timeout()
        assert due is not None
        assert due > now
        now = due
        rig.controller.on_timeout(now=now)
    assert now == pytest.approx(50 * 6554 * TICK, rel=1e-3)


def test_pacing_wait_is_told() -> None:
    rig = Rig()
    run(rig, 20)
    rig.frame(65 + 20 * FRAME, [1212, 1212])
    t = 65 + 20 * FRAME
    assert rig.send(t) is not None
    at = rig.controller.may_send(100, 1212, now=rig.time(t))
    interval = rig.controller.stats(100).extra["pace_interval_seconds"]
    assert at == rig.time(t) + int(interval * 65536) * TICK


def test_loss_gives_one_key_frame_and_one_loss_epoch() -> None:
    rig = Rig()
    run(rig, 60, lose_every=2)
    wanted = [rig.controller.decision(100, now=rig.time(65 + 60 * FRAME + i)) for i in range(3)]
    assert [decision.keyframe_wanted for decision in wanted][1:] == [False, False]
    assert all(decision.target_bps >= LIMITS.min_bps for decision in wanted)
    assert not any(decision.loss_epoch for decision in wanted[1:])


def test_an_old_queue_asks_for_a_key_frame() -> None:
    rig = Rig()
    for number in range(15):
        rig.frame(65 + number * FRAME, [1212] * 10)
    assert rig.queue.cleared > 0
    decision = rig.controller.decision(100, now=rig.time(65 + 15 * FRAME))
    assert decision.keyframe_wanted
    assert decision.loss_epoch
    assert decision.target_bps >= LIMITS.min_bps


def test_lost_bytes_are_counted() -> None:
    rig = Rig()
    run(rig, 400, lose_every=10)
    stats = rig.controller.stats(100)
    assert stats.packets_lost > 50
    assert stats.bytes_lost > 50 * 200
    dropped = [not packet.acked for packet in rig.packets]
    assert sum(dropped[:-600]) <= stats.packets_lost <= sum(dropped)


def test_forget_unacked_empties_the_flight() -> None:
    rig = Rig()
    rig.frame(65, [1212] * 5)
    sent = rig.send_all(65)
    rig.controller.forget_unacked(100, now=rig.time(70))
    assert rig.controller.stats(100).bytes_in_flight == 0
    rig.report(1000, sent)
    assert rig.controller.stats(100).srtt == 0.05


def test_reports_of_unknown_or_old_numbers_are_harmless() -> None:
    rig = Rig()
    run(rig, 100)
    before = rig.controller.stats(100)
    now = rig.time(65 + 100 * FRAME)
    for ssrc, end in ((999, 5), (100, rig.seq - 700), (100, rig.seq - 530), (100, -5)):
        report = FeedbackReport(now, now)
        item = StreamReport(ssrc, end, True)
        item.repeats = True
        report.streams.append(item)
        rig.controller.on_feedback(report, now=now)
    after = rig.controller.stats(100)
    assert after.extra == before.extra
    assert after.bytes_in_flight == before.bytes_in_flight


def test_a_report_before_any_packet_is_ignored() -> None:
    rig = Rig()
    report = FeedbackReport(rig.time(70), 0.0)
    item = StreamReport(100, 5, True)
    item.repeats = True
    report.streams.append(item)
    rig.controller.on_feedback(report, now=rig.time(70))
    assert rig.controller.stats(100).srtt == 0.05


def test_a_receiver_clock_that_starts_anew_does_not_look_like_a_queue() -> None:
    rig = Rig()
    run(rig, 50)
    for number in range(50, 60):
        t = 65 + number * FRAME
        rig.frame(t, [1212])
        rig.report(t + 900, rig.send_all(t), delay=655 + 3600 * 65536)
    assert rig.controller.stats(100).queue_delay == 0.0


def test_instant_reports_do_not_bring_the_round_trip_to_zero() -> None:
    rig = Rig(ScreamConfig(profile="2026-03-04"))
    for number in range(300):
        t = 65 + number * FRAME
        rig.frame(t, [1212])
        sent = rig.send_all(t)
        if sent:
            rig.report(t, sent, delay=0)
    stats = rig.controller.stats(100)
    assert stats.srtt is not None
    assert 0 < stats.srtt < 0.001


def test_classic_and_l4s_modes() -> None:
    for ecn, state in ((ECT1, "l4s"), (ECT0, "classic"), (NOT_ECT, "classic")):
        rig = Rig(ecn=ecn)
        assert rig.controller.decision(100, now=rig.time(65)).ecn == ecn
        assert rig.controller.stats(100).state == state


def test_two_streams_share_one_window_by_priority() -> None:
    controller = ScreamController(ScreamConfig(), ecn=ECT1, now=0.0)
    queues = {1: ListQueue(), 2: ListQueue()}
    controller.add_stream(1, queue=queues[1], limits=LIMITS, priority=1.0, now=0.0)
    controller.add_stream(2, queue=queues[2], limits=LIMITS, priority=0.5, now=0.0)
    sent = {1: 0, 2: 0}
    for queue in queues.values():
        queue.items += [(1000, 0.0)] * 300
    for number in range(150):
        now = number * 0.001
        ssrc = controller.select(now=now)
        assert ssrc is not None
        queues[ssrc].items.pop(0)
        packet = SentPacket(ssrc, sent[ssrc], 1000, 0, False, now)
        controller.on_packet_sent(packet, now=now)
        sent[ssrc] += 1
    assert sent == {1: 100, 2: 50}


def test_misuse_is_refused() -> None:
    controller = ScreamController(ScreamConfig(), ecn=ECT1, now=0.0)
    controller.add_stream(1, queue=ListQueue(), limits=LIMITS, now=0.0)
    with pytest.raises(LocalMisuse, match="stream 1"):
        controller.add_stream(1, queue=ListQueue(), limits=LIMITS, now=0.0)
    with pytest.raises(LocalMisuse, match="stream 2"):
        controller.add_stream(2, queue=ListQueue(), limits=Limits(5.0, 5.0, 4.0), now=0.0)
    with pytest.raises(LocalMisuse, match="priority 0"):
        controller.add_stream(2, queue=ListQueue(), limits=LIMITS, priority=0, now=0.0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"profile": "2019"}, "profile '2019': one of head, 2026-03-04"),
        ({"loss_beta": 1.5}, "loss_beta 1.5: from 0.1 to 1.0"),
        ({"mss_sizes": (1200, 600)}, "mss_sizes"),
        ({"mss_sizes": ()}, "mss_sizes"),
    ],
)
def test_bad_options_are_named(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message.replace("(", r"\(")):
        ScreamConfig(**changes)  # type: ignore[arg-type]


def test_spec_builds_from_defaults_and_declares_what_it_exports() -> None:
    assert all(field.default is not field.default_factory for field in fields(SPEC.config_type))
    controller = SPEC.build(SPEC.config_type(), ecn=ECT1, rng=random.Random(1), now=5.0)
    assert isinstance(controller, Controller)
    controller.add_stream(7, queue=ListQueue(), limits=LIMITS, now=5.0)
    assert set(controller.stats(7).extra) == set(SPEC.metrics)
