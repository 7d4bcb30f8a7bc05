"""SCReAMv2 behind the controller interface: the stages put together.

Theory of operation. The sender keeps a reference window, about what the path
holds without queue, and lets the bytes in flight exceed it by a headroom. Each
report says which packets arrived, when, and which were marked CE; from it come
queue delay, round-trip time, losses and the marked share. The window reacts at
most once per 30 ms (`window.py`), the media rate follows the window
(`rate.py`), and packets are paced at 1.5 times the media rate (`pacing.py`).

Source: draft-ietf-ccwg-rfc8298bis-screamv2 and its public reference, in two
versions (`config.py`). The draft's names are kept: ref_wnd, s_rtt, l4s_alpha.

Calls and their sections: `on_media_packet` is newMediaFrame (3.1), `select`
the first half and `may_send` the second half of isOkToTransmit (3.2),
`on_packet_sent` addTransmitted (3.3), `decision` getTargetBitrate (3.4),
`on_feedback` sections 4 to 8. Time is kept in ticks of 1/65536 s that do not
wrap, so a session may last as long as it likes.

Deviations from the reference are listed in each stage, and all together in
docs/controllers/scream.md.
"""

from streamd.cc.api import (
    Controller,
    ControllerStats,
    FeedbackReport,
    Limits,
    MediaQueue,
    RateDecision,
    SentPacket,
)
from streamd.cc.filters import total
from streamd.cc.scream import constants as c
from streamd.cc.scream import events, frames, pacing, rate, streams, window
from streamd.cc.scream.config import ScreamConfig
from streamd.cc.scream.feedback import process_list
from streamd.cc.scream.ring import USED
from streamd.cc.scream.state import Connection, Stream
from streamd.ecn import ECT1
from streamd.errors import LocalMisuse

_TICKS = float(c.TICKS)


class ScreamController(Controller):
    """One window over one path; up to ten streams share it by priority."""

    def __init__(
        self, config: ScreamConfig, *, ecn: int, now: float, epoch: float | None = None
    ) -> None:
        """`ecn`: the codepoint sent; ECT(1) switches L4S on.

        `epoch` is the time of tick 0; by default 1 ms before `now`, which is
        where the reference starts its clock.
        """
        self._epoch = now - c.START_TICK / _TICKS if epoch is None else epoch
        self._now = now
        self._t = int((now - self._epoch) * _TICKS)
        self._ecn = ecn
        self._streams: dict[int, Stream] = {}
        self._order: list[Stream] = []
        self._only: Stream | None = None
        self._conn = Connection(config, l4s=ecn == ECT1, t=self._t, epoch=self._epoch)

    def add_stream(
        self, ssrc: int, *, queue: MediaQueue, limits: Limits, priority: float = 1.0, now: float
    ) -> None:
        """Raises LocalMisuse on a known SSRC, an eleventh stream, or senseless limits."""
        if ssrc in self._streams or len(self._order) == c.MAX_STREAMS:
            raise LocalMisuse(f"stream {ssrc}: known already, or more than {c.MAX_STREAMS}")
        if not 0 < limits.min_bps <= limits.max_bps or priority <= 0:
            raise LocalMisuse(f"stream {ssrc}: {limits}, priority {priority}")
        conn = self._conn
        stream = Stream(ssrc, queue, limits, priority)
        self._streams[ssrc] = stream
        self._order.append(stream)
        self._only = stream if len(self._order) == 1 else None
        conn.total_max_bps += stream.max_bps
        if not conn.config.initial_window and not conn.largest:
            conn.ref_wnd = int(total(s.target_bps for s in self._order) * 0.1 / 8)

    def on_media_packet(self, ssrc: int, size: int, marker: bool, *, now: float) -> None:
        if now != self._now:
            self._now = now
            self._t = int((now - self._epoch) * _TICKS)
        t = self._t
        conn = self._conn
        stream = self._streams[ssrc]
        stream.frame_bytes += size
        if marker:
            frames.end_of_frame(conn, stream, t)
        elif t != stream.checked_at:
            # (3.6) per packet: nothing but the age of the queue can have changed,
            # and at one instant that is the same for all packets
            rate.check_queue(conn, stream, t)
        two_rtt = 2 * conn.s_rtt
        if t - conn.last_refresh < two_rtt and t > two_rtt:
            frames.discard_for_refresh(stream)
            return
        stream.rtp_bytes += size
        if size > conn.largest:
            conn.largest = size
        if conn.min_dirty or conn.mss < conn.largest:
            # the reference looks at the packet to leave next, not at this one
            pacing.note_size(conn, stream.queue.head_size())

    def select(self, *, now: float) -> int | None:
        if now != self._now:
            self._now = now
            self._t = int((now - self._epoch) * _TICKS)
        t = self._t
        conn = self._conn
        if t - conn.last_rate > conn.rate_interval:
            rate.tick_rates(conn, self._order, t)
        stream = self._only
        if stream is None:
            stream = streams.choose_stream(self._order, t)
            if stream is None:
                return None
        elif not len(stream.queue):
            return None
        if t - conn.last_mss > c.MSS_INTERVAL:
            pacing.tick_mss(conn, t)
        return stream.ssrc

    def may_send(self, ssrc: int, size: int, *, now: float) -> float | None:
        if now != self._now:
            self._now = now
            self._t = int((now - self._epoch) * _TICKS)
        t = self._t
        conn = self._conn
        if t - conn.last_tx > c.DEADLOCK_TIME:
            self._streams[ssrc].ring.forget()
            conn.bytes_in_flight = 0
            conn.blocked = False
            return now
        limit = conn.ref_wnd * conn.window_headroom + conn.mss_eff
        if conn.bytes_in_flight + size > limit:
            conn.blocked = True
            return None
        if conn.next_tx > t:
            return self._epoch + conn.next_tx / _TICKS
        return now

    def on_packet_sent(self, packet: SentPacket, *, now: float) -> float:
        if now != self._now:
            self._now = now
            self._t = int((now - self._epoch) * _TICKS)
        t = self._t
        conn = self._conn
        stream = self._streams[packet.ssrc]
        ring = stream.ring
        seq = packet.seq
        size = packet.size
        index = seq & c.RING_MASK
        if seq <= ring.scanned:
            ring.reopen(seq)
        elif ring.hi_acked is None:
            ring.begin(seq)
        ring.flags[index] = USED
        ring.seqs[index] = seq
        ring.sizes[index] = size
        ring.tx[index] = t
        ring.rtp[index] = packet.rtp_time
        conn.bytes_in_flight += size
        stream.tx_bytes += size
        conn.last_tx = stream.last_tx = t
        if self._only is None:
            streams.share_credit(conn, self._order, stream, size)
        if conn.min_dirty or size > conn.mss:
            pacing.note_size(conn, size)
        conn.next_tx = t + conn.pace_ticks
        return conn.pace_interval

    def on_feedback(self, report: FeedbackReport, *, now: float) -> None:
        t = self._tick(now)
        conn = self._conn
        for item in report.streams:
            stream = self._streams.get(item.ssrc)
            if stream is None or stream.ring.hi_acked is None:
                continue
            behind = stream.ring.hi_acked - item.end_seq
            if behind > c.LOSS_DEPTH:
                if behind < c.LATE_REPORT:
                    return  # with the rest of the packet, as the reference does
                continue
            process_list(conn, stream, item, t)
            if item.end_received and events.end_of_report(conn, t):
                window.update_window(conn, self._order, t)
                for other in self._order:
                    rate.update_target(conn, other, t)
                events.events_handled(conn, t)

    def on_timeout(self, *, now: float) -> None:
        t = self._tick(now)
        self.select(now=now)
        if t - self._conn.last_tx > c.DEADLOCK_TIME:
            self._conn.blocked = False

    def next_timeout(self) -> float | None:
        conn = self._conn
        due = conn.last_rate + conn.rate_interval
        if conn.blocked:
            due = min(due, conn.last_tx + c.DEADLOCK_TIME)
        # the middle of the first tick that is late enough: rounding cannot fall short of it
        return self._epoch + (due + 1.5) / _TICKS

    def forget_unacked(self, ssrc: int, *, now: float) -> None:
        conn = self._conn
        in_flight = self._streams[ssrc].ring.forget()
        conn.bytes_in_flight = max(0, conn.bytes_in_flight - in_flight)
        if len(self._order) == 1:
            conn.bytes_in_flight = 0

    def target_bitrate(self, ssrc: int, *, now: float) -> float:
        """The reference's raw answer (3.4) in bit/s; negative: start the picture afresh."""
        return rate.target_bitrate(self._conn, self._streams[ssrc], self._tick(now))

    def decision(self, ssrc: int, *, now: float) -> RateDecision:
        conn = self._conn
        stream = self._streams[ssrc]
        raw = self.target_bitrate(ssrc, now=now)
        target = raw if raw > 0 else stream.last_positive
        mss = pacing.choose_mss(conn, self._t)
        loss_epoch, stream.loss_epoch = stream.loss_epoch, False
        return RateDecision(
            target_bps=min(stream.max_bps, max(stream.min_bps, target)),
            pacing_bps=conn.pacing_bps(),
            cwnd_bytes=conn.ref_wnd * conn.window_headroom + conn.mss_eff,
            mss_bytes=mss,
            ecn=self._ecn,
            keyframe_wanted=raw < 0,
            loss_epoch=loss_epoch,
        )

    def stats(self, ssrc: int) -> ControllerStats:
        conn = self._conn
        stream = self._streams[ssrc]
        return ControllerStats(
            target_bps=stream.target_bps,
            pacing_bps=conn.pacing_bps(),
            cwnd_bytes=conn.ref_wnd * conn.window_headroom + conn.mss_eff,
            bytes_in_flight=conn.bytes_in_flight,
            srtt=conn.rtt_s,
            queue_delay=conn.queue_delay,
            bytes_lost=stream.total_lost_bytes,
            packets_lost=stream.packets_lost,
            packets_ce=stream.ce_packets,
            state="l4s" if conn.l4s else "classic",
            extra=_extra(conn, stream),
        )

    def _tick(self, now: float) -> int:
        if now != self._now:
            self._now = now
            self._t = int((now - self._epoch) * _TICKS)
        return self._t


METRICS = {
    "ref_wnd_bytes": "Reference window",
    "ref_wnd_i_bytes": "Window at which congestion last began (inflection point)",
    "l4s_alpha_ratio": "Averaged share of CE-marked packets",
    "queue_delay_avg_seconds": "Averaged queue delay above its slow minimum",
    "queue_delay_target_seconds": "Queue delay the sender aims at",
    "window_headroom_ratio": "How far bytes in flight may exceed the window",
    "pace_interval_seconds": "Pacing interval per packet",
    "mss_bytes": "Largest RTP packet of the last one to two seconds",
    "loss_rate_ratio": "Filtered share of lost packets",
    "loss_event_rate_ratio": "Share of round trips with a congestion event",
    "latency_scale_ratio": "Growth scale from the swing of the delay (profile head)",
    "rate_adjust_ratio": "Target reduction because of the sender's own queue",
    "rtp_rate_bps": "Media rate into the sender's queue, averaged",
}


def _extra(conn: Connection, stream: Stream) -> dict[str, float]:
    return {
        "ref_wnd_bytes": conn.ref_wnd,
        "ref_wnd_i_bytes": conn.ref_wnd_i,
        "l4s_alpha_ratio": conn.alpha,
        "queue_delay_avg_seconds": conn.queue_delay_avg,
        "queue_delay_target_seconds": conn.qd_target,
        "window_headroom_ratio": conn.window_headroom,
        "pace_interval_seconds": conn.pace_interval,
        "mss_bytes": conn.mss_eff,
        "loss_rate_ratio": conn.loss_rate,
        "loss_event_rate_ratio": conn.loss_event_rate,
        "latency_scale_ratio": conn.latency_scale,
        "rate_adjust_ratio": stream.rate_adjust,
        "rtp_rate_bps": stream.rtp_avg_bps,
    }
