"""The sender session's peers: who is one, how they come and go, the end, the BW tool's profile."""

import pytest
from session_parts import RECEIVER, SSRC, STRANGER, drain_transmits, report
from session_sender_rig import Rig, Scripted

from streamd.media.model import EncodedFrame
from streamd.session.events import PeerChanged, PeerClosed, SessionClosed
from streamd.wire.bwtool import KEEPALIVE
from streamd.wire.ccfb import encode_ccfb
from streamd.wire.rtcp import Goodbye, PictureLossIndication, ReceiverReport, encode_compound

# --- peers -------------------------------------------------------------------------------------


def test_without_a_peer_frames_are_thrown_away_and_nothing_spins() -> None:
    rig = Rig(peer=None)
    rig.frames(64, 1 / 32, size=12_000)
    rig.until(20.0)
    assert rig.media == []
    assert rig.session.stats.frames_without_peer == 64
    assert rig.session.next_timeout() == pytest.approx(20.0, abs=0.06)
    events = rig.give(encode_compound([ReceiverReport(1)]))
    assert events == [PeerChanged(RECEIVER)]
    assert rig.frame(key=True).keyframe
    assert [seq for _, seq in rig.media] == [0]
    # and a report for the capture time goes first
    assert len(rig.control) == 1


def test_a_stranger_is_counted_and_not_answered_while_the_peer_is_alive() -> None:
    rig = Rig()
    rig.frame()
    rig.feedback(0, [0])
    for data in (
        encode_ccfb(report(0, [0], at=10.0)),
        encode_compound([PictureLossIndication(1, SSRC)]),
        encode_compound([ReceiverReport(1), Goodbye([1])]),
    ):
        assert rig.give(data, STRANGER) == []
    assert rig.session.stats.invalid == {"foreign_source": 3}
    assert rig.session.peer == RECEIVER
    assert not rig.frame().keyframe


@pytest.mark.parametrize("data", [b"", b"\x00", b"hello", bytes(40), b"\x80\x62" + bytes(30)])
def test_what_is_no_rtcp_is_counted(data: bytes) -> None:
    rig = Rig()
    assert rig.give(data, STRANGER) == []
    assert rig.session.stats.invalid == {"not_rtcp": 1}


def test_broken_rtcp_is_counted_by_reason() -> None:
    rig = Rig()
    good = encode_ccfb(report(0, [0], at=10.0))
    rig.give(good[:-4])
    rig.give(good[:8])
    rig.give(b"\x8b\xcd\x00\x01" + bytes(4))
    assert rig.session.stats.invalid == {"rtcp_length": 2, "ccfb_truncated": 1}


def test_a_receiver_that_comes_back_elsewhere_gets_the_stream_with_a_key_frame() -> None:
    rig = Rig(controller=Scripted())
    rig.frames(2, 0.0625)
    rig.feedback(0, [0])
    rig.until(11.0)
    hello = encode_compound([ReceiverReport(5)])
    assert rig.give(hello, STRANGER) == []
    rig.until(11.125)
    assert rig.give(hello, STRANGER) == [PeerChanged(STRANGER)]
    assert rig.session.peer == STRANGER
    assert rig.frame(key=True).keyframe
    assert rig.addresses[-1] == STRANGER
    # packet 1 was for the old one: nobody will acknowledge it, nobody gets it again
    assert isinstance(rig.controller, Scripted)
    assert rig.controller.forgotten == 1
    rig.until(11.5)
    rig.feedback(2, [0])
    rig.give(encode_ccfb(report(2, [0], at=11.5)), STRANGER)
    assert [seq for _, seq in rig.media] == [0, 1, 2]


def test_after_bye_the_next_receiver_is_taken_at_once() -> None:
    rig = Rig()
    rig.frame()
    rig.feedback(0, [0])
    assert rig.give(encode_compound([ReceiverReport(1), Goodbye([1])])) == [PeerClosed()]
    assert rig.give(encode_compound([ReceiverReport(5)]), STRANGER) == [PeerChanged(STRANGER)]


def test_a_name_that_resolves_anew_begins_anew() -> None:
    rig = Rig()
    rig.frame()
    rig.until(10.5)
    rig.session.set_peer(RECEIVER)
    assert not rig.frame().keyframe
    rig.session.set_peer(STRANGER)
    assert rig.frame().keyframe
    assert rig.addresses[-1] == STRANGER
    assert len(rig.control) == 2


def test_looking_for_a_silent_peer_elsewhere_keeps_the_place_open() -> None:
    rig = Rig()
    rig.frame()
    rig.give(encode_compound([ReceiverReport(1)]))
    rig.until(12.0)
    assert rig.give(encode_compound([ReceiverReport(5)]), STRANGER) == [PeerChanged(STRANGER)]
    rig.until(14.0)
    rig.session.set_peer(RECEIVER, keep_open=True)
    rig.frame()
    assert rig.addresses[-1] == RECEIVER
    # It was there all the time, behind an outage.
    assert rig.give(encode_compound([ReceiverReport(5)]), STRANGER) == [PeerChanged(STRANGER)]
    # Where it already is, nothing opens.
    rig.session.set_peer(STRANGER, keep_open=True)
    rig.give(encode_compound([ReceiverReport(1)]))
    assert rig.session.peer == STRANGER


# --- the end -----------------------------------------------------------------------------------


def test_closing_sends_what_is_queued_waits_for_the_rest_and_says_bye() -> None:
    rig = Rig()
    rig.frame(3000)
    rig.session.close(now=10.0)
    assert rig.session.stats.ended_at == 10.0
    assert not any(isinstance(event, SessionClosed) for event in rig.until(10.125))
    assert len(rig.media) == 3
    assert rig.feedback(0, [2, 1, 0])[-1] == SessionClosed()
    assert rig.control[-1][1][-1] == Goodbye([SSRC])
    assert rig.session.next_timeout() is None
    assert drain_transmits(rig.session, 20.0) == []


def test_closing_ends_after_two_seconds_without_an_answer() -> None:
    rig = Rig()
    rig.frame()
    rig.session.close(now=10.0)
    assert SessionClosed() not in rig.until(11.9)
    assert SessionClosed() in rig.until(12.1)


def test_the_last_packets_are_repaired_by_time_alone() -> None:
    rig = Rig()
    rig.frame(2400)
    rig.until(10.0625)
    rig.feedback(0, [0])
    rig.session.close(now=10.0625)
    rig.until(11.0)
    assert [seq for _, seq in rig.media] == [0, 1, 1, 1, 1]
    assert SessionClosed() in rig.feedback(1, [0])


def test_closing_before_anything_was_sent() -> None:
    rig = Rig()
    rig.session.close(now=10.0)
    assert SessionClosed() in rig.until(10.1)
    assert rig.control[-1][1][-1] == Goodbye([SSRC])


def test_closing_without_a_peer() -> None:
    rig = Rig(peer=None)
    rig.frame()
    rig.session.close(now=10.0)
    assert rig.until(10.1) == [SessionClosed()]
    assert rig.addresses == []


def test_nothing_is_taken_after_the_end() -> None:
    rig = Rig()
    rig.session.close(now=10.0)
    rig.until(10.1)
    rig.session.handle_frame(EncodedFrame(b"x", True, 10.2), now=10.2)
    rig.session.close(now=10.2)
    assert rig.give(b"hello") == []
    assert rig.session.stats.frames_key == 0
    assert rig.session.stats.invalid == {}


def test_nothing_is_sent_again_to_a_peer_that_never_answered() -> None:
    rig = Rig()
    rig.frames(10, 1 / 32)
    rig.session.close(now=rig.now)
    assert SessionClosed() in rig.until(rig.now + 3)
    assert len(rig.media) == 10


# --- the BW tool's profile ---------------------------------------------------------------------


def test_bw_tool_keep_alives_open_the_way_and_are_no_feedback() -> None:
    rig = Rig(peer=None, bwtool=True)
    assert rig.give(KEEPALIVE) == [PeerChanged(RECEIVER)]
    assert rig.give(KEEPALIVE) == []
    assert rig.session.stats.invalid == {}
    # The tool's receiver sends from another port than it listens at.
    assert rig.give(KEEPALIVE, STRANGER) == []
    assert rig.session.stats.invalid == {}
    assert rig.session.peer == RECEIVER


def test_bw_tool_feedback_has_blocks_minus_one_and_we_send_no_rtcp() -> None:
    rig = Rig(bwtool=True)
    rig.frames(33, 1 / 32)
    rig.give(encode_ccfb(report(0, [0] * 33, at=rig.now), minus_one=True))
    assert sum(rig.session.stats.ecn_acked) == 33
    rig.session.close(now=rig.now)
    assert SessionClosed() in rig.until(rig.now + 0.1)
    assert rig.control == []


def test_a_single_byte_is_bad_input_in_the_default_profile() -> None:
    rig = Rig(peer=None)
    rig.give(KEEPALIVE)
    assert rig.session.stats.invalid == {"not_rtcp": 1}
    assert rig.session.peer is None
