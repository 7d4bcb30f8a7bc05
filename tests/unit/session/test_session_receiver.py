"""The receiver session: runs, what goes back, silence and the end, the BW tool's profile."""

from session_parts import RECEIVER, SENDER, SSRC, Source, drain_events, drain_transmits, run_of
from session_receiver_rig import Rig, frames_in, numbers, started

from streamd.session.events import PeerHeard, PeerSilent, SessionClosed, StreamStarted
from streamd.wire.bwtool import KEEPALIVE, decode_report
from streamd.wire.ccfb import unpack_block
from streamd.wire.rtcp import CongestionFeedback, Goodbye, ReceiverReport, decode_compound

# --- runs, feedback, reports -------------------------------------------------------------------


def test_a_run_of_segments_is_as_many_packets() -> None:
    rig, source = Rig(), Source()
    started(rig, source)
    events = rig.give(run_of(source.frame(10.1, fragments=16)))
    assert numbers(events) == [1]
    assert rig.session.stats.packets == 18
    assert rig.session.stats.bytes == 18 * 124


def test_a_stream_may_start_within_a_run() -> None:
    rig, source = Rig(), Source()
    assert numbers(rig.give(run_of(source.frame(10.0, fragments=5, key=True)))) == [0]


def test_each_frame_end_is_answered_with_feedback_to_the_source() -> None:
    rig, source = Rig(), Source(first_seq=65_535)
    started(rig, source)
    rig.give(*source.frame(10.125, fragments=3))
    reports = [item for item in rig.rtcp() if isinstance(item, CongestionFeedback)]
    assert len(reports) == 2
    (blocks,) = reports[1].lists
    assert reports[1].timestamp == int(10.125 * 65536)
    assert (blocks.ssrc, blocks.begin_seq) == (SSRC, 65_535)
    assert [unpack_block(word) for word in blocks.blocks] == [
        (True, 1, 128),
        (True, 1, 128),
        (True, 1, 0),
        (True, 1, 0),
        (True, 1, 0),
    ]
    assert rig.session.stats.feedback_reports == 2


def test_an_unknown_codepoint_is_counted_apart_and_reported_as_not_ect() -> None:
    rig, source = Rig(), Source()
    packets = source.frame(10.0, key=True)
    for item in packets:
        item.ecn = None
    rig.give(*packets)
    assert rig.session.stats.ecn_unknown == 2
    assert rig.session.stats.ecn == [0, 0, 0, 0]


def test_receiver_reports_go_to_a_configured_peer_before_any_media() -> None:
    rig = Rig(peer=SENDER)
    rig.until(12.25)
    reports = [item for item in rig.rtcp() if isinstance(item, ReceiverReport)]
    assert [(item.ssrc, item.reports) for item in reports] == [(77, [])] * 3
    assert {address for _, address, _ in rig.sent} == {SENDER}


def test_without_a_peer_nothing_is_sent_and_nothing_piles_up() -> None:
    rig = Rig()
    rig.until(30.0)
    assert rig.sent == []
    rig.give(*Source().frame(30.0, key=True))
    assert len(rig.sent) == 1


def test_reception_reports_come_every_second() -> None:
    rig, source = Rig(), Source()
    started(rig, source)
    for step in range(1, 97):
        rig.until(10.0 + step / 32)
        rig.give(*source.frame(10.0 + step / 32))
    reports = [item for item in rig.rtcp() if isinstance(item, ReceiverReport)]
    assert len(reports) == 3
    assert reports[-1].reports[0].ssrc == SSRC


# --- silence and the end -----------------------------------------------------------------------


def test_silence_is_told_once_and_so_is_its_end() -> None:
    rig, source = Rig(), Source()
    started(rig, source)
    events = rig.until(15.0)
    (silent,) = [event for event in events if isinstance(event, PeerSilent)]
    assert 1.0 < silent.seconds <= 1.06
    assert PeerHeard() in rig.give(*source.frame(15.0))


def test_close_says_bye_and_counts_what_is_left() -> None:
    rig, source = Rig(), Source()
    started(rig, source)
    rig.give(source.frame(10.1)[0])
    rig.session.close(now=10.2)
    (transmit,) = drain_transmits(rig.session, 10.2)
    packets = decode_compound(transmit.segments[0])
    assert isinstance(packets[0], ReceiverReport)
    assert packets[-1] == Goodbye([77])
    assert drain_events(rig.session) == [SessionClosed()]
    assert rig.session.stats.frames_lost == 1
    assert rig.session.next_timeout() is None
    rig.session.close(now=10.3)
    assert drain_events(rig.session) == []
    rig.session.handle_datagrams(source.frame(10.4), now=10.4)
    assert rig.session.stats.packets == 3


def test_close_without_a_peer() -> None:
    rig = Rig()
    rig.session.close(now=11.0)
    assert drain_transmits(rig.session, 11.0) == []
    assert drain_events(rig.session) == [SessionClosed()]


def test_a_peer_that_resolves_anew() -> None:
    rig = Rig(peer=SENDER)
    rig.session.set_peer(RECEIVER)
    rig.until(11.0)
    assert {address for _, address, _ in rig.sent} == {RECEIVER}


# --- the BW tool's profile ---------------------------------------------------------------------


def test_bw_tool_text_lines_and_keep_alives() -> None:
    rig = Rig(peer=SENDER, bwtool=True)
    rig.until(11.25)
    # the first at once, then every half second without feedback
    assert [data for _, _, data in rig.sent] == [KEEPALIVE] * 3
    rig.raw(b"\x20\x7f  12.3 kbps\n")
    rig.raw(b"\x7f")
    assert rig.stats_invalid == {"text_line": 1, "rtp_truncated": 1}


def test_bw_tool_feedback_counts_blocks_minus_one_and_nothing_else_is_sent() -> None:
    rig = Rig(bwtool=True)
    source = Source(ssrc=100, first_seq=0, extension=False)
    rig.give(*source.frame(10.0, fragments=4))
    rig.until(10.25)
    (_, _, data) = rig.sent[0]
    report = decode_report(data)
    assert report.lists[0].ssrc == 100
    assert len(report.lists[0].blocks) == 64
    assert report.lists[0].begin_seq == 3 - 63 & 0xFFFF
    assert rig.session.stats.frames_completed == 1
    assert len(rig.sent) == 1


def test_bw_tool_streams_end_after_two_seconds_of_silence() -> None:
    rig = Rig(bwtool=True)
    rig.give(*Source(ssrc=100, first_seq=0).frame(10.0, key=True))
    rig.until(12.5)
    # the same numbers again, as a restarted tool sends them
    events = rig.give(*Source(ssrc=100, first_seq=0).frame(12.5, key=True))
    assert StreamStarted(100, 98) in events
    assert len(frames_in(events)) == 1
    assert rig.session.stats.duplicates == 0


def test_bw_tool_asks_for_no_key_frames_and_sends_no_bye() -> None:
    rig = Rig(bwtool=True)
    source = Source(ssrc=100, first_seq=0)
    for step in range(64):
        rig.until(10.0 + step / 32)
        rig.give(*source.frame(10.0 + step / 32))
    assert all(data[1] == 205 for _, _, data in rig.sent)
    rig.session.close(now=12.0)
    assert drain_transmits(rig.session, 12.0) == []


def test_bw_tool_a_sender_restarted_at_once_is_not_taken_for_repetitions() -> None:
    rig = Rig(bwtool=True)
    source = Source(ssrc=100, first_seq=0, first_timestamp=-900_000)
    for step in range(10):
        rig.give(*source.frame(10.0 + step, key=step == 0))
    # the same numbers and times again
    again = Source(ssrc=100, first_seq=0, first_timestamp=-900_000 - 855_000)
    events = rig.give(*again.frame(19.5, key=True))
    assert StreamStarted(100, 98) in events
    assert len(frames_in(events)) == 1
    assert rig.session.stats.duplicates == 0
