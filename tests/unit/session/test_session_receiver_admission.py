"""The receiver session: who may stream, and what is made of bytes that are no stream."""

import pytest
from session_parts import OFFSET, SENDER, SSRC, STRANGER, Source
from session_receiver_rig import Rig, frames_in, started

from streamd.datagram import Datagram
from streamd.session.events import PeerChanged, PeerClosed, PeerHeard, StreamStarted

# --- admission ---------------------------------------------------------------------------------


def test_two_packets_in_sequence_start_a_stream() -> None:
    rig, source = Rig(), Source()
    first, second = source.frame(10.0, key=True)
    assert rig.give(first) == []
    assert rig.sent == []
    events = rig.give(second)
    assert events[:3] == [StreamStarted(SSRC, 98), PeerChanged(SENDER), PeerHeard()]
    assert [frame.data for frame in frames_in(events)] == source.frames
    stats = rig.session.stats
    assert (stats.packets, stats.streams, stats.frames_completed, stats.frames_key) == (2, 1, 1, 1)
    assert stats.ecn == [0, 2, 0, 0]
    assert stats.invalid == {}


def test_a_stray_packet_starts_nothing() -> None:
    rig, source = Rig(), Source()
    first = source.frame(10.0)[0]
    stray = Source(ssrc=5, first_seq=9).frame(10.0)[0]
    for datagram in (first, stray, first, stray):
        assert rig.give(datagram) == []
    assert rig.stats_invalid == {"stray_packet": 3}
    assert rig.session.peer is None


def test_the_two_packets_must_come_from_one_address() -> None:
    rig, source = Rig(), Source()
    first, second = source.frame(10.0)
    second.address = STRANGER
    rig.give(first, second)
    assert rig.session.stats.streams == 0


def test_a_foreign_stream_while_ours_is_alive_is_counted_and_never_answered() -> None:
    rig, source = Rig(), Source()
    started(rig, source)
    other = Source(ssrc=9, address=STRANGER)
    for step in range(1, 40):
        rig.give(*source.frame(10.0 + step / 32))
        assert rig.give(*other.frame(10.0 + step / 32, key=True)) == []
    assert rig.stats_invalid == {"foreign_source": 78}
    assert {address for _, address, _ in rig.sent} == {SENDER}
    assert rig.session.stats.streams == 1


def test_our_own_ssrc_from_another_address_is_foreign_too() -> None:
    rig, source = Rig(), Source()
    started(rig, source)
    forged = source.frame(10.1)
    for datagram in forged:
        datagram.address = STRANGER
    rig.give(*forged)
    assert rig.stats_invalid == {"foreign_source": 2}
    assert rig.session.stats.packets == 2


def test_two_streams_from_one_port_do_not_push_each_other_out() -> None:
    rig, source = Rig(), Source()
    started(rig, source)
    other = Source(ssrc=9, first_seq=5)
    for step in range(1, 20):
        rig.give(*source.frame(10.0 + step / 32), *other.frame(10.0 + step / 32, key=True))
    assert rig.session.stats.streams == 1
    assert rig.stats_invalid == {"second_stream": 38}


@pytest.mark.parametrize("payload_type", [0, 63, 100, 126])
def test_other_payload_types_are_counted(payload_type: int) -> None:
    rig = Rig()
    rig.give(*Source(payload_type=payload_type).frame(10.0, key=True))
    assert rig.stats_invalid == {"payload_type": 2}


def test_a_restarted_sender_on_the_same_address_is_taken_up_at_once() -> None:
    rig, source = Rig(), Source()
    started(rig, source)
    again = Source(ssrc=9, first_seq=40_000)
    events = rig.give(*again.frame(10.125, key=True))
    assert events[0] == StreamStarted(9, 98)
    assert len(frames_in(events)) == 1
    assert rig.session.stats.streams == 2


def test_a_restarted_sender_with_the_same_ssrc_and_another_numbering() -> None:
    rig, source = Rig(), Source(first_seq=0)
    started(rig, source)
    again = Source(first_seq=40_000)
    events = rig.give(*again.frame(10.125, key=True))
    assert StreamStarted(SSRC, 98) in events
    assert len(frames_in(events)) == 1


def test_a_restarted_sender_on_another_address_waits_for_a_second_of_silence() -> None:
    rig, source = Rig(), Source()
    started(rig, source)
    again = Source(ssrc=9, address=STRANGER)
    assert frames_in(rig.give(*again.frame(10.9, key=True))) == []
    events = rig.give(*again.frame(11.0, key=True))
    assert StreamStarted(9, 98) in events
    assert PeerChanged(STRANGER) in events
    assert rig.session.peer == STRANGER
    # and the old one is the stranger now
    assert rig.give(*source.frame(11.1)) == []


def test_after_bye_another_address_is_taken_up_at_once() -> None:
    rig, source = Rig(), Source()
    started(rig, source)
    assert rig.raw(source.report(10.1, unix_offset=OFFSET, bye=True)) == [PeerClosed()]
    assert rig.session.stats.ended_at == 10.0
    again = Source(ssrc=9, address=STRANGER)
    events = rig.give(*again.frame(10.1, key=True))
    assert StreamStarted(9, 98) in events
    assert PeerHeard() in events
    assert rig.session.stats.ended_at is None


def test_a_configured_peer_keeps_its_place_for_a_second_against_strangers() -> None:
    rig = Rig(peer=SENDER)
    other = Source(ssrc=9, address=STRANGER)
    assert rig.give(*other.frame(10.0, key=True)) == []
    assert rig.session.stats.streams == 0
    assert rig.give(*other.frame(10.9)) == []
    assert StreamStarted(9, 98) in rig.give(*other.frame(11.0))


def test_the_configured_peer_itself_is_taken_at_once() -> None:
    rig = Rig(peer=SENDER)
    rig.give(*Source(ssrc=9, address=STRANGER).frame(10.0))
    events = rig.give(*Source().frame(10.0, key=True))
    assert StreamStarted(SSRC, 98) in events


def test_silence_of_a_minute_makes_any_numbering_a_new_stream() -> None:
    rig, source = Rig(), Source()
    started(rig, source)
    events = rig.give(*source.frame(70.5, key=True))
    assert StreamStarted(SSRC, 98) in events
    assert len(frames_in(events)) == 1


def test_a_slow_source_stays_one_stream() -> None:
    rig, source = Rig(), Source()
    started(rig, source)
    for at in (20.0, 30.0, 85.0):
        rig.until(at)
        assert len(frames_in(rig.give(*source.frame(at)))) == 1
    assert rig.session.stats.streams == 1


# --- bad input ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "rtp_truncated"),
        (b"\x00", "rtp_truncated"),
        (b"\x80\x62\x00\x01", "rtp_truncated"),
        (b"\x40" + bytes(20), "rtp_version"),
        (b"\x8f\x62" + bytes(20), "rtp_csrc"),
        (b"\x90\x62" + bytes(11) + b"\xff\xff\xff", "rtp_extension"),
        (b"\x80\xc8\x00\x01", "rtcp_length"),
        (b"\x80\xc8", "rtcp_truncated"),
    ],
)
@pytest.mark.parametrize("streaming", [False, True])
def test_bytes_that_are_nothing_are_counted_by_reason(
    data: bytes, reason: str, streaming: bool
) -> None:
    rig, source = Rig(), Source()
    if streaming:
        started(rig, source)
    before = len(rig.sent)
    assert rig.raw(data, STRANGER) == []
    assert rig.stats_invalid == {reason: 1}
    assert len(rig.sent) == before


def test_rtcp_of_strangers_is_counted_and_believed_in_nothing() -> None:
    rig, source = Rig(), Source()
    started(rig, source)
    assert rig.raw(source.report(10.0, unix_offset=OFFSET, bye=True), STRANGER) == []
    assert rig.stats_invalid == {"foreign_source": 1}
    assert rig.session.stats.ended_at is None


def test_a_bad_video_extension_spoils_one_packet_only() -> None:
    rig, source = Rig(), Source()
    started(rig, source)
    bad, good = source.frame(10.1)
    broken = bytearray(bad.data)
    broken[20:24] = b"\x00\x05\x00\x02"  # fragment 5 of 2
    rig.give(Datagram(bytes(broken), SENDER, 1, 10.1), good)
    assert rig.stats_invalid == {"video_fragment": 1}
    assert rig.session.stats.packets == 4
