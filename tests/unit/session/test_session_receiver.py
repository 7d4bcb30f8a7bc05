"""The receiver session: who may stream, what goes back, and where each frame ends."""

from itertools import pairwise

import pytest
from session_parts import (
    RECEIVER,
    SENDER,
    SSRC,
    STRANGER,
    Source,
    drain_events,
    drain_transmits,
    run_of,
)

from streamd.datagram import Address, Datagram
from streamd.session.events import (
    Event,
    FrameReady,
    PeerChanged,
    PeerClosed,
    PeerHeard,
    PeerSilent,
    SessionClosed,
    StreamStarted,
)
from streamd.session.receiver import ReceiverOptions, ReceiverSession
from streamd.wire.bwtool import KEEPALIVE, decode_report
from streamd.wire.ccfb import unpack_block
from streamd.wire.rtcp import (
    CongestionFeedback,
    Goodbye,
    PictureLossIndication,
    ReceiverReport,
    RtcpPacket,
    decode_compound,
)

OFFSET = 1_700_000_000.0


class Rig:
    """A receiver session stepped by hand in 50 ms housekeeping steps."""

    def __init__(
        self, *, peer: Address | None = None, bwtool: bool = False, now: float = 10.0
    ) -> None:
        self.now = now
        self.session = ReceiverSession(
            ReceiverOptions(ssrc=77, peer=peer, bwtool=bwtool, minus_one=bwtool),
            now=now,
            unix_offset=OFFSET,
        )
        self.events: list[Event] = []
        self.sent: list[tuple[float, Address, bytes]] = []

    @property
    def stats_invalid(self) -> dict[str, int]:
        return self.session.stats.invalid

    def give(self, *datagrams: Datagram) -> list[Event]:
        """Hand datagrams in at their arrival time; the events that came of it."""
        for datagram in datagrams:
            self.now = max(self.now, datagram.received_at)
            self.session.handle_datagrams([datagram], now=self.now)
            self._collect()
        return self._new_events()

    def raw(self, data: bytes, address: Address = SENDER) -> list[Event]:
        return self.give(Datagram(data, address, 0, self.now))

    def until(self, end: float) -> list[Event]:
        """Let timeouts pass up to `end`."""
        while (due := self.session.next_timeout()) is not None and due <= end:
            self.now = max(self.now, due)
            self.session.handle_timeout(now=self.now)
            self._collect()
        self.now = end
        return self._new_events()

    def decode(self, *frames: FrameReady) -> None:
        for frame in frames:
            self.session.handle_decoded(frame.frame_no, 1, now=self.now)

    def rtcp(self) -> list[RtcpPacket]:
        """All RTCP packets sent so far."""
        return [packet for _, _, data in self.sent for packet in decode_compound(data)]

    def requests(self) -> list[float]:
        """Times of key-frame requests."""
        return [
            at
            for at, _, data in self.sent
            if any(isinstance(item, PictureLossIndication) for item in decode_compound(data))
        ]

    def _collect(self) -> None:
        for transmit in drain_transmits(self.session, self.now):
            assert transmit.ecn == 0
            self.sent += [(self.now, transmit.address, data) for data in transmit.segments]
        self.events += drain_events(self.session)

    def _new_events(self) -> list[Event]:
        events, self.events = self.events, []
        return events


def frames_in(events: list[Event]) -> list[FrameReady]:
    return [event for event in events if isinstance(event, FrameReady)]


def numbers(events: list[Event]) -> list[int]:
    return [frame.frame_no for frame in frames_in(events)]


def started(rig: Rig, source: Source, at: float = 10.0) -> None:
    """The source's first frame, a key frame, is there and decoded."""
    events = rig.give(*source.frame(at, key=True))
    assert frames_in(events), rig.stats_invalid
    rig.decode(*frames_in(events))


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


# --- frames ------------------------------------------------------------------------------------


def test_frame_latency_is_capture_to_decoded_by_the_senders_report() -> None:
    rig, source = Rig(), Source()
    rig.raw(source.report(10.0, unix_offset=OFFSET))
    events = rig.give(*source.frame(10.0, key=True))
    (frame,) = frames_in(events)
    assert frame.captured_unix == pytest.approx(OFFSET + 10.0, abs=1e-4)
    rig.session.handle_decoded(frame.frame_no, 1, now=10.0625)
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
