"""Builds a scenario's machines, runs them, and tells what happened.

Every random part draws from its own generator, named after the seed and its
place, so that adding a flow or a path shifts no other. Sources stop first, then
what they sent drains, as the daemons end: so encoded = decoded + lost.
"""

import random
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from streamd.clock import Clock, MonotonicClock
from streamd.config.capacity import load_capacity
from streamd.datagram import Address
from streamd.errors import StreamdError
from streamd.link.path import PathConfig, build_path
from streamd.link.record import PacketRecord
from streamd.media.factory import SYNTHETIC, open_decoder, open_encoder, open_source
from streamd.media.model import FrameSource
from streamd.qoe.samples import Samples
from streamd.results.link import is_media
from streamd.results.streams import Summary
from streamd.session.packetize import PAYLOAD_TYPES, StreamIdentity
from streamd.session.receiver import ReceiverOptions, ReceiverSession
from streamd.session.sender import SenderSession
from streamd.sim.events import DEFAULT_LIMIT, EventLog
from streamd.sim.model import FlowSpec, PathSpec, Scenario
from streamd.sim.nodes import End, PathNode, ReceiverNode, SenderNode
from streamd.sim.scheduler import Agenda, LateAgenda, Scheduler
from streamd.sim.summary import flow_summary, path_summary
from streamd.sim.tables import Qualities, Tables, tables

if TYPE_CHECKING:
    from streamd.media.quality import KeptPictures

UNIX_EPOCH = 1_700_000_000.0
"""Unix time (s) at the start of every run."""
LINGER = 0.25
"""How long a receiver outlives its sender (s): about what a process takes to end."""


_FORMATS = {number: codec for codec, number in PAYLOAD_TYPES.items()}


@dataclass(slots=True)
class Baseline:
    """Counters of a flow at the end of the warm-up."""

    at: float
    sent_packets: int = 0
    sent_bytes: int = 0
    received_packets: int = 0
    received_bytes: int = 0
    freezes: int = 0
    freeze_seconds: float = 0.0


@dataclass(slots=True)
class Flow:
    """One flow of a running world."""

    spec: FlowSpec
    sender: SenderNode
    receiver: ReceiverNode
    up: PathNode
    end: End
    record: PacketRecord
    baseline: Baseline


@dataclass(slots=True)
class RunResult:
    """What a run gave; all of it is a function of scenario, seed and code."""

    summary: Summary
    """Keys: scenario, seed, events_sha256, flows (by name), paths (by name)."""
    log: EventLog = field(repr=False)
    paths: dict[str, PathNode] = field(repr=False)
    scenario: Scenario = field(repr=False)
    quality: Qualities = field(repr=False, default=())

    def tables(self) -> Tables:
        """Compact columns: frames, packets, marks, drops, decisions, feedback, series."""
        return tables(self.log, self.scenario, self.paths, self.quality)


def simulate(scenario: Scenario, *, seed: int, event_limit: int = DEFAULT_LIMIT) -> RunResult:
    """Run a scenario. ConfigError or StartupError when a trace, source or codec cannot be had.

    `event_limit`: rows kept of each table; the digest covers all of them anyway.
    """
    world = World(scenario, seed, event_limit)
    try:
        world.run()
        return world.result()
    finally:
        world.close()


class World:
    """All machines of one run."""

    def __init__(self, scenario: Scenario, seed: int, event_limit: int = DEFAULT_LIMIT) -> None:
        self._scenario = scenario
        self._seed = seed
        self._begin = scenario.clock
        self._scheduler = Scheduler(scenario.clock)
        self._log = EventLog(
            [flow.name for flow in scenario.flows], list(scenario.paths), limit=event_limit
        )
        self.paths = {
            name: self._path(number, name, spec)
            for number, (name, spec) in enumerate(scenario.paths.items())
        }
        self._flows: list[Flow] = []
        try:
            for number, spec in enumerate(scenario.flows):
                self._flows.append(self._flow(number, spec))
        except StreamdError:
            self.close()
            raise
        self._running = len(self._flows)

    def run(self) -> None:
        """Until every session is closed. MediaError if an encoder fails on everything."""
        scheduler, scenario = self._scheduler, self._scenario
        for flow in self._flows:
            stop = scenario.duration
            if flow.spec.stop is not None:
                stop = min(stop, flow.spec.stop)
            scheduler.at(self._begin + flow.spec.start, partial(self._start, flow))
            scheduler.at(self._begin + stop, flow.sender.stop)
        if scenario.warmup:
            scheduler.at(self._begin + scenario.warmup, self._warmed_up)
        scheduler.run()
        self._log.settle(final=True)

    def result(self) -> RunResult:
        """After `run`."""
        now, scenario = self._scheduler.now, self._scenario
        summary: Summary = {
            "scenario": scenario.name,
            "seed": self._seed,
            "events_sha256": self._log.sha256(),
            "flows": {flow.spec.name: flow_summary(flow, now=now) for flow in self._flows},
            "paths": {
                name: path_summary(
                    node, scenario.paths[name], since=self._begin + scenario.warmup, now=now
                )
                for name, node in self.paths.items()
            },
        }
        compared = [flow.receiver.pictures for flow in self._flows]
        quality = [None if one is None else one.by_frame for one in compared]
        return RunResult(summary, self._log, self.paths, scenario, quality)

    def close(self) -> None:
        """Free the codecs."""
        for flow in self._flows:
            flow.sender.close()

    # --- building -----------------------------------------------------------------------------

    def _path(self, number: int, name: str, spec: PathSpec) -> PathNode:
        queue, options = spec.queue_choice()
        config = PathConfig(
            capacity=load_capacity(spec.capacity),
            queue=queue,
            queue_config=options,
            delay=spec.delay,
            loss=spec.loss,
            opportunity_bytes=spec.opportunity,
            overhead_bytes=spec.overhead,
            repeat=spec.repeat,
        )
        path = build_path(config, seed=f"{self._seed}:path:{name}", now=self._begin)
        return PathNode(number, path, self._scheduler, self._log)

    def _rng(self, flow: FlowSpec, part: str) -> random.Random:
        return random.Random(f"{self._seed}:flow:{flow.name}:{part}")

    def _flow(self, number: int, spec: FlowSpec) -> Flow:
        starts = self._begin + spec.start
        here: Address = ("192.0.2.1", 5000 + number)
        there: Address = ("192.0.2.2", 5000 + number)
        near, far = self._agenda(spec, "sender"), self._agenda(spec, "receiver")
        sender = self._sender(number, spec, there, starts, near)
        receiver = self._receiver(number, spec, starts, far, sender.pictures)
        up, down = self.paths[spec.up], self.paths[spec.down]
        record = PacketRecord(is_media)
        end = End(number, here, far.input(receiver.receive), record)
        sender.attach(up, end, partial(self._sender_closed, receiver))
        receiver.attach(down, End(number, there, near.input(sender.receive), None))
        return Flow(spec, sender, receiver, up, end, record, Baseline(self._begin))

    def _agenda(self, spec: FlowSpec, machine: str) -> Agenda:
        late = self._scenario.wake_time
        if not late:
            return self._scheduler
        return LateAgenda(self._scheduler, late, self._rng(spec, f"{machine}-wake"))

    def _sender(
        self, number: int, spec: FlowSpec, peer: Address, now: float, agenda: Agenda
    ) -> SenderNode:
        config = spec.sender_config()
        controller_spec, parameters = config.controller_choice()
        controller = controller_spec.build(
            parameters, ecn=config.ecn_codepoint(), rng=self._rng(spec, "controller"), now=now
        )
        limits = config.limits()
        source: FrameSource = open_source(spec.source, fps=spec.fps, size=spec.size, loop=spec.loop)
        encoder = open_encoder(
            spec.effective_codec,
            source,
            start_bps=limits.start_bps,
            max_bps=limits.max_bps,
            threads=1,
            keyframe_factor=config.keyframe_factor,
            size_deviation=config.size_variation,
            rng=self._rng(spec, "encoder"),
            long_term=config.repair_frames,
            adapt=config.adapt,
        )
        options = config.sender_options(
            self._identity(spec),
            peer,
            long_term=encoder.long_term,
            tool_tick=config.tool_tick(),
            cname="sender@simulated",
        )
        measured = spec.modelled_encode_time is None
        clock: Clock | None = MonotonicClock() if measured else None
        return SenderNode(
            number,
            SenderSession(options, controller, now=now, unix_offset=UNIX_EPOCH - self._begin),
            source=source,
            encoder=encoder,
            encode_time=spec.modelled_encode_time,
            scheduler=agenda,
            log=self._log,
            clock=clock,
            pictures=_pictures(spec, source),
        )

    def _identity(self, spec: FlowSpec) -> StreamIdentity:
        rng = self._rng(spec, "identity")
        ssrc, seq, timestamp = rng.getrandbits(32), rng.getrandbits(16), rng.getrandbits(32)
        return StreamIdentity(
            ssrc,
            PAYLOAD_TYPES[spec.effective_codec],
            first_seq=seq if spec.first_seq is None else spec.first_seq,
            first_timestamp=timestamp if spec.first_timestamp is None else spec.first_timestamp,
            payload=spec.effective_codec,
            capture_times=True,
        )

    def _receiver(
        self,
        number: int,
        spec: FlowSpec,
        now: float,
        agenda: Agenda,
        pictures: "KeptPictures | None",
    ) -> ReceiverNode:
        ahead = spec.receiver_clock_offset
        session = ReceiverSession(
            ReceiverOptions(
                cname="receiver@elsewhere" if ahead else "receiver@simulated",
                ssrc=self._rng(spec, "receiver").getrandbits(32),
                freeze_rule=spec.freeze_rule,
                formats=_FORMATS,
            ),
            now=now,
            unix_offset=UNIX_EPOCH - self._begin + ahead,
        )
        decoder = open_decoder(spec.effective_codec)
        return ReceiverNode(
            number, session, decoder=decoder, scheduler=agenda, log=self._log, pictures=pictures
        )

    # --- running ------------------------------------------------------------------------------

    def _start(self, flow: Flow, now: float) -> None:
        flow.receiver.turn(now)
        flow.sender.start(now)

    def _sender_closed(self, receiver: ReceiverNode, now: float) -> None:
        self._scheduler.at(now + LINGER, partial(self._close_receiver, receiver))

    def _close_receiver(self, receiver: ReceiverNode, now: float) -> None:
        """After the last one the links go down, whatever they still hold."""
        receiver.close(now)
        self._running -= 1
        if not self._running:
            self._scheduler.stop()

    def _warmed_up(self, now: float) -> None:
        """Percentiles begin anew; counters go on, and what they were is remembered."""
        for flow in self._flows:
            sent, got = flow.sender.session.stats, flow.receiver.session.stats
            sent.rtt, sent.queue_delay = Samples(), Samples()
            got.inter_frame, got.frame_latency = Samples(), Samples()
            flow.sender.session.tool.samples = Samples()
            freezes = flow.receiver.session.freezes
            flow.baseline = Baseline(
                now,
                sent.packets,
                sent.bytes,
                got.packets,
                got.bytes,
                freezes.freeze_count,
                freezes.freeze_duration,
            )


def _pictures(spec: FlowSpec, source: FrameSource) -> "KeptPictures | None":
    """What compares the flow's pictures; None for synthetic frames, or if it is not wanted."""
    if not spec.quality or spec.effective_codec == SYNTHETIC:
        return None
    from streamd.media.quality import KeptPictures

    return KeptPictures(source.width, source.height)
