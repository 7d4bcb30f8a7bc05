"""`streamd receiver`: wiring of socket, session and decoder."""

import asyncio
import random
from collections.abc import Iterator, Sequence
from functools import partial

from streamd.clock import Clock
from streamd.config.model import ReceiverConfig
from streamd.daemon.decoding import DecodePump, load_decoder
from streamd.daemon.figures import Interval
from streamd.daemon.lifecycle import Lifecycle, run_daemon
from streamd.daemon.machine import cname
from streamd.daemon.peers import PeerName
from streamd.daemon.reporting import OpenEndpoint, finish, outlive, report_periodically, socket_view
from streamd.daemon.viewing import Viewers
from streamd.datagram import Address
from streamd.io.address import format_address
from streamd.io.net import UdpOptions
from streamd.io.pump import Pump
from streamd.io.udp import UdpNetwork
from streamd.media.factory import open_source
from streamd.media.frame_log import ShownLog
from streamd.media.quality import QualitySum, ReferenceFilm
from streamd.media.sinks import Comparison, Sink, open_recording
from streamd.observability import logs
from streamd.observability.metrics import ReceiverCollector, SocketCollector
from streamd.observability.model import ReceiverView
from streamd.observability.results import check_writable
from streamd.qoe.percentile import ratio
from streamd.results.streams import Summary, ip_overhead, receiver_summary
from streamd.session.events import (
    Event,
    FrameReady,
    PeerChanged,
    PeerClosed,
    PeerHeard,
    PeerSilent,
    SessionClosed,
    StreamStarted,
)
from streamd.session.packetize import PAYLOAD_TYPES
from streamd.session.receiver import ReceiverOptions, ReceiverSession
from streamd.wire import bwtool

log = logs.get_logger("streamd.daemon.receiver")

DYNAMIC = range(96, 128)
CODECS = {number: codec for codec, number in PAYLOAD_TYPES.items()}


class ReceiverDaemon:
    """Receives one stream at a time until it is told to stop."""

    def __init__(
        self,
        config: ReceiverConfig,
        *,
        clock: Clock,
        rng: random.Random,
        network: UdpNetwork,
        sinks: Sequence[Sink] = (),
    ) -> None:
        self._config = config
        self._clock = clock
        self._network = network
        self._rng = rng
        self._bwtool = config.profile == "bw-tool"
        self._peer = PeerName(config.peer, listen=config.listen) if config.peer else None
        self._interval = Interval()
        self.reference = self._film()
        self.viewers = Viewers([*sinks, *self._own_sinks()])
        self.session: ReceiverSession
        self.endpoint: OpenEndpoint
        self.pump: Pump[Event]
        self.decoder: DecodePump

    def _film(self) -> ReferenceFilm | None:
        """The film to compare with; StartupError if it cannot be opened."""
        config = self._config
        if config.reference is None:
            return None
        return ReferenceFilm(
            partial(open_source, config.reference, fps=config.reference_fps, loop=True)
        )

    def _own_sinks(self) -> Iterator[Sink]:
        """What the configuration asks for; ConfigError for a recording that cannot be."""
        if self.reference is not None:
            yield Comparison(self.reference)
        if self._config.frames is not None:
            offset = self._clock.unix() - self._clock.now()
            yield ShownLog(self._config.frames, unix_offset=offset, reference=self.reference)
        if self._config.record is not None:
            check_writable(self._config.record)
            yield open_recording(self._config.record)

    async def open(self) -> None:
        """Bind the socket, build the session. StartupError if that fails."""
        config = self._config
        if config.decode:
            load_decoder("vp9" if config.codec == "auto" else config.codec)
        self.endpoint = self._network.open_udp(
            tuple(config.listen),
            options=UdpOptions(
                receive_buffer=config.receive_buffer, gro=None if config.offload else False
            ),
        )
        peer: Address | None = None
        if self._peer is not None:
            peer = self.endpoint.to_peer(await self._peer.resolve())
        now = self._clock.now()
        self.session = ReceiverSession(
            ReceiverOptions(
                ssrc=bwtool.RTCP_SENDER_SSRC if self._bwtool else self._rng.getrandbits(32),
                formats=self._formats(),
                peer=peer,
                cname=cname("receiver"),
                bwtool=self._bwtool,
                minus_one=config.counts_minus_one(),
                freeze_rule=config.freeze_rule,
            ),
            now=now,
            unix_offset=self._clock.unix() - self._clock.now(),
        )
        loop = asyncio.get_running_loop()
        self.pump = Pump(self.session, self.endpoint, self._clock, loop, self._on_event)
        self.decoder = DecodePump(
            self.session, self._clock, enabled=config.decode, viewers=self.viewers
        )

    def _formats(self) -> dict[int, str]:
        """A codec that was chosen is what any dynamic payload type (RFC 3551) carries."""
        if self._bwtool:
            return {bwtool.PAYLOAD_TYPE: "raw"}
        if self._config.codec == "auto":
            return dict(CODECS)
        return dict.fromkeys(DYNAMIC, self._config.codec)

    async def run(self, stop: asyncio.Event) -> None:
        """Receive until `stop` is set; frames already complete are still decoded."""
        self.pump.start()
        try:
            async with asyncio.TaskGroup() as tasks:
                guard = tasks.create_task(outlive(self.pump))
                decoding = tasks.create_task(self.decoder.run())
                await stop.wait()
                self.decoder.finish()
                await decoding
                self.pump.close()
                guard.cancel()
        finally:
            self.pump.stop()
            if self._peer is not None:
                self._peer.close()

    def report(self) -> Summary:
        """The periodic line: figures since the last one."""
        now = self._clock.now()
        stats = self.session.stats
        overhead = ip_overhead(self.session.peer)
        part = self._interval.step(
            now,
            wire=stats.bytes + overhead * stats.packets,
            frames=stats.frames_decoded,
            ce=stats.ecn[3],
            ect=sum(stats.ecn[1:]),
        )
        seconds = part["seconds"]
        latency = stats.frame_latency.percentile(50)
        return {
            "rx_bps": 8 * part["wire"] / seconds if seconds else 0.0,
            "frames_per_second": part["frames"] / seconds if seconds else 0.0,
            "ce_ratio": ratio(part["ce"], part["ect"]),
            "frames_decoded": stats.frames_decoded,
            "frames_lost": stats.frames_lost + stats.frames_skipped + stats.frames_undecodable,
            "freezes": self.session.freezes.freeze_count,
            "freeze_s": self.session.freezes.freeze_duration,
            **self._quality(),
            "frame_latency_p50_ms": None if latency is None else round(latency * 1000, 3),
        }

    def _quality(self) -> Summary:
        """Mean PSNR and SSIM so far, where there is something to compare with."""
        if self.reference is None:
            return {}
        figures = self.reference.sum.figures()
        return {key: figures[key] for key in ("psnr_mean_db", "ssim_mean")}

    def summary(self) -> Summary:
        """Everything about the whole run."""
        return {
            "role": "receiver",
            "codec": self.decoder.codec,
            **receiver_summary(
                self.session.stats,
                self.session.freezes,
                self.endpoint.stats,
                overhead=ip_overhead(self.session.peer),
                now=self._clock.now(),
            ),
            **(self.reference.sum if self.reference else QualitySum()).figures(),
            "pictures_left_out_count": self.viewers.left_out,
            "frames_refused_count": self.decoder.refused,
            "frames_damaged_count": self.decoder.errors,
        }

    def view(self) -> ReceiverView:
        """What the metrics read at a scrape."""
        last = self.session.stats.last_arrival
        offset = self._clock.unix() - self._clock.now()
        return ReceiverView(
            counts=self.session.stats,
            codec=self.decoder.codec,
            freeze_seconds=self.session.freezes.freeze_duration,
            last_packet_unix=None if last is None else last + offset,
        )

    def _on_event(self, event: Event) -> None:
        if isinstance(event, FrameReady):
            self.decoder.put(event)
        elif isinstance(event, StreamStarted):
            self._stream_started(event)
        elif isinstance(event, PeerChanged):
            log.info("peer_changed", peer=str(event.address))
        elif isinstance(event, PeerSilent):
            log.warning("media_missing", seconds=round(event.seconds, 3))
            if self._peer is not None:
                self._peer.look_again(self._moved)
        elif isinstance(event, PeerHeard):
            log.info("media_arrives")
            if self._peer is not None:
                self._peer.stop_looking()
        elif isinstance(event, PeerClosed):
            log.info("peer_closed")
        elif isinstance(event, SessionClosed):
            log.debug("session_closed")

    def _stream_started(self, event: StreamStarted) -> None:
        wanted = self._config.codec
        codec = CODECS[event.payload_type] if wanted == "auto" else wanted
        self.decoder.use(codec)
        log.info("stream_started", ssrc=f"{event.ssrc:08x}", codec=codec)

    def _moved(self, address: Address, new: bool) -> None:
        self.session.set_peer(self.endpoint.to_peer(address), keep_open=not new)
        self.pump.wake()


async def main(life: Lifecycle, *, sinks: Sequence[Sink] = ()) -> None:
    """The receiver's life."""
    config = life.config
    assert isinstance(config, ReceiverConfig)
    network = UdpNetwork(asyncio.get_running_loop(), life.clock)
    daemon = ReceiverDaemon(
        config, clock=life.clock, rng=life.rng("receiver"), network=network, sinks=sinks
    )
    await daemon.open()
    life.registry.register(ReceiverCollector(daemon.view))
    life.registry.register(SocketCollector(lambda: {"media": socket_view(daemon.endpoint)}))
    life.started(listen=format_address(daemon.endpoint.local_address))
    reports = life.spawn(report_periodically(life, daemon.report), "report")
    await daemon.run(life.stopping)
    reports.cancel()
    finish(life, daemon.summary())


def run(config: ReceiverConfig, *, sinks: Sequence[Sink] = ()) -> int:
    """Run the daemon to its end; its exit code. `sinks` get every picture shown."""
    return run_daemon(partial(main, sinks=sinks), config)
