"""Constants of SCReAMv2: clock, stages and limits that are no options.

Source: draft-ietf-ccwg-rfc8298bis-screamv2 and the public reference sender, in
the versions of 2026-07 (profile `head`) and 2026-03-04. The numbers (1), (7.4)
and so on in this package are sections of the project's SCReAM specification,
which was written from both. Times are in ticks of 1/65536 s unless a name ends
in `_S`; sizes in bytes.
"""

from typing import Final

TICKS: Final = 65536
"""Ticks per second: the Q16 "short NTP" clock of RFC 8888 timestamps."""
START_TICK: Final = 65
"""First value of the clock (1 ms): 0 means "never" in several places."""

# (1) delays and windows
INITIAL_RTT: Final = 3277  # 50 ms
REACTION_INTERVAL: Final = 1966  # 30 ms; draft: 25 ms
VIRTUAL_RTT_S: Final = 0.025  # draft: VIRTUAL_RTT
VIRTUAL_RTT: Final = 1638
POST_CONGESTION_RTTS: Final = 200  # draft: POST_CONGESTION_DELAY_RTT (100)
IDLE_CONGESTION_RTTS: Final = 100
MAX_RTT: Final = 1_000_000  # 15.26 s: a larger sample is not believed
MAX_QUEUE_DELAY_TARGET_S: Final = 0.3
MIN_WINDOW_HEADROOM: Final = 1.5
MIN_PACING_BPS: Final = 50_000.0
MIN_PACE_INTERVAL_S: Final = 10e-6
INITIAL_MSS: Final = 100
HEADER_OVERHEAD: Final = 20  # RTP and UDP header per packet, in the rate (8.11)
RATE_MARGIN: Final = 1.1
MAX_POLICED: Final = 1e8
"""No limit: the largest window of the rate-policer rule (6, 8.10)."""

# (1) gains
ALPHA_GAIN_UP: Final = 1 / 8  # draft: L4S_AVG_G_UP
ALPHA_DECAY: Final = 127 / 128  # draft: 1 - L4S_AVG_G_DOWN
INITIAL_ALPHA: Final = 0.1
QUEUE_DELAY_GAIN: Final = 1 / 4
LATENCY_THRESHOLD_S: Final = 0.010
LOSS_RATE_THRESHOLD: Final = 0.01
POLICER_LOSS_RATE: Final = 0.1
POLICER_BETA: Final = 0.8
POLICED_LOSS_BETA: Final = 0.95
ACKED_RATE_FRACTION: Final = 0.8

# (1) intervals
ALPHA_INTERVAL: Final = 655  # 10 ms
SLOW_INTERVAL: Final = 3277  # 50 ms
MSS_INTERVAL: Final = TICKS  # 1 s
MSS_HOLD: Final = 10 * TICKS
BASE_SLOT: Final = 10 * TICKS
BASE_SLOTS: Final = 50
REFRESH_AFTER: Final = 490 * TICKS
LOW_DELAY: Final = 66  # first tick count that is not below 1 ms
DRAIN_INTERVAL: Final = 60 * TICKS
DRAIN_MIN: Final = 6553  # 100 ms
DEADLOCK_TIME: Final = 32768  # 0.5 s
DISCARD_HOLD: Final = 16384  # 0.25 s
IN_FLIGHT_WARM_UP: Final = 2 * TICKS
IN_FLIGHT_SLOTS: Final = 20

CLOCK_JUMP: Final = 16 * TICKS
"""A queue delay beyond this is a receiver clock that started anew (deviation of ours)."""

# (1) transmitted-packet ring and loss scan
RING: Final = 4096
RING_MASK: Final = RING - 1
LOSS_DEPTH: Final = 512
LOSS_STEP: Final = 32
LATE_REPORT: Final = 536  # a report this far behind is older than the scan
MAX_RTP_STEP: Final = 50_000  # 90 kHz: a larger step of acknowledged media time is not believed
U32: Final = 0xFFFFFFFF
RTP_HZ: Final = 90_000.0

# (3.1) frame sizes
HISTOGRAM_BINS: Final = 50
HISTOGRAM_SPAN: Final = 2.0
HISTOGRAM_DECAY: Final = 1 - 1 / 1024
HISTOGRAM_PERCENTILE: Final = 0.8
HISTOGRAM_MIN_FRAMES: Final = 50
MIN_FRAME_PERIOD_S: Final = 1e-3

MAX_STREAMS: Final = 10
