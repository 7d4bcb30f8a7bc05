"""A clock driven by hand, and views of made-up counters."""

from dataclasses import dataclass, field

from streamd.cc.api import ControllerStats
from streamd.histogram import Histogram
from streamd.observability.model import SenderView
from streamd.session.stats import SenderStats


@dataclass
class HandClock:
    """Stands still until told otherwise."""

    time: float = 0.0
    epoch: float = 1_700_000_000.0

    def now(self) -> float:
        return self.time

    def unix(self) -> float:
        return self.epoch + self.time


@dataclass
class FakeQueue:
    """As `link.queue.QueueCounters`."""

    name: str = "l4s"
    departed_bytes: int = 0
    departed_packets: int = 0
    queued_bytes: int = 0
    drops: dict[str, list[int]] = field(default_factory=dict)
    marks: dict[str, int] = field(default_factory=dict)
    sojourn: Histogram = field(default_factory=lambda: Histogram((0.001, 0.0012, 0.005)))


def sender_view(stats: SenderStats, cc: ControllerStats) -> SenderView:
    """A view of a sender with a controller of two states and one metric of its own."""
    return SenderView(
        stats,
        cc,
        controller="scream",
        codec="vp9",
        last_feedback_unix=None,
        states=("increase", "reduce"),
        metrics={"alpha_ratio": "Share of marks, smoothed."},
    )
