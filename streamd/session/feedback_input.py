"""What the sender makes of a feedback report: controller, repair, statistics."""

from streamd.cc.api import Controller, FeedbackReport, SentPacket
from streamd.qoe.tool import ToolQueueDelay
from streamd.session.history import SentHistory
from streamd.session.queue import PacketQueue
from streamd.session.repair import Retransmitter
from streamd.session.stats import SenderStats, count_reason
from streamd.wire.ccfb import CongestionFeedback

INITIAL_RTT = 0.1
"""Assumed before the first sample (s)."""
MAX_HELD = 7.99
"""A holding time at the end of the format's range tells no round trip (s)."""


class FeedbackInput:
    """Takes decoded reports; refuses those that say nothing new."""

    def __init__(
        self,
        history: SentHistory,
        queue: PacketQueue,
        controller: Controller,
        stats: SenderStats,
        *,
        retransmissions: int,
        deadline: float,
        tool: ToolQueueDelay,
    ) -> None:
        self._history = history
        self._controller = controller
        self._stats = stats
        self._repair = Retransmitter(history, queue, limit=retransmissions, deadline=deadline)
        self._tool = tool
        self._newest_report: float | None = None
        self.srtt = INITIAL_RTT
        """Smoothed round-trip time without the receiver's holding time (s)."""

    def on_feedback(self, feedback: CongestionFeedback, size: int, *, now: float) -> bool:
        """Process one report of `size` bytes. True if it acknowledged anything.

        What it says of packets never sent or not ours, and a report without any
        news, never reaches the controller; each is counted by reason.
        """
        history = self._history
        unsent, foreign = history.unsent_count, history.foreign_lists
        jumps = history.clock_jumps
        report = history.on_feedback(feedback, now=now)
        if history.unsent_count != unsent:
            self._ignore("never_sent")
        if history.foreign_lists != foreign:
            self._ignore("foreign_ssrc")
        if not report.streams:
            if history.unsent_count == unsent and history.foreign_lists == foreign:
                self._ignore("empty")
            return False
        newest = _newest_acked(report)
        if newest is None and history.clock_jumps != jumps:
            # From the future, or from long ago: a receiver that restarted would have news.
            history.take_back_jump()
            self._ignore("wrong_time")
            return False
        if newest is None and self._is_old(report):
            self._ignore("duplicate_or_reordered")
            return False
        if self._newest_report is None or report.report_time > self._newest_report:
            self._newest_report = report.report_time
        self._count(report, size, now)
        if newest is not None:
            self._sample_rtt(newest, report, now)
        self._controller.on_feedback(report, now=now)
        self._repair.on_report(self.srtt, now)
        self._sample_queue_delay(report, now)
        return newest is not None

    def repair_tail(self, now: float) -> None:
        """Nothing more is sent that a report could name: repair by time alone."""
        self._repair.on_silence(self.srtt, now)

    def take_hopeless(self) -> bool:
        """Whether packets were given up because of their age since the last call."""
        hopeless, self._repair.hopeless = self._repair.hopeless, False
        return hopeless

    def _ignore(self, reason: str) -> None:
        count_reason(self._stats.feedback_ignored, reason)

    def _is_old(self, report: FeedbackReport) -> bool:
        return self._newest_report is not None and report.report_time <= self._newest_report

    def _count(self, report: FeedbackReport, size: int, now: float) -> None:
        stats = self._stats
        stats.feedback_reports += 1
        stats.feedback_bytes += size
        if stats.last_feedback_at is not None:
            stats.feedback_interval_histogram.observe(now - stats.last_feedback_at)
        stats.last_feedback_at = now
        ecn = stats.ecn_acked
        for stream in report.streams:
            for packet in stream.acked:
                ecn[packet.ecn] += 1

    def _sample_rtt(self, newest: SentPacket, report: FeedbackReport, now: float) -> None:
        """One sample per report (metrics 1.3); none by a packet sent more than once."""
        held = max(0.0, report.report_time - newest.arrived_at)
        if newest.transmissions > 1 or held > MAX_HELD:
            return
        rtt = max(0.0, now - newest.sent_at - held)
        self.srtt = rtt if not self._stats.rtt.count else self.srtt + (rtt - self.srtt) / 8
        self._stats.rtt.add(rtt)

    def _sample_queue_delay(self, report: FeedbackReport, now: float) -> None:
        delay = self._controller.stats(report.streams[-1].ssrc).queue_delay
        if delay is not None:
            self._stats.queue_delay.add(delay)
            self._stats.queue_delay_histogram.observe(delay)
            self._tool.on_estimate(delay, now)


def _newest_acked(report: FeedbackReport) -> SentPacket | None:
    newest: SentPacket | None = None
    for stream in report.streams:
        if stream.acked and (newest is None or stream.acked[-1].seq > newest.seq):
            newest = stream.acked[-1]
    return newest
