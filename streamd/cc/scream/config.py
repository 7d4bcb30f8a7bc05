"""Options of SCReAMv2: `[cc.scream]`, with the defaults of the public BW test tool.

Two profiles are two versions of the reference:

* `head` (2026-07): losses below 1 % are forgiven while the queue is short, a
  latency difference scales growth and headroom, the back-off on CE is gentler
  when the application sends less than the window allows.
* `2026-03-04`, the version behind the published L4S video results: every loss
  counts, a jitter measure scales growth and headroom.
"""

from dataclasses import dataclass

from streamd.errors import ConfigError

PROFILES = ("head", "2026-03-04")


@dataclass(frozen=True, slots=True)
class ScreamConfig:
    """`[cc.scream]`. Times in seconds, sizes in bytes, rates in bit/s."""

    profile: str = "head"
    """Version of the algorithm: `head` or `2026-03-04`."""
    loss_beta: float = 0.7
    """Window factor on loss (draft: BETA_LOSS)."""
    ecn_beta: float = 0.7
    """Window factor on CE with ECT(0) (draft: BETA_ECN, 0.8)."""
    queue_delay_target: float = 0.06
    """Queue delay above half of which the window shrinks (draft: QDELAY_TARGET_LO)."""
    max_window_headroom: float = 5.0
    """How far bytes in flight may exceed the window, at most (draft: REF_WND_OVERHEAD)."""
    pacing_headroom: float = 1.5
    """Pacing rate over media rate."""
    max_adaptive_pacing: float = 1.5
    """Further factor while a frame is larger than usual, at most."""
    inflight_headroom: float = 2.0
    """The window grows up to this many times the bytes in flight (draft: 1.5)."""
    increase_factor: float = 0.05
    """Multiplicative increase per round trip (draft: MUL_INCREASE_FACTOR, 0.02)."""
    max_rtp_queue_delay: float = 0.2
    """Age of the oldest waiting packet beyond which the queue is thrown away."""
    reorder_time: float = 0.03
    """How long an overtaken packet may still arrive before it is lost."""
    initial_window: int = 0
    """First reference window; 0: what the start rate sends in 100 ms."""
    mss_sizes: tuple[int, ...] = (1200,)
    """RTP payload sizes to choose from, ascending."""
    min_packets_in_flight: int = 0
    """Smaller packets are chosen to keep this many in flight; 0: always the largest size."""
    rate_hysteresis: float = 0.0
    """Relative rise the target must make before the encoder is told (a fall: a quarter of it)."""
    max_total_bps: float = 0.0
    """Bound on all streams together; 0: none."""
    relaxed_pacing: bool = False
    """Pace less strictly as the media rate nears its maximum."""
    frame_size_headroom: bool = True
    """Keep statistics of large frames and leave window for them."""
    adaptive_target_scale: bool = False
    """Correct the target for an encoder that over- or undershoots."""
    competing_flows: bool = False
    """Raise the delay target beside loss-based flows (draft: shared bottleneck detection)."""
    policer_protection: bool = False
    """Hold the window where a rate policer began to drop (experimental)."""

    def __post_init__(self) -> None:
        if self.profile not in PROFILES:
            raise ConfigError(f"profile {self.profile!r}: one of {', '.join(PROFILES)}")
        for name, low, high in _RANGES:
            value = getattr(self, name)
            if not low <= value <= high:
                raise ConfigError(f"{name} {value}: from {low} to {high}")
        sizes = self.mss_sizes
        if not sizes or list(sizes) != sorted(set(sizes)) or sizes[0] < 100 or sizes[-1] > 65000:
            raise ConfigError(f"mss_sizes {sizes}: ascending payload sizes from 100 to 65000")


_RANGES: tuple[tuple[str, float, float], ...] = (
    ("loss_beta", 0.1, 1.0),
    ("ecn_beta", 0.1, 1.0),
    ("queue_delay_target", 0.001, 1.0),
    ("max_window_headroom", 1.5, 100.0),
    ("pacing_headroom", 1.0, 10.0),
    ("max_adaptive_pacing", 1.0, 10.0),
    ("inflight_headroom", 1.0, 10.0),
    ("increase_factor", 0.0, 1.0),
    ("max_rtp_queue_delay", 0.01, 60.0),
    ("reorder_time", 0.0, 1.0),
    ("initial_window", 0, 100_000_000),
    ("min_packets_in_flight", 0, 10_000),
    ("rate_hysteresis", 0.0, 0.2),
    ("max_total_bps", 0.0, 1e11),
)
