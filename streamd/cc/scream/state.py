"""What the stages of SCReAMv2 share (spec 2): one connection, several streams.

Plain records: the stages read and write them, and each stage says which part
of the algorithm it is. Times are ticks of 1/65536 s, delays seconds, windows
whole bytes (every assignment truncates, as the reference does).
"""

from streamd.cc.api import Limits, MediaQueue
from streamd.cc.scream import constants as c
from streamd.cc.scream.config import ScreamConfig
from streamd.cc.scream.ring import TxRing

INFINITE = 1 << 62


class Stream:
    """One SSRC: its queue, its share of the rate, its packets in flight."""

    __slots__ = (
        "acked_bps",
        "acked_bytes",
        "adaptive_pace",
        "ce_bytes",
        "ce_packets",
        "checked_at",
        "credit",
        "discarded",
        "frame_bytes",
        "frame_count",
        "frame_period",
        "frame_time",
        "histogram",
        "large_frame",
        "last_discard",
        "last_positive",
        "last_tx",
        "loss_epoch",
        "lost_bps",
        "lost_bytes",
        "max_bps",
        "min_bps",
        "negative",
        "packets_lost",
        "priority",
        "queue",
        "rate_adjust",
        "rate_share",
        "rate_tick",
        "rel_frame_high",
        "repair",
        "ring",
        "rtp_avg_bps",
        "rtp_bytes",
        "rtp_history",
        "rtp_tick_count",
        "ssrc",
        "target_bps",
        "target_h",
        "target_scale",
        "total_lost_bytes",
        "tx_avg_bps",
        "tx_bytes",
    )

    def __init__(self, ssrc: int, queue: MediaQueue, limits: Limits, priority: float) -> None:
        self.ssrc = ssrc
        self.queue = queue
        self.priority = priority
        self.min_bps = float(limits.min_bps)
        self.max_bps = float(limits.max_bps)
        self.ring = TxRing()
        # the rate, in the order it is made: share of the window (8.11), target (3.6),
        # target as told to the encoder after hysteresis
        self.rate_share = self.min_bps
        self.target_bps = min(self.max_bps, max(self.min_bps, float(limits.start_bps)))
        self.target_h = self.target_bps
        self.target_scale = 1.0
        self.rate_adjust = 0.0
        self.last_positive = self.target_bps
        # one-shot answers (3.4)
        self.discarded = False
        self.repair = False
        self.negative = False
        self.loss_epoch = False
        self.last_discard: int | None = None
        self.checked_at = -1
        # frames (3.1)
        self.frame_bytes = 0
        self.frame_count = 0
        self.frame_time: int | None = None
        self.frame_period = 0.02
        self.large_frame = 0
        self.histogram = [1.0] + [0.0] * (c.HISTOGRAM_BINS - 1)
        self.rel_frame_high = 1.0
        self.adaptive_pace = 1.0
        # counters since the last rate tick (3.5), and the rates made of them
        self.rate_tick: int | None = None
        self.tx_bytes = 0
        self.acked_bytes = 0
        self.lost_bytes = 0
        self.ce_bytes = 0
        self.rtp_bytes = 0
        self.tx_avg_bps = 0.0
        self.acked_bps = 0.0
        self.lost_bps = 0.0
        self.rtp_avg_bps = 0.0
        self.rtp_history = [0.0] * 4
        self.rtp_tick_count = 0
        # sharing (9)
        self.credit = 0.0
        self.last_tx = 0
        # totals for statistics
        self.total_lost_bytes = 0
        self.packets_lost = 0
        self.ce_packets = 0

    def head_tick(self, conn: "Connection") -> int | None:
        """When the frame of the packet to leave next was queued; None when nothing waits."""
        head_time = self.queue.head_time()
        if head_time is None:
            return None
        return int((head_time - conn.epoch) * 65536.0)


class Connection:
    """One window, one path: everything the streams have in common."""

    __slots__ = (
        "alpha",
        "app_limited",
        "base_owd",
        "base_slot",
        "base_slots",
        "blocked",
        "bytes_in_flight",
        "bytes_newly_acked",
        "bytes_newly_acked_ce",
        "ce_event",
        "ce_in_feedback",
        "config",
        "current_min_owd",
        "delivered",
        "draining",
        "epoch",
        "event_in_rtt",
        "fraction_marked",
        "head",
        "i_blocked",
        "in_flight_history",
        "jitter",
        "l4s",
        "largest",
        "last_alpha",
        "last_base",
        "last_congestion",
        "last_event",
        "last_mss",
        "last_qd_avg",
        "last_qd_slow",
        "last_rate",
        "last_rate_limit",
        "last_record",
        "last_refresh",
        "last_rtt_tick",
        "last_slow",
        "last_srtt",
        "last_tx",
        "last_window",
        "latency_diff_avg",
        "latency_scale",
        "loss_event",
        "loss_event_rate",
        "loss_rate",
        "marked",
        "max_bif",
        "max_bif_prev",
        "max_policed",
        "min_dirty",
        "mss",
        "mss_changed",
        "mss_choice",
        "mss_eff",
        "new_frame",
        "next_tx",
        "pace_interval",
        "pace_ticks",
        "policed",
        "post_scale",
        "prev_mss",
        "qd_max_avg",
        "qd_min",
        "qd_min_avg",
        "qd_min_slow",
        "qd_target",
        "queue_delay",
        "queue_delay_avg",
        "rate_interval",
        "records",
        "ref_wnd",
        "ref_wnd_i",
        "ref_wnd_min",
        "ref_wnd_min_low",
        "rel_frame_high",
        "rtt_s",
        "s_rtt",
        "s_rtt_sh",
        "s_rtt_sh_prev",
        "sbd",
        "started",
        "total_acked_bps",
        "total_max_bps",
        "total_rtp_bps",
        "virtual_alpha",
        "virtual_ce_event",
        "window_headroom",
    )

    def __init__(self, config: ScreamConfig, *, l4s: bool, t: int, epoch: float) -> None:
        """`epoch`: the time in seconds at which the tick count is 0."""
        self.config = config
        self.epoch = epoch
        self.l4s = l4s
        self.head = config.profile == "head"
        self.started = t
        self._init_window(config)
        self._init_delay(config, t)
        self._init_events(t)
        # sums over all streams: as of the last rate tick, but the maximum
        self.total_acked_bps = 0.0
        self.total_rtp_bps = 0.0
        self.total_max_bps = 0.0
        self.rate_interval = 6553 if self.head else 3277  # (3.2), (12)
        self.last_rate = t
        self.last_rate_limit = t
        self.draining = False
        self.rel_frame_high = 1.0

    def _init_window(self, config: ScreamConfig) -> None:
        self.mss = c.INITIAL_MSS
        self.prev_mss = c.INITIAL_MSS
        self.mss_eff = c.INITIAL_MSS
        """getMss(): the larger of `mss` and `prev_mss`."""
        self.largest = 0
        """Largest packet ever queued."""
        self.mss_choice = len(config.mss_sizes) - 1
        self.ref_wnd = config.initial_window or 200
        self.ref_wnd_min_low = 2 * (config.mss_sizes[-1] + 12)
        self.ref_wnd_min = self.ref_wnd_min_low
        self.min_dirty = True
        """`ref_wnd_min` must be made anew at the next packet."""
        self.ref_wnd_i = 1
        self.i_blocked = False
        self.records: list[int] = []
        self.last_record = 0
        self.window_headroom = config.max_window_headroom
        self.bytes_in_flight = 0
        self.max_bif = 0
        self.max_bif_prev = 0
        self.in_flight_history = [0] * c.IN_FLIGHT_SLOTS
        self.max_policed = c.MAX_POLICED
        self.policed = False
        self.app_limited = False
        self.bytes_newly_acked = 0
        self.bytes_newly_acked_ce = 0
        self.post_scale = 0.0
        self.pace_interval = 0.0
        self.pace_ticks = 0
        self.next_tx = 0
        self.blocked = False

    def _init_delay(self, config: ScreamConfig, t: int) -> None:
        self.s_rtt = c.INITIAL_RTT
        self.rtt_s = 0.05
        """s_rtt in seconds."""
        self.s_rtt_sh = c.INITIAL_RTT
        self.s_rtt_sh_prev = c.INITIAL_RTT
        self.queue_delay = 0.0
        self.queue_delay_avg = 0.0
        self.qd_min = 1000.0
        self.qd_min_slow = 0.0
        self.qd_max_avg = 0.0
        self.qd_min_avg = 1000.0
        self.qd_target = config.queue_delay_target
        self.latency_diff_avg = 0.0
        self.latency_scale = 1.0
        self.jitter = 0.05
        self.sbd: list[float] = []
        self.base_owd = INFINITE
        self.current_min_owd = INFINITE
        self.base_slots: list[int] = []
        self.base_slot = 0
        self.last_base = t
        self.last_refresh = t - 3 * self.s_rtt

    def _init_events(self, t: int) -> None:
        self.alpha = c.INITIAL_ALPHA
        self.fraction_marked = 0.0
        self.virtual_alpha = 0.0
        self.delivered = 0
        self.marked = 0
        self.loss_rate = 0.0
        self.loss_event_rate = 0.0
        self.loss_event = False
        self.ce_event = False
        self.virtual_ce_event = False
        self.ce_in_feedback = False
        self.event_in_rtt = False
        self.new_frame = False
        self.last_event = t
        self.last_alpha = t
        self.last_qd_avg = t
        self.last_qd_slow = t
        self.last_slow = t
        self.last_rtt_tick = t
        self.last_srtt = t
        self.last_tx = t
        self.last_mss = t
        self.mss_changed = t
        self.last_congestion = 0
        self.last_window: int | None = None

    def pacing_bps(self) -> float:
        """Rate at which packets of the present size leave (bit/s)."""
        if self.pace_interval > 0:
            return self.mss_eff * 8 / self.pace_interval
        return self.config.pacing_headroom * self.total_max_bps
