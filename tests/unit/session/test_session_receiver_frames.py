"""The receiver session: where each frame ends, and when a key frame is asked for."""

from itertools import pairwise

import pytest
from session_parts import OFFSET, Source
from session_receiver_rig import Rig, frames_in, numbers, started

from streamd.session.events import FrameReady

# --- frames ------------------------------------------------------------------------------------


def test_frame_latency_is_capture_to_decoded_by_the_senders_report() -> None:
    rig, source = Rig(), Source()
    rig.raw(source.report(10.0, unix_offset=OFFSET))
    events = rig.give(*source.frame(10.0, key=True))
    (frame,) = frames_in(events)
    assert frame.captured_unix == pytest.approx(OFFSET + 10.0, abs=1e-4)
    rig.session.handle_decoded(frame.frame_no, 1, now=10.0625)
    rig.session.close(now=10.0625)
    assert rig.session.stats.frame_latency.maximum == pytest.approx(0.0625, abs=1e-4)


def test_the_report_of_a_restarted_sender_waits_for_its_stream() -> None:
    rig, source = Rig(), Source()
    started(rig, source)
    again = Source(ssrc=9, first_timestamp=123_456)
    rig.now = 10.25
    rig.raw(again.report(10.25, unix_offset=OFFSET))
    (frame,) = frames_in(rig.give(*again.frame(10.25, key=True)))
    assert frame.captured_unix == pytest.approx(OFFSET + 10.25, abs=1e-4)


def test_inter_frame_delays() -> None:
    rig, source = Rig(), Source()
    started(rig, source)
    rig.give(*source.frame(10.03125))
    rig.give(*source.frame(10.125))
    assert rig.session.stats.inter_frame.count == 2
    assert rig.session.stats.inter_frame.maximum == 0.09375


def test_frame_numbers_are_never_used_twice_and_keep_the_wire_id() -> None:
    rig, source = Rig(), Source()
    started(rig, source)
    assert numbers(rig.give(*source.frame(10.03125))) == [1]
    again = Source(ssrc=9)
    assert numbers(rig.give(*again.frame(10.25, key=True))) == [131_072]
    third = Source(ssrc=10)
    assert numbers(rig.give(*third.frame(10.5, key=True))) == [262_144]


def test_a_failure_in_a_frame_of_the_old_stream_does_not_stop_the_new_one() -> None:
    rig, source = Rig(), Source()
    (old,) = frames_in(rig.give(*source.frame(10.0, key=True)))
    again = Source(ssrc=9)
    rig.decode(*frames_in(rig.give(*again.frame(10.25, key=True))))
    rig.session.handle_decoded(old.frame_no, 0, now=10.25)
    assert len(frames_in(rig.give(*again.frame(10.28125)))) == 1
    assert rig.session.stats.frames_undecodable == 1


def test_a_damaged_frame_stops_decoding_until_a_key_frame() -> None:
    rig, source = Rig(), Source()
    started(rig, source)
    (bad,) = frames_in(rig.give(*source.frame(10.03125)))
    rig.session.handle_decoded(bad.frame_no, 0, now=rig.now)
    assert numbers(rig.give(*source.frame(10.0625))) == []
    assert numbers(rig.give(*source.frame(10.09375, key=True))) == [3]
    stats = rig.session.stats
    rig.until(10.2)
    assert (stats.frames_undecodable, stats.frames_skipped, stats.frames_lost) == (1, 1, 0)


def test_every_frame_ends_in_exactly_one_count() -> None:
    rig, source = Rig(), Source()
    started(rig, source)
    for step in range(1, 30):
        packets = source.frame(10.0 + step / 32, key=step == 20)
        if step in (5, 25, 29):
            packets = packets[1:]
        events = rig.give(*packets)
        for frame in frames_in(events):
            rig.session.handle_decoded(frame.frame_no, int(frame.frame_no != 3), now=rig.now)
    rig.session.close(now=rig.now)
    stats = rig.session.stats
    # 0-2 decoded; 3 damaged; 4, 6-19 waited in vain, 5 lost; 20-24 decoded; 25, 29 lost, 26-28 wait
    assert stats.frames_decoded == 8
    assert stats.frames_undecodable == 1
    assert stats.frames_lost == 3
    assert stats.frames_skipped == 18
    assert stats.frames_seen == 30
    assert stats.frames_completed == 27


def test_capture_times_of_frames_never_decoded_do_not_pile_up() -> None:
    rig, source = Rig(), Source()
    rig.raw(source.report(10.0, unix_offset=OFFSET))
    first = frames_in(rig.give(*source.frame(10.0, key=True)))
    last: list[FrameReady] = []
    for step in range(1, 1_026):
        last = frames_in(rig.give(*source.frame(10.0 + step / 32)))
    rig.decode(*first)
    assert rig.session.stats.frame_latency.count == 0
    rig.decode(*last)
    rig.session.close(now=50.0)
    assert rig.session.stats.frame_latency.count == 1


# --- key-frame requests ------------------------------------------------------------------------


def stream_without_keys(rig: Rig, source: Source, start: float, end: float) -> None:
    step = 0
    while start + step / 32 < end:
        rig.until(start + step / 32)
        rig.give(*source.frame(start + step / 32))
        step += 1


def test_joining_a_running_stream_asks_for_a_key_frame_at_once_and_ever_less_often() -> None:
    rig, source = Rig(), Source()
    stream_without_keys(rig, source, 10.0, 18.0)
    requests = rig.requests()
    assert 10.1 <= requests[0] <= 10.15
    gaps = [later - earlier for earlier, later in pairwise(requests)]
    assert len(gaps) == 5
    for gap, wanted in zip(gaps, (0.5, 1.0, 2.0, 2.0, 2.0), strict=True):
        assert wanted <= gap <= wanted + 0.06
    assert rig.session.stats.keyframe_requests == 6


def test_a_stall_of_three_tenths_asks_for_a_key_frame() -> None:
    rig, source = Rig(), Source()
    started(rig, source)
    source.frame(10.03125)
    stream_without_keys(rig, source, 10.0625, 10.5)
    (request,) = rig.requests()
    assert 10.36 <= request <= 10.42


def test_a_picture_makes_the_next_request_prompt_again() -> None:
    rig, source = Rig(), Source()
    stream_without_keys(rig, source, 10.0, 13.0)
    assert len(rig.requests()) == 3
    rig.decode(*frames_in(rig.give(*source.frame(13.0, key=True))))
    source.frame(13.03125)
    stream_without_keys(rig, source, 13.0625, 13.5)
    assert len(rig.requests()) == 4


def test_a_decoder_that_refuses_every_key_frame_does_not_flood_the_sender() -> None:
    rig, source = Rig(), Source()
    asked = 0
    for step in range(320):
        rig.until(10.0 + step / 32)
        # every request is answered at once, and every frame is refused
        key = step == 0 or len(rig.requests()) > asked
        asked = len(rig.requests())
        for frame in frames_in(rig.give(*source.frame(10.0 + step / 32, key=key))):
            rig.session.handle_decoded(frame.frame_no, 0, now=rig.now)
    assert rig.session.stats.frames_key == 1 + 7
    assert len(rig.requests()) == 7


def test_nothing_is_asked_while_nothing_arrives() -> None:
    rig, source = Rig(), Source()
    rig.give(*source.frame(10.0))
    rig.until(20.0)
    # one at 0.1 s, one half a second later; then the silence is known
    assert len(rig.requests()) == 2


def test_a_running_stream_asks_for_nothing() -> None:
    rig, source = Rig(), Source()
    started(rig, source)
    stream_without_keys(rig, source, 10.03125, 14.0)
    assert rig.requests() == []
