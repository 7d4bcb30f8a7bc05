"""`streamd sender`: wiring of source, encoder, session and socket."""

import asyncio
import math
import random

from streamd.cc.api import ControllerSpec
from streamd.clock import Clock
from streamd.config.model import SenderConfig
from streamd.daemon.figures import Interval
from streamd.daemon.lifecycle import Lifecycle, run_daemon
from streamd.daemon.machine import cname
from streamd.daemon.peers import PeerName
from streamd.daemon.reporting import OpenEndpoint, finish, outlive, report_periodically, socket_view
from streamd.daemon.video import FrameClock
from streamd.datagram import Address
from streamd.errors import ConfigError, MediaError
from streamd.io.address import format_address
from streamd.io.net import UdpOptions
from streamd.io.pump import Pump
from streamd.io.udp import UdpNetwork
from streamd.media.factory import SYNTHETIC, open_encoder, open_source
from streamd.media.frame_log import SentLog
from streamd.media.model import FrameSource, VideoEncoder
from streamd.observability import logs
from streamd.observability.metrics import SenderCollector, SocketCollector
from streamd.observability.model import SenderView
from streamd.observability.results import check_writable, write_text
from streamd.qoe.percentile import ratio
from streamd.results.streams import Summary, ip_overhead, sender_summary
from streamd.session.events import (
    Event,
    PeerChanged,
    PeerHeard,
    PeerSilent,
    RateLimited,
    SessionClosed,
)
from streamd.session.packetize import PAYLOAD_TYPES, StreamIdentity
from streamd.session.sdp import description
from streamd.session.sender import SenderSession
from streamd.session.sender_options import SenderOptions
from streamd.wire import bwtool

log = logs.get_logger("streamd.daemon.sender")


class SenderDaemon:
    """One stream to one peer, until the source ends or it is told to stop."""

    def __init__(
        self, config: SenderConfig, *, clock: Clock, rng: random.Random, network: UdpNetwork
    ) -> None:
        """Opens source and codec: StartupError or ConfigError when they cannot be had."""
        self._config = config
        self._clock = clock
        self._network = network
        self._rng = rng
        self._peer = PeerName(config.peer, listen=config.listen)
        self.source: FrameSource = open_source(
            config.source, fps=config.fps, size=config.size, loop=config.loop
        )
        self.codec = SYNTHETIC if config.source == SYNTHETIC else config.codec
        if config.sdp is not None:
            check_writable(config.sdp)
            if self.codec == SYNTHETIC or config.profile == "bw-tool":
                raise ConfigError("sdp: only VP9, VP8 and H.264 in the default profile have one")
        limits = config.limits()
        self.encoder: VideoEncoder = open_encoder(
            self.codec,
            self.source,
            start_bps=limits.start_bps,
            max_bps=limits.max_bps,
            keyframe_factor=config.keyframe_factor,
            size_deviation=config.size_variation,
            long_term=config.repair_frames,
            adapt=config.adapt,
            rng=random.Random(rng.random()),
        )
        self._interval = Interval()
        self._closed = asyncio.Event()
        self.failure: MediaError | None = None
        """What ended the stream before its time; raised when all is said and done."""
        self.session: SenderSession
        self.endpoint: OpenEndpoint
        self.pump: Pump[Event]
        self.controller: ControllerSpec
        self.frames: FrameClock

    async def open(self) -> None:
        """Resolve the peer, bind the socket, build the session. StartupError if that fails."""
        config = self._config
        address = await self._peer.resolve()
        local = config.listen or _any_port(address)
        self.endpoint = self._network.open_udp(
            tuple(local),
            options=UdpOptions(receive_buffer=config.receive_buffer, gso=config.offload),
        )
        now = self._clock.now()
        spec, parameters = config.controller_choice()
        controller = spec.build(
            parameters,
            ecn=config.ecn_codepoint(),
            rng=random.Random(self._rng.random()),
            now=now,
        )
        self.controller = spec
        if config.sdp is not None:
            text = description(
                self.codec, address, fps=self.source.fps, muxed=config.rtcp_mux == "yes"
            )
            write_text(config.sdp, text)
        self.session = SenderSession(
            self._options(self.endpoint.to_peer(address)),
            controller,
            now=now,
            unix_offset=self._clock.unix() - self._clock.now(),
        )
        loop = asyncio.get_running_loop()
        self.pump = Pump(self.session, self.endpoint, self._clock, loop, self._on_event)
        offset = self._clock.unix() - self._clock.now()
        frame_log = None if config.frames is None else SentLog(config.frames, unix_offset=offset)
        self.frames = FrameClock(
            self.source, self.encoder, self.session, self.pump, self._clock, frame_log
        )

    def _options(self, peer: Address) -> SenderOptions:
        config = self._config
        return config.sender_options(
            self._identity(),
            peer,
            bwtool=config.profile == "bw-tool",
            minus_one=config.counts_minus_one(),
            rtcp_mux="yes" if config.rtcp_mux == "auto" and not config.sdp else config.rtcp_mux,
            long_term=self.encoder.long_term,
            tool_tick=config.tool_tick(),
            cname=cname("sender"),
        )

    def _identity(self) -> StreamIdentity:
        rng, synthetic = self._rng, self.codec == SYNTHETIC
        if self._config.profile == "bw-tool":
            return StreamIdentity(
                bwtool.MEDIA_SSRC,
                bwtool.PAYLOAD_TYPE,
                first_timestamp=-int(self._clock.now() * 90_000),
                video_extension=not synthetic,
            )
        return StreamIdentity(
            rng.getrandbits(32),
            PAYLOAD_TYPES[self.codec],
            first_seq=rng.getrandbits(16),
            first_timestamp=rng.getrandbits(32),
            capture_times=True,
            payload=self.codec,
        )

    async def run(self, life: Lifecycle) -> None:
        """Stream until the source ends or the daemon is to stop, then drain and say BYE."""
        self.pump.start()
        try:
            async with asyncio.TaskGroup() as tasks:
                guard = tasks.create_task(outlive(self.pump))
                stopper = tasks.create_task(self._stop_frames(life.stopping))
                life.request_stop(await self._stream())
                self.pump.close()
                await self._closed.wait()
                guard.cancel()
                stopper.cancel()
        finally:
            self.pump.stop()
            self.encoder.close()
            if not self.frames.source_busy:
                self.source.close()
            self._peer.close()

    async def _stream(self) -> str:
        """Frames until there are no more; why."""
        try:
            await self.frames.run()
        except MediaError as error:
            self.failure = error
            return "media failed"
        return "source ended"

    async def _stop_frames(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self.frames.stop()

    def report(self) -> Summary:
        """The periodic line of the video paper's section 3.3: figures since the last one."""
        now = self._clock.now()
        stats, controller = self.session.stats, self.session.controller_stats()
        overhead = ip_overhead(self.session.peer)
        acked = sum(stats.ecn_acked[1:])
        part = self._interval.step(
            now,
            wire=stats.bytes + overhead * stats.packets,
            bytes=stats.bytes,
            lost=controller.bytes_lost,
            ce=stats.ecn_acked[3],
            ect=acked,
        )
        return {
            "tx_bps": 8 * part["wire"] / part["seconds"] if part["seconds"] else 0.0,
            "rtt_ms": _ms(controller.srtt),
            "queue_delay_ms": _ms(controller.queue_delay),
            "sender_loss_ratio": ratio(part["lost"], part["bytes"]),
            "ce_ratio": ratio(part["ce"], part["ect"]),
            "target_bps": self.session.limited(controller.target_bps),
            "cwnd_bytes": controller.cwnd_bytes,
            "in_flight_bytes": controller.bytes_in_flight,
            "frames": stats.frames_key + stats.frames_delta,
            "keyframes": stats.frames_key,
        }

    def summary(self) -> Summary:
        """Everything about the whole run."""
        frames = self.frames
        return {
            "role": "sender",
            "controller": self.controller.name,
            "codec": self.codec,
            "ecn": self._config.ecn_codepoint().name.lower(),
            **sender_summary(
                self.session,
                self.endpoint.stats,
                overhead=ip_overhead(self.session.peer),
                now=self._clock.now(),
            ),
            "frames_skipped_count": {
                "encoder": frames.skipped,
                "queue": frames.skipped_behind,
                "ladder": frames.skipped_ladder,
            },
            "source_stalls_count": frames.stalls,
            "encode_mean_s": ratio(frames.encode_seconds, frames.encoded),
        }

    def view(self) -> SenderView:
        """What the metrics read at a scrape."""
        last = self.session.stats.last_feedback_at
        offset = self._clock.unix() - self._clock.now()
        return SenderView(
            counts=self.session.stats,
            cc=self.session.controller_stats(),
            controller=self.controller.name,
            codec=self.codec,
            last_feedback_unix=None if last is None else last + offset,
            metrics=self.controller.metrics,
        )

    def _on_event(self, event: Event) -> None:
        if isinstance(event, PeerSilent):
            log.warning("feedback_missing", seconds=round(event.seconds, 3))
            self._peer.look_again(self._moved)
        elif isinstance(event, PeerHeard):
            log.info("feedback_back")
            self._peer.stop_looking()
        elif isinstance(event, PeerChanged):
            log.info("peer_changed", peer=str(event.address))
        elif isinstance(event, RateLimited):
            log.warning("rate_limited", limit_bps=event.limit_bps)
        elif isinstance(event, SessionClosed):
            self._closed.set()

    def _moved(self, address: Address, new: bool) -> None:
        self.session.set_peer(self.endpoint.to_peer(address), keep_open=not new)
        self.pump.wake()


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None or math.isinf(seconds) else round(seconds * 1000, 3)


def _any_port(peer: Address) -> Address:
    """A free port of the peer's address family, on every address."""
    return ("::" if ":" in str(peer[0]) else "0.0.0.0", 0)


async def main(life: Lifecycle) -> None:
    """The sender's life."""
    config = life.config
    assert isinstance(config, SenderConfig)
    network = UdpNetwork(asyncio.get_running_loop(), life.clock)
    daemon = SenderDaemon(config, clock=life.clock, rng=life.rng("sender"), network=network)
    await daemon.open()
    life.registry.register(SenderCollector(daemon.view))
    life.registry.register(SocketCollector(lambda: {"media": socket_view(daemon.endpoint)}))
    life.started(
        listen=format_address(daemon.endpoint.local_address),
        peer=format_address(daemon.session.peer or ("", 0)),
        source=config.source,
        codec=daemon.codec,
        controller=daemon.controller.name,
        ecn=config.ecn_codepoint().name.lower(),
    )
    reports = life.spawn(report_periodically(life, daemon.report), "report")
    await daemon.run(life)
    reports.cancel()
    finish(life, daemon.summary())
    if daemon.failure is not None:
        raise daemon.failure


def run(config: SenderConfig) -> int:
    """Run the daemon to its end; its exit code."""
    return run_daemon(main, config)
