"""A constant rate, for tests, for probing a link, and as the controller a newcomer copies.

It reacts to nothing. The session's circuit breaker does not apply to it either.
"""

import math
import random
from dataclasses import dataclass

from streamd.cc.api import (
    Controller,
    ControllerSpec,
    ControllerStats,
    FeedbackReport,
    Limits,
    MediaQueue,
    RateDecision,
    SentPacket,
)
from streamd.ecn import CE

PACING_HEADROOM = 1.5
"""A frame leaves in two thirds of its interval, as with SCReAM, so that queues compare."""
MAX_TRACKED = 16384
"""Packets in flight that are remembered; what is never acknowledged must not pile up."""


@dataclass(frozen=True, slots=True)
class FixedConfig:
    """`[cc.fixed]`."""

    rate_bps: float = 1_000_000.0
    """Media rate, RTP headers included."""
    mss_bytes: int = 1200
    """RTP payload per packet."""


class FixedController(Controller):
    """Always the same target; never blocked."""

    def __init__(self, config: FixedConfig, *, ecn: int) -> None:
        self._config = config
        self._ecn = ecn
        self._queues: dict[int, MediaQueue] = {}
        self._flight: dict[tuple[int, int], int] = {}
        self._in_flight = 0
        self._lost_bytes = 0
        self._lost_packets = 0
        self._ce_packets = 0
        self._srtt: float | None = None

    def add_stream(
        self,
        ssrc: int,
        *,
        queue: MediaQueue,
        limits: Limits,
        priority: float = 1.0,
        now: float,
    ) -> None:
        self._queues[ssrc] = queue

    def select(self, *, now: float) -> int | None:
        for ssrc, queue in self._queues.items():
            if len(queue):
                return ssrc
        return None

    def on_packet_sent(self, packet: SentPacket, *, now: float) -> float:
        # A number that is sent again is in flight once.
        key, size = (packet.ssrc, packet.seq), packet.size
        self._in_flight += size - self._flight.get(key, 0)
        self._flight[key] = size
        if len(self._flight) > MAX_TRACKED:
            self._landed(next(iter(self._flight)))
        return size * 8 / (self._config.rate_bps * PACING_HEADROOM)

    def on_feedback(self, report: FeedbackReport, *, now: float) -> None:
        for stream in report.streams:
            for packet in stream.acked:
                self._landed((packet.ssrc, packet.seq))
                self._ce_packets += packet.ecn == CE
            for packet in stream.lost:
                self._landed((packet.ssrc, packet.seq))
                self._lost_bytes += packet.size
                self._lost_packets += 1
            if stream.acked and stream.acked[-1].transmissions == 1:
                rtt = now - stream.acked[-1].sent_at
                self._srtt = rtt if self._srtt is None else self._srtt + (rtt - self._srtt) / 8

    def forget_unacked(self, ssrc: int, *, now: float) -> None:
        for key in [key for key in self._flight if key[0] == ssrc]:
            self._landed(key)

    def _landed(self, key: tuple[int, int]) -> None:
        self._in_flight -= self._flight.pop(key, 0)

    def decision(self, ssrc: int, *, now: float) -> RateDecision:
        rate = self._config.rate_bps
        return RateDecision(
            rate, rate * PACING_HEADROOM, math.inf, self._config.mss_bytes, self._ecn
        )

    def stats(self, ssrc: int) -> ControllerStats:
        rate = self._config.rate_bps
        return ControllerStats(
            target_bps=rate,
            pacing_bps=rate * PACING_HEADROOM,
            bytes_in_flight=self._in_flight,
            srtt=self._srtt,
            bytes_lost=self._lost_bytes,
            packets_lost=self._lost_packets,
            packets_ce=self._ce_packets,
            state="fixed",
        )


def _build(config: FixedConfig, *, ecn: int, rng: random.Random, now: float) -> FixedController:
    return FixedController(config, ecn=ecn)


SPEC = ControllerSpec(
    name="fixed",
    summary="constant rate, no reaction to anything",
    config_type=FixedConfig,
    build=_build,
    ecn_modes=("notect", "ect0", "ect1"),
    source="streamd",
)
