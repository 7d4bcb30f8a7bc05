"""The sender session: frames to runs, feedback, silence, peers that come and go, the end."""

import math

import pytest
from session_parts import (
    RECEIVER,
    SSRC,
    STRANGER,
    drain_events,
    drain_transmits,
    report,
)

from streamd.cc.api import (
    Controller,
    ControllerStats,
    FeedbackReport,
    Limits,
    MediaQueue,
    RateDecision,
    SentPacket,
)
from streamd.cc.fixed import FixedConfig, FixedController
from streamd.datagram import Address, Datagram
from streamd.ecn import ECT1
from streamd.media.model import EncodedFrame
from streamd.session.events import (
    Event,
    PeerChanged,
    PeerClosed,
    PeerHeard,
    PeerSilent,
    RateLimited,
    SessionClosed,
)
from streamd.session.packetize import StreamIdentity
from streamd.session.sender import FramePlan, SenderOptions, SenderSession
from streamd.wire.bwtool import KEEPALIVE
from streamd.wire.ccfb import BlockList, CongestionFeedback, encode_ccfb
from streamd.wire.rtcp import (
    FullIntraRequest,
    Goodbye,
    PictureLossIndication,
    ReceiverReport,
    RtcpPacket,
    SenderReport,
    decode_compound,
    encode_compound,
)
from streamd.wire.rtp import decode_rtp

OFFSET = 1_700_000_000.0
RATE = 1_200_000


class Rig:
    """A sender session stepped by hand; whatever leaves is kept with its time."""

    def __init__(
        self,
        *,
        controller: Controller | None = None,
        peer: Address | None = RECEIVER,
        bwtool: bool = False,
        breaker: bool = True,
        first_seq: int = 0,
        retransmissions: int = 3,
        quantum: float = 0.0005,
        rate: float = RATE,
        now: float = 10.0,
    ) -> None:
        self.now = now
        self.controller = controller or FixedController(FixedConfig(rate_bps=rate), ecn=ECT1)
        self.session = SenderSession(
            SenderOptions(
                identity=StreamIdentity(SSRC, 98, first_seq=first_seq),
                limits=Limits(150_000, 1_000_000, 50_000_000),
                peer=peer,
                bwtool=bwtool,
                minus_one=bwtool,
                breaker=breaker,
                retransmissions=retransmissions,
                quantum=quantum,
            ),
            self.controller,
            now=now,
            unix_offset=OFFSET,
        )
        self.media: list[tuple[float, int]] = []
        """Time and 16-bit number of each media packet."""
        self.runs: list[list[int]] = []
        """Segment sizes of each media transmit."""
        self.control: list[tuple[float, list[RtcpPacket]]] = []
        self.addresses: list[Address] = []
        self._events: list[Event] = []

    def frame(self, size: int = 1200, *, key: bool = False) -> FramePlan:
        """Ask for, make and queue a frame; send what may leave at once."""
        plan = self.session.next_frame(now=self.now)
        self.session.handle_frame(EncodedFrame(bytes(size), key, self.now), now=self.now)
        self._collect()
        return plan

    def frames(self, count: int, period: float, size: int = 1200) -> None:
        """Frames at a constant rate, the first one now."""
        start = self.now
        for step in range(count):
            self.until(start + step * period)
            self.frame(size)

    def until(self, end: float) -> list[Event]:
        """Let timeouts pass up to `end`; the events since the last look."""
        looks = 0
        while (due := self.session.next_timeout()) is not None and due <= end:
            self.now = max(self.now, due)
            self.session.handle_timeout(now=self.now)
            self._collect()
            looks += 1
            assert looks < 100_000, "the session asks for the past over and over"
        self.now = end
        return self.events()

    def events(self) -> list[Event]:
        events, self._events = self._events, []
        return events

    def give(self, data: bytes, address: Address = RECEIVER) -> list[Event]:
        self.session.handle_datagrams([Datagram(data, address, 0, self.now)], now=self.now)
        self._collect()
        return self.events()

    def feedback(
        self, begin: int, words: list[int | None], *, at: float | None = None
    ) -> list[Event]:
        """A report stamped with our own clock, or with `at`."""
        made = report(begin, words, at=self.now if at is None else at)
        return self.give(encode_ccfb(made))

    @property
    def ignored(self) -> dict[str, int]:
        return self.session.stats.feedback_ignored

    def _collect(self) -> None:
        for transmit in drain_transmits(self.session, self.now):
            self.addresses.append(transmit.address)
            first = transmit.segments[0]
            if first[1] & 0x7F == 98:
                assert transmit.ecn == ECT1
                sizes = [len(item) for item in transmit.segments]
                assert set(sizes[:-1]) <= {sizes[0]}
                assert sizes[-1] <= sizes[0]
                self.runs.append(sizes)
                self.media += [(self.now, decode_rtp(item).seq) for item in transmit.segments]
            else:
                assert transmit.ecn == 0
                assert len(transmit.segments) == 1
                self.control.append((self.now, decode_compound(first)))
        self._events += drain_events(self.session)


class Scripted(Controller):
    """A controller whose answers a test sets."""

    def __init__(self) -> None:
        self.reports: list[FeedbackReport] = []
        self.sent: list[int] = []
        self.may: float | None = 0.0
        self.mss = 1200
        self.wanted = False
        self.loss_epoch = False
        self.interval = 0.0
        self.timeouts = 0
        self.due: float | None = None
        self.forgotten = 0
        self._queue: MediaQueue | None = None
        self._ssrc = 0

    def add_stream(
        self, ssrc: int, *, queue: MediaQueue, limits: Limits, priority: float = 1.0, now: float
    ) -> None:
        self._ssrc, self._queue = ssrc, queue

    def select(self, *, now: float) -> int | None:
        return self._ssrc if self._queue is not None and len(self._queue) else None

    def may_send(self, ssrc: int, size: int, *, now: float) -> float | None:
        return self.may

    def on_packet_sent(self, packet: SentPacket, *, now: float) -> float:
        self.sent.append(packet.seq)
        return self.interval

    def on_feedback(self, report: FeedbackReport, *, now: float) -> None:
        self.reports.append(report)

    def on_timeout(self, *, now: float) -> None:
        self.timeouts += 1
        self.due = None

    def next_timeout(self) -> float | None:
        return self.due

    def forget_unacked(self, ssrc: int, *, now: float) -> None:
        self.forgotten += 1

    def decision(self, ssrc: int, *, now: float) -> RateDecision:
        wanted, self.wanted = self.wanted, False
        epoch, self.loss_epoch = self.loss_epoch, False
        return RateDecision(2e6, 3e6, math.inf, self.mss, ECT1, wanted, epoch)

    def stats(self, ssrc: int) -> ControllerStats:
        return ControllerStats(target_bps=2e6, queue_delay=0.0125)


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


# --- feedback ----------------------------------------------------------------------------------


def test_feedback_acknowledges_and_samples_the_round_trip_without_the_holding_time() -> None:
    rig = Rig()
    rig.frame(1200)
    rig.until(10.0625)
    # received 16/1024 s before the report
    assert rig.feedback(0, [16]) == [PeerHeard()]
    stats = rig.session.stats
    assert stats.feedback_reports == 1
    assert stats.ecn_acked == [0, 1, 0, 0]
    assert stats.rtt.maximum == 0.046875
    assert stats.last_feedback_at == 10.0625


def test_the_metrics_example_of_the_round_trip() -> None:
    rig = Rig(now=1.0)
    rig.frame(1200)
    rig.until(1.06)
    # sent 1.000, arrived 1.020, reported 1.035, received 1.060
    rig.feedback(0, [int(0.015 * 1024)], at=1.035)
    assert rig.session.stats.rtt.maximum == pytest.approx(0.045, abs=0.001)


def test_the_interval_between_reports_is_observed() -> None:
    rig = Rig()
    rig.frames(3, 0.03125)
    for number in range(3):
        rig.feedback(number, [0])
        rig.until(rig.now + 0.0625)
    histogram = rig.session.stats.feedback_interval_histogram
    assert (histogram.count, histogram.sum) == (2, 0.125)


def test_one_round_trip_sample_per_report_by_the_newest_packet() -> None:
    rig = Rig(rate=100_000_000)
    rig.frames(4, 0.0625)
    rig.until(10.25)
    first, second = report(0, [256, 192], at=10.25), report(2, [128, 64], at=10.25)
    both = CongestionFeedback(1, first.lists + second.lists, first.timestamp)
    rig.give(encode_ccfb(both))
    assert rig.session.stats.rtt.count == 1
    assert rig.session.stats.rtt.maximum == 0.0


def test_no_round_trip_sample_by_a_packet_sent_twice_or_held_for_ever() -> None:
    rig = Rig()
    rig.frames(2, 0.0625)
    rig.until(10.25)
    rig.feedback(1, [0])
    rig.until(10.5)
    assert [seq for _, seq in rig.media] == [0, 1, 0]
    rig.feedback(0, [0])
    assert rig.session.stats.rtt.count == 1
    rig.frame()
    rig.until(10.75)
    rig.feedback(2, [0x1FFE])
    assert rig.session.stats.rtt.count == 1


@pytest.mark.parametrize("first", [0, 65_535, 40_000])
def test_feedback_for_packets_never_sent_reaches_nobody(first: int) -> None:
    controller = Scripted()
    rig = Rig(controller=controller, first_seq=first)
    rig.feedback(first, [0])
    assert rig.ignored == {"never_sent": 1}
    rig.frame()
    rig.feedback(first + 1, [0, 0])
    rig.feedback(first - 5, [0])
    assert rig.ignored == {"never_sent": 3}
    assert controller.reports == []
    rig.feedback(first, [0, 0])
    assert rig.ignored == {"never_sent": 4}
    (only,) = controller.reports
    assert [item.seq for item in only.streams[0].acked] == [first]
    assert only.streams[0].end_seq == first


def test_duplicated_and_reordered_reports_are_ignored() -> None:
    controller = Scripted()
    rig = Rig(controller=controller)
    rig.frames(3, 0.0625)
    old = encode_ccfb(report(0, [0], at=10.1875))
    new = encode_ccfb(report(0, [64, 0], at=10.25))
    rig.until(10.25)
    rig.give(new)
    rig.give(new)
    rig.give(old)
    assert rig.ignored == {"duplicate_or_reordered": 2}
    assert len(controller.reports) == 1
    assert rig.session.stats.feedback_reports == 1


def test_a_report_of_another_time_without_news_is_ignored_and_moves_no_clock() -> None:
    controller = Scripted()
    rig = Rig(controller=controller)
    rig.frames(3, 0.0625)
    rig.until(10.25)
    rig.give(encode_ccfb(report(0, [0], at=10.25)))
    for wrong in (5_000.0, 10.25 + 70.0):
        rig.give(encode_ccfb(report(0, [0], at=wrong)))
    assert rig.ignored == {"wrong_time": 2}
    rig.give(encode_ccfb(report(1, [0], at=10.25 + 1 / 64)))
    assert [item.report_time for item in controller.reports] == [10.25, 10.25 + 1 / 64]


def test_a_reordered_report_with_news_is_used() -> None:
    controller = Scripted()
    rig = Rig(controller=controller)
    rig.frames(3, 0.0625)
    rig.until(10.25)
    rig.give(encode_ccfb(report(1, [0], at=10.25)))
    rig.give(encode_ccfb(report(0, [0], at=10.1875)))
    assert rig.ignored == {}
    assert [item.report_time for item in controller.reports] == [10.25, 10.1875]


def test_reports_about_others_are_ignored() -> None:
    controller = Scripted()
    rig = Rig(controller=controller)
    rig.frame()
    # nor do they count as an answer
    assert rig.give(encode_ccfb(report(0, [0], at=10.0, ssrc=99))) == []
    assert rig.give(encode_ccfb(CongestionFeedback(1, [], 0))) == []
    assert rig.give(encode_ccfb(CongestionFeedback(1, [BlockList(SSRC, 0, [])], 0))) == []
    assert rig.ignored == {"foreign_ssrc": 1, "empty": 2}
    assert controller.reports == []


def test_the_controllers_queue_delay_is_sampled_at_each_report() -> None:
    rig = Rig(controller=Scripted())
    rig.frame()
    rig.feedback(0, [0])
    assert rig.session.stats.queue_delay.maximum == 0.0125
    assert rig.session.stats.queue_delay_histogram.count == 1


def test_a_lost_packet_is_sent_again_from_the_front_with_the_same_number() -> None:
    rig = Rig(first_seq=65_534)
    rig.frames(4, 0.0625)
    rig.until(10.25)
    rig.feedback(65_534, [192, None, 64, 0])
    assert [seq for _, seq in rig.media] == [65_534, 65_535, 0, 1, 65_535]
    stats = rig.session.stats
    assert (stats.retransmitted_packets, stats.retransmitted_bytes) == (1, 1224)
    assert (stats.packets, stats.bytes) == (5, 6120)


def test_a_repair_whose_packet_is_acknowledged_meanwhile_is_not_sent() -> None:
    controller = Scripted()
    rig = Rig(controller=controller)
    rig.frames(3, 0.0625)
    controller.may = None
    rig.until(10.25)
    rig.feedback(0, [128, None, 0])
    rig.feedback(1, [100], at=10.26)
    controller.may = 0.0
    rig.frame()
    assert [seq for _, seq in rig.media] == [0, 1, 2, 3]
    assert rig.session.stats.retransmitted_packets == 0


def test_a_restarted_receivers_clock_gives_no_mad_round_trip() -> None:
    rig = Rig()
    for step in range(40):
        rig.until(10.0 + step / 16)
        rig.frame()
        rig.until(rig.now + 1 / 32)
        rig.feedback(step, [16], at=500.0 + rig.now if step < 20 else rig.now - 10.0)
    rtt = rig.session.stats.rtt
    assert (rtt.minimum, rtt.maximum) == (0.015625, 0.015625)
    assert rtt.count == 40
    assert rig.session.network_loss(now=30.0) == (0, 40)


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
    assert rig.session.stats.keyframe_requests == {"target": 0, "loss": 0, "receiver": 2}


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


# --- circuit breaker and silence ---------------------------------------------------------------


def test_the_breaker_halves_the_rate_and_the_first_report_lifts_it() -> None:
    rig = Rig()
    rates = {}
    for step in range(0, 160):
        rig.until(10.0 + step / 32)
        rates[step / 32] = rig.frame(100).target_bps
    assert rates[1.46875] == RATE
    assert rates[1.5625] == RATE / 2
    assert rates[1.96875] == RATE / 2
    assert rates[2.0625] == RATE / 4
    assert rates[2.5625] == 150_000
    assert rates[4.96875] == 150_000
    assert rig.session.limit_bps == 150_000
    assert rig.session.stats.breaker_trips == 1
    events = rig.feedback(150, [0])
    assert events == [PeerHeard(), RateLimited(None)]
    assert rig.frame(100).target_bps == RATE


def test_the_breaker_tells_each_step() -> None:
    rig = Rig()
    rig.frame()
    events = rig.until(13.0)
    assert [event.limit_bps for event in events if isinstance(event, RateLimited)] == [
        600_000,
        300_000,
        150_000,
    ]


def test_reports_that_acknowledge_nothing_do_not_lift_the_limit() -> None:
    rig = Rig()
    rig.frames(3, 0.5)
    rig.feedback(0, [64])
    rig.until(11.5)
    rig.frame()
    rig.until(13.5)
    assert rig.session.limit_bps is not None
    rig.feedback(0, [0])
    assert rig.session.limit_bps is not None
    rig.feedback(0, [0, 0])
    assert rig.session.limit_bps is None


def test_a_fixed_rate_is_exempt() -> None:
    rig = Rig(breaker=False)
    rig.frame()
    rig.until(20.0)
    assert rig.frame().target_bps == RATE


def test_a_slow_source_is_not_a_silent_peer() -> None:
    rig = Rig()
    events: list[Event] = []
    for step in range(4):
        rig.frame()
        events += rig.until(rig.now + 0.25)
        events += rig.feedback(step, [0])
        events += rig.until(rig.now + 8.0)
    assert events == [PeerHeard()]
    assert rig.session.stats.breaker_trips == 0


def test_silence_is_told_once_and_its_end() -> None:
    rig = Rig()
    rig.frame()
    events = rig.until(15.0)
    (silent,) = [event for event in events if isinstance(event, PeerSilent)]
    assert 1.0 < silent.seconds <= 1.06
    assert PeerHeard() in rig.feedback(0, [0])


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


# --- the BW tool's profile ---------------------------------------------------------------------


def test_nothing_is_sent_again_to_a_peer_that_never_answered() -> None:
    rig = Rig()
    rig.frames(10, 1 / 32)
    rig.session.close(now=rig.now)
    assert SessionClosed() in rig.until(rig.now + 3)
    assert len(rig.media) == 10


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
