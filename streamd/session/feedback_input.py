"""What the sender makes of a feedback report: controller, repair, statistics."""

from streamd.cc.api import Controller, FeedbackReport, SentPacket
from streamd.session.history import SentHistory
from streamd.session.queue import PacketQueue
from streamd.session.repair import Retransmitter
from streamd.session.stats import SenderStats, count_reason
from streamd.wire.ccfb import CongestionFeedback

INITIAL_RTT = 0.1
"""Assumed before the first sample (s)."""


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
    ) -> None:
        self._history = history
        self._controller = controller
        self._stats = stats
        self._repair = Retransmitter(history, queue, limit=retransmissions)
        self._newest_report: float | None = None
        self.srtt = INITIAL_RTT
        """Smoothed round-trip time without the receiver's holding time (s)."""

    def on_feedback(self, feedback: CongestionFeedback, size: int, *, now: float) -> bool:
        """Process one report of `size` bytes. False: it was ignored, and counted by reason."""
        report = self._history.on_feedback(feedback, now=now)
        reason = self._refuse(report)
        if reason:
            count_reason(self._stats.feedback_ignored, reason)
            return False
        if self._newest_report is None or report.report_time > self._newest_report:
            self._newest_report = report.report_time
        self._count(size, now)
        ecn = self._stats.ecn_acked
        for stream in report.streams:
            for packet in stream.acked:
                ecn[packet.ecn] += 1
            if stream.acked:
                self._sample_rtt(stream.acked[-1], report, now)
        self._controller.on_feedback(report, now=now)
        self._repair.on_report(self.srtt, now)
        self._sample_queue_delay(report)
        return True

    def _refuse(self, report: FeedbackReport) -> str | None:
        """Why a report is of no use, or None."""
        if not report.streams:
            return "nothing_of_ours"
        if any(stream.acked for stream in report.streams):
            return None
        if self._newest_report is not None and report.report_time <= self._newest_report:
            return "duplicate_or_reordered"
        return None

    def _count(self, size: int, now: float) -> None:
        stats = self._stats
        stats.feedback_reports += 1
        stats.feedback_bytes += size
        if stats.last_feedback_at is not None:
            stats.feedback_interval_histogram.observe(now - stats.last_feedback_at)
        stats.last_feedback_at = now

    def _sample_rtt(self, newest: SentPacket, report: FeedbackReport, now: float) -> None:
        if newest.transmissions > 1:
            return
        held = max(0.0, report.report_time - newest.arrived_at)
        rtt = max(0.0, now - newest.sent_at - held)
        self.srtt += (rtt - self.srtt) / 8
        self._stats.rtt.add(rtt)

    def _sample_queue_delay(self, report: FeedbackReport) -> None:
        delay = self._controller.stats(report.streams[-1].ssrc).queue_delay
        if delay is not None:
            self._stats.queue_delay.add(delay)
            self._stats.queue_delay_histogram.observe(delay)
