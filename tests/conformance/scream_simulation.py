"""The discrete simulation behind the SCReAM reference series, and the replay of call traces.

Time runs in ticks of 1/65536 s. A step is 8 ticks: feedback, frames, transmit,
receiver, in this order. Steps in which nothing can happen are skipped: no
report, frame or packet is due, and the controller's `next_timeout` and the
pacing time of the waiting packet are in the future.
"""

import math
import os
import tomllib
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from streamd.cc.api import FeedbackReport, Limits
from streamd.cc.scream import ScreamConfig, ScreamController
from streamd.ecn import CE, ECT0, ECT1, NOT_ECT
from streamd.session.feedback import BW_TOOL_PROFILE, FeedbackGenerator
from streamd.session.history import SentHistory
from streamd.session.queue import MediaPacket, PacketQueue
from streamd.wire.ccfb import CongestionFeedback, decode_ccfb, encode_ccfb

HZ = 65536
START = 65
STEP = 8
ECN_NAMES = {"ect1": ECT1, "ect0": ECT0, "notect": NOT_ECT}
RECEIVER_SSRC = 10
FPS = 50
WIRE_OVERHEAD = 28


def vectors() -> Path:
    """The folder of reference data."""
    default = Path(__file__).resolve().parents[2] / ".." / "shared" / "reference"
    return Path(os.environ.get("STREAMD_VECTORS", default))


def scenarios() -> dict[str, dict[str, Any]]:
    """All scenarios listed; empty where the data is missing."""
    path = vectors() / "scream" / "scenarios.toml"
    if not path.is_file():
        return {}
    with path.open("rb") as file:
        return tomllib.load(file)


@dataclass(slots=True)
class Sender:
    """A controller with a queue and a ledger per stream: what a session has around it."""

    controller: ScreamController
    queues: dict[int, PacketQueue] = field(default_factory=dict)
    histories: dict[int, SentHistory] = field(default_factory=dict)
    unsent: int = 0

    def add(self, ssrc: int, limits: Limits, priority: float) -> None:
        self.queues[ssrc] = queue = PacketQueue()
        self.histories[ssrc] = SentHistory(ssrc)
        self.controller.add_stream(ssrc, queue=queue, limits=limits, priority=priority, now=0.0)

    def queue(self, ssrc: int, seq: int, size: int, marker: bool, rtp: int, t: int) -> None:
        packet = MediaPacket(ssrc, seq, rtp, marker, bytes(size), t / HZ)
        self.queues[ssrc].push(packet)
        self.controller.on_media_packet(ssrc, size, marker, now=t / HZ)

    def transmit(self, t: int) -> MediaPacket | None:
        """The packet that leaves now, if the controller lets one go."""
        now = t / HZ
        ssrc = self.controller.select(now=now)
        if ssrc is None:
            return None
        queue = self.queues[ssrc]
        at = self.controller.may_send(ssrc, queue.head_size(), now=now)
        if at is None or at > now:
            return None
        packet = queue.pop()
        self.histories[ssrc].on_sent(packet, now)
        self.controller.on_packet_sent(packet, now=now)
        return packet

    def feedback(self, data: bytes, t: int) -> None:
        """A complete RTCP packet in the blocks-minus-1 dialect."""
        now = t / HZ
        decoded = decode_ccfb(data, minus_one=True)
        report = FeedbackReport(now, decoded.timestamp / HZ)
        for item in decoded.lists:
            one = CongestionFeedback(decoded.sender_ssrc, [item], decoded.timestamp)
            report.streams += self.histories[item.ssrc].on_feedback(one, now=now).streams
        self.controller.on_feedback(report, now=now)


def new_sender(scenario: dict[str, Any], profile: str) -> Sender:
    """BW-tool defaults; the clock of the controller is that of the simulation."""
    name = {"head": "head", "p0304": "2026-03-04"}[profile]
    config = ScreamConfig(profile=name, initial_window=12500)
    ecn = ECN_NAMES[scenario["ecn"]]
    sender = Sender(ScreamController(config, ecn=ecn, now=START / HZ, epoch=0.0))
    limits = Limits(1_000_000, 1_000_000, scenario["max_bps"])
    for stream in scenario.get("streams", [{"ssrc": 100, "priority": 1.0}]):
        sender.add(stream["ssrc"], limits, stream["priority"])
    return sender


@dataclass(slots=True)
class Link:
    """One FIFO with a rate schedule, tail drop, random loss, marking and an outage."""

    rates: list[tuple[float, float]]
    limit: int
    loss: float
    l4s_step: float | None
    classic_mark: float | None
    outage: tuple[float, float] | None
    ce_every: int
    random: int = 12345
    handed: int = 0
    drops: int = 0
    departed: float = 0.0
    sojourn: float = 0.0
    last_mark: float = -1e18
    waiting: deque[float] = field(default_factory=deque)

    @classmethod
    def of(cls, scenario: dict[str, Any]) -> "Link":
        outage = scenario.get("outage_s")
        return cls(
            rates=[(float(at), float(bps)) for at, bps in scenario["rate_bps"]],
            limit=scenario["limit_packets"],
            loss=scenario.get("loss", 0.0),
            l4s_step=scenario.get("l4s_step_s"),
            classic_mark=scenario.get("classic_mark_s"),
            outage=(outage[0] * HZ, outage[1] * HZ) if outage else None,
            ce_every=scenario.get("ce_every_packets", 0),
        )

    def send(self, size: int, t: int) -> tuple[float, bool] | None:
        """Departure time (ticks, real) and whether it is marked; None: dropped."""
        self.handed += 1
        self.random = (1664525 * self.random + 1013904223) % (1 << 32)
        waiting = self.waiting
        while waiting and waiting[0] <= t:
            waiting.popleft()
        if self.random / (1 << 32) < self.loss or len(waiting) >= self.limit:
            self.drops += 1
            return None
        start = max(float(t), self.departed)
        if self.outage and self.outage[0] <= start < self.outage[1]:
            start = self.outage[1]
        rate = next(bps for at, bps in reversed(self.rates) if start / HZ >= at)
        self.departed = start + (size + WIRE_OVERHEAD) * 8 * HZ / rate
        waiting.append(self.departed)
        self.sojourn = (start - t) / HZ
        return self.departed, self._marks(start)

    def _marks(self, start: float) -> bool:
        marked = bool(self.ce_every) and self.handed % self.ce_every == 0
        if self.l4s_step is not None and self.sojourn > self.l4s_step:
            marked = True
        if self.classic_mark is None or self.sojourn <= self.classic_mark:
            return marked
        if (start - self.last_mark) / HZ >= 0.03:
            self.last_mark = start
            marked = True
        return marked


@dataclass(slots=True)
class _Media:
    """The synthetic encoder of one stream."""

    ssrc: int
    frames: int = 0
    seq: int = 0
    last_boost: float = 0.0

    def next_frame(self) -> int:
        return START + self.frames * HZ // FPS


class Simulation:
    """One scenario, step by step; `rows()` yields the log rows of the reference."""

    def __init__(self, scenario: dict[str, Any], profile: str, *, every_step: bool = False) -> None:
        """`every_step`: leave none out, as the model is written."""
        self.scenario = scenario
        self.every_step = every_step
        self.sender = new_sender(scenario, profile)
        self.link = Link.of(scenario)
        self.half_rtt = scenario["rtt_s"] * HZ / 2
        self.ecn = ECN_NAMES[scenario["ecn"]]
        self.receiver = FeedbackGenerator(BW_TOOL_PROFILE)
        self.media = [_Media(ssrc) for ssrc in self.sender.queues]
        self.to_receiver: deque[tuple[float, MediaPacket, int]] = deque()
        self.to_sender: deque[tuple[float, bytes]] = deque()
        self.sent = 0
        self.negative = 0
        self.received_bytes = dict.fromkeys(self.sender.queues, 0)
        self.reports: list[tuple[int, bytes]] = []
        """Every RTCP packet with the time it was made."""

    def rows(self, seconds: float) -> Iterator[dict[str, float]]:
        """Log rows up to a time."""
        t, logged, end = START, 0, int(seconds * HZ)
        while t < end:
            self.step(t)
            if t >= logged * HZ / 10:
                yield self.row(logged, t)
                logged += 1
            if self.every_step:
                t += STEP
                continue
            wake = min(self.wake_up(t), math.ceil(logged * HZ / 10))
            t = max(t + STEP, START + math.ceil((wake - START) / STEP) * STEP)

    def step(self, t: int) -> None:
        while self.to_sender and self.to_sender[0][0] <= t:
            self.sender.feedback(self.to_sender.popleft()[1], t)
        for media in self.media:
            if t >= media.next_frame():
                self.make_frame(media, t)
        for _ in range(64):
            packet = self.sender.transmit(t)
            if packet is None:
                break
            self.sent += 1
            self.hand_to_link(packet, t)
        while self.to_receiver and self.to_receiver[0][0] <= t:
            _, packet, ecn = self.to_receiver.popleft()
            self.received_bytes[packet.ssrc] += packet.size
            if self.receiver.on_packet(
                packet.ssrc, packet.seq & 0xFFFF, packet.marker, ecn, now=t / HZ
            ):
                self.report(t)
        if (t - START) // STEP % 4 == 0:
            self.report(t)

    def make_frame(self, media: _Media, t: int) -> None:
        media.frames += 1
        decision = self.sender.controller.decision(media.ssrc, now=t / HZ)
        if decision.keyframe_wanted:
            self.negative += 1
            return
        left = int(decision.target_bps / FPS / 8)
        boost = self.scenario.get("frame_boost")
        if boost and t / HZ - media.last_boost >= boost["every_s"]:
            left = int(left * boost["factor"])
            media.last_boost = t / HZ
        rtp = int(t / HZ * 90000)
        while left > 0:
            payload = min(left, decision.mss_bytes)
            left -= payload
            self.sender.queue(media.ssrc, media.seq, payload + 12, left <= 0, rtp, t)
            media.seq += 1

    def hand_to_link(self, packet: MediaPacket, t: int) -> None:
        fate = self.link.send(packet.size, t)
        if fate is not None:
            departure, marked = fate
            ecn = CE if marked and self.ecn != NOT_ECT else self.ecn
            self.to_receiver.append((departure + self.half_rtt, packet, ecn))

    def report(self, t: int) -> None:
        lists = self.receiver.poll_report(now=t / HZ)
        if lists:
            feedback = CongestionFeedback(RECEIVER_SSRC, lists, t)
            data = encode_ccfb(feedback, minus_one=True)
            self.reports.append((t, data))
            self.to_sender.append((t + self.half_rtt, data))

    def wake_up(self, t: int) -> float:
        """The earliest time at which a step may do something."""
        wake = float(min(media.next_frame() for media in self.media))
        if self.to_sender:
            wake = min(wake, self.to_sender[0][0])
        if self.to_receiver:
            wake = min(wake, self.to_receiver[0][0])
        timeouts = [self.receiver.next_timeout(), self.sender.controller.next_timeout()]
        for at in timeouts:
            if at is not None:
                # a little early: the exact rule is asked for in the step itself
                wake = min(wake, at * HZ - STEP)
        return min(wake, self.pacing_wake_up(t))

    def pacing_wake_up(self, t: int) -> float:
        ssrc = self.sender.controller.select(now=t / HZ)
        if ssrc is None:
            return math.inf
        size = self.sender.queues[ssrc].head_size()
        at = self.sender.controller.may_send(ssrc, size, now=t / HZ)
        return math.inf if at is None else at * HZ

    def row(self, number: int, t: int) -> dict[str, float]:
        """The columns of the reference log."""
        first = self.media[0].ssrc
        every = [self.sender.controller.stats(media.ssrc) for media in self.media]
        stats = every[0]
        extra = stats.extra
        head = self.sender.queues[first].head_time()
        row = {
            "t": number / 10,
            "target_bps": stats.target_bps,
            "ref_wnd": extra["ref_wnd_bytes"],
            "ref_wnd_i": extra["ref_wnd_i_bytes"],
            "bytes_in_flight": stats.bytes_in_flight,
            "queue_delay": stats.queue_delay or 0.0,
            "queue_delay_avg": extra["queue_delay_avg_seconds"],
            "srtt": stats.srtt or 0.0,
            "l4s_alpha": extra["l4s_alpha_ratio"],
            "window_headroom": extra["window_headroom_ratio"],
            "pace_interval": extra["pace_interval_seconds"],
            "rtp_queue_delay": 0.0 if head is None else t / HZ - head,
            "pkts_tx": self.sent,
            "pkts_lost_detected": sum(each.packets_lost for each in every),
            "pkts_ce": sum(each.packets_ce for each in every),
            "link_drops": self.link.drops,
            "link_queue_delay": self.link.sojourn,
            "rx_bytes": self.received_bytes[first],
            "negative_target_calls": self.negative,
        }
        if len(every) > 1:
            row["target_bps_2"] = every[1].target_bps
            row["rx_bytes_2"] = self.received_bytes[self.media[1].ssrc]
        return row
