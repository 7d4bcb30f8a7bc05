"""Latency of frames on one clock, and what is counted before the clocks are compared."""

import pytest

from streamd.session.clock_offset import ClockOffset
from streamd.session.latency import LatencyMeter
from streamd.session.stats import ReceiverStats
from streamd.wire.ntp import ntp_to_short, unix_to_ntp
from streamd.wire.rtcp import ExtendedReport, SenderReport
from streamd.wire.xr import LastReference

UNIX = 1_700_000_000.0
AHEAD = 3600.0
"""What the sender's clock is ahead of ours."""


class Rig:
    """A meter and the clock it asks."""

    def __init__(self) -> None:
        self.stats = ReceiverStats()
        self.clock = ClockOffset(ssrc=77, cname="receiver@here", unix_offset=UNIX)
        self.meter = LatencyMeter(self.stats, self.clock, unix_offset=UNIX)

    def compare(self, now: float, *, rtt: float) -> None:
        """An exchange with a sender `AHEAD`, of equal delays, begins at `now`."""
        ntp = self.clock.ask(now).reference_time()
        assert ntp is not None
        report = SenderReport(5, unix_to_ntp(UNIX + now + rtt / 2 + AHEAD), 0, 0, 0)
        answer = ExtendedReport.of_answer(5, LastReference(77, ntp_to_short(ntp)))
        self.clock.read([report, answer], source=5, now=now + rtt)

    def shown(self, now: float, latency: float, *, ahead: float = AHEAD) -> None:
        self.meter.shown(UNIX + now - latency + ahead, mended=False, now=now)


def test_capture_times_are_mapped_to_our_clock() -> None:
    rig = Rig()
    rig.compare(0.0, rtt=0.0625)
    rig.shown(1.0, 0.125)
    assert rig.stats.frame_latency.maximum == pytest.approx(0.125, abs=1e-6)
    assert rig.stats.clock_offset == pytest.approx(AHEAD, abs=1e-6)
    assert rig.stats.clock_bound == pytest.approx(0.03131, abs=1e-6)
    assert rig.stats.frames_late == {"repair": 0, "delay": 0}


def test_frames_shown_before_the_clocks_are_compared_wait() -> None:
    rig = Rig()
    rig.shown(0.5, 0.125)
    rig.shown(0.75, 0.5)
    assert rig.stats.frame_latency.count == 0
    assert rig.stats.clock_bound is None
    rig.compare(0.8, rtt=0.0625)
    rig.shown(1.0, 0.25)
    assert rig.stats.frame_latency.count == 3
    assert rig.stats.frame_latency.minimum == pytest.approx(0.125, abs=1e-6)
    assert rig.stats.frame_latency.maximum == pytest.approx(0.5, abs=1e-6)
    assert rig.stats.frames_late == {"repair": 0, "delay": 1}


def test_of_a_sender_that_does_not_answer_the_clocks_are_taken_to_agree() -> None:
    rig = Rig()
    rig.shown(0.0, 0.125, ahead=0.0)
    rig.shown(2.5, 0.25, ahead=0.0)
    assert rig.stats.frame_latency.count == 0
    rig.shown(3.0, 0.5, ahead=0.0)
    assert rig.stats.frame_latency.count == 1
    rig.meter.settle(3.0, final=True)
    assert rig.stats.frame_latency.count == 3
    assert rig.stats.clock_error_bound is None
    assert rig.stats.frames_negative_latency == 0


def test_the_bound_of_a_run_is_the_worst_one_used() -> None:
    rig = Rig()
    rig.compare(0.0, rtt=0.25)
    rig.shown(1.0, 0.125)
    rig.compare(1.0, rtt=0.0625)
    rig.shown(2.0, 0.125)
    assert rig.stats.clock_bound == pytest.approx(0.03131, abs=1e-6)
    assert rig.stats.clock_error_bound == pytest.approx(0.12506, abs=1e-6)


def test_less_than_nothing_is_a_fault_of_the_clocks_beyond_their_bound() -> None:
    rig = Rig()
    rig.compare(0.0, rtt=0.0625)
    rig.shown(1.0, -0.03)
    assert rig.stats.frames_negative_latency == 0
    rig.shown(2.0, -0.04)
    assert rig.stats.frames_negative_latency == 1
    assert rig.stats.frame_latency.count == 2
    assert rig.stats.frame_latency.minimum == 0.0


def test_what_waits_is_bounded() -> None:
    rig = Rig()
    for step in range(1_100):
        rig.shown(step / 1_000, 0.125)
    rig.meter.settle(1.1, final=True)
    assert rig.stats.frame_latency.count == 1_024
