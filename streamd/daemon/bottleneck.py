"""`streamd bottleneck`: wiring of two sockets and the relay between them."""

import asyncio
import csv
from pathlib import Path as FilePath
from typing import Literal

from streamd.clock import Clock
from streamd.config.capacity import load_capacity
from streamd.config.model import BottleneckConfig
from streamd.daemon.figures import Interval
from streamd.daemon.lifecycle import Lifecycle, run_daemon
from streamd.daemon.peers import PeerName
from streamd.daemon.reporting import (
    OpenEndpoint,
    finish,
    outlive,
    report_periodically,
    socket_view,
)
from streamd.datagram import Address
from streamd.errors import StreamdError
from streamd.io.address import format_address
from streamd.io.net import UdpOptions
from streamd.io.pump import RelayPump
from streamd.io.udp import UdpNetwork
from streamd.link.path import Path, PathConfig, build_path
from streamd.link.queue import QueueCounters
from streamd.link.record import PacketRecord
from streamd.link.relay import Relay
from streamd.observability import logs
from streamd.observability.metrics import LinkCollector, SocketCollector
from streamd.observability.model import PathView
from streamd.observability.results import check_writable
from streamd.qoe.percentile import ratio
from streamd.results.link import is_media, link_summary, queues_of, recorded_summary
from streamd.results.streams import Summary

log = logs.get_logger("streamd.daemon.bottleneck")

Direction = Literal["uplink", "downlink"]
RECORD_COLUMNS = (
    "arrived_s",
    "dequeued_s",
    "departed_s",
    "size_bytes",
    "ecn_in",
    "ecn_out",
    "fate",
    "media",
)
LOOK_AGAIN_AFTER = 1.0
"""Silence of the far peer after which its name is resolved again (s)."""


class BottleneckDaemon:
    """One relay, until it is told to stop."""

    def __init__(
        self, config: BottleneckConfig, *, clock: Clock, seed: int, network: UdpNetwork
    ) -> None:
        """Reads the traces: ConfigError when one is malformed."""
        self._config = config
        self._clock = clock
        self._network = network
        self._peer = PeerName(config.peer)
        self._interval = Interval()
        self._before: dict[str, list[int]] = {}
        self._seed = seed
        self._up_since = 0.0
        self._capacity = {
            "uplink": load_capacity(config.uplink),
            "downlink": load_capacity(config.downlink),
        }
        wants_record = config.json_file is not None or config.record is not None
        self.record = PacketRecord(is_media) if wants_record else None
        self.relay: Relay
        self.near: OpenEndpoint
        self.far: OpenEndpoint
        self.pump: RelayPump

    async def open(self) -> None:
        """Resolve the peer, bind both sockets, build the paths. StartupError if that fails."""
        config = self._config
        address = await self._peer.resolve()
        options = UdpOptions(
            receive_buffer=config.receive_buffer,
            gso=config.offload,
            gro=None if config.offload else False,
        )
        self.near = self._network.open_udp(tuple(config.listen), options=options)
        any_port = ("::", 0) if ":" in str(address[0]) else ("0.0.0.0", 0)
        self.far = self._network.open_udp(any_port, options=options)
        now = self._up_since = self._clock.now()
        self.relay = Relay(
            self._path("uplink", now),
            self._path("downlink", now),
            far=self.far.to_peer(address),
            record=self.record,
        )
        self.pump = RelayPump(
            self.relay, self.near, self.far, self._clock, asyncio.get_running_loop()
        )

    def _path(self, direction: Direction, now: float) -> Path:
        config = self._config
        spec, parameters = config.queue_choice(direction)
        up = direction == "uplink"
        return build_path(
            PathConfig(
                capacity=self._capacity[direction],
                queue=spec,
                queue_config=parameters,
                delay=config.delay,
                loss=config.loss if up else config.downlink_loss,
                opportunity_bytes=config.opportunity,
                overhead_bytes=config.overhead,
                repeat=config.repeat,
            ),
            seed=f"{self._seed}:{direction}",
            now=now,
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Relay until `stop` is set. What is inside then is dropped, as a link that goes down."""
        self.pump.start()
        watch = asyncio.create_task(self._watch_far())
        try:
            async with asyncio.TaskGroup() as tasks:
                guard = tasks.create_task(outlive(self.pump))
                await stop.wait()
                guard.cancel()
        finally:
            watch.cancel()
            self._peer.close()
            self.pump.stop()

    async def _watch_far(self) -> None:
        """Resolve the receiver's name again while nothing comes back from it."""
        while True:
            await asyncio.sleep(LOOK_AGAIN_AFTER / 2)
            if self.relay.far.alive(now=self._clock.now()):
                self._peer.stop_looking()
            else:
                self._peer.look_again(self._far_moved)

    def _far_moved(self, address: Address, _new: bool) -> None:
        self.relay.far.set(self.far.to_peer(address))

    # --- figures ----------------------------------------------------------------------------

    def report(self) -> Summary:
        """The periodic line: the uplink since the last one."""
        now = self._clock.now()
        self.relay.handle_timeout(now=now)
        link = self.relay.uplink.bottleneck
        queues = queues_of(self.relay.uplink)
        counters = link.counters(now) if link is not None else None
        part = self._interval.step(
            now,
            offered=counters.offered_bytes if counters else 0,
            used=counters.used_bytes if counters else 0,
            dropped=self.relay.uplink.dropped_packets,
            marked=sum(q.marked_packets for q in queues),
            arrived=sum(q.arrived_packets for q in queues),
        )
        seconds = part["seconds"]
        counts = self._new_sojourns(queues)
        return {
            "capacity_bps": 8 * part["offered"] / seconds if seconds else None,
            "delivered_bps": 8 * part["used"] / seconds if seconds else None,
            "queue_delay_p50_ms": _ms(counts, queues, 0.5),
            "queue_delay_p95_ms": _ms(counts, queues, 0.95),
            "loss_ratio": ratio(part["dropped"], part["arrived"]),
            "mark_ratio": ratio(part["marked"], part["arrived"]),
            "backlog_packets": sum(q.queued_packets for q in queues),
        }

    def _new_sojourns(self, queues: list[QueueCounters]) -> list[int]:
        """Histogram counts of all queues since the last call."""
        total = [0] * (len(queues[0].sojourn.counts) if queues else 0)
        for queue in queues:
            counts = list(queue.sojourn.counts)
            before = self._before.get(queue.name, [0] * len(counts))
            total = [t + c - b for t, c, b in zip(total, counts, before, strict=True)]
            self._before[queue.name] = counts
        return total

    def summary(self) -> Summary:
        """The uplink over the whole run, percentiles from its per-packet record; the way back."""
        now = self._clock.now()
        record, link = self.record, self.relay.uplink.bottleneck
        up, down = self.relay.uplink_counters, self.relay.downlink_counters
        recorded: Summary = {}
        if record is not None:
            begin = record.first_arrival
            recorded = recorded_summary(record, since=(begin or 0.0) + self._config.warmup)
            recorded["first_arrival_s"] = None if begin is None else begin - self._up_since
        return {
            "role": "bottleneck",
            **recorded,
            **link_summary(self.relay.uplink, offered=up.received_packets, now=now),
            "lateness_p99_s": up.lateness.percentile(0.99),
            "foreign_packets_count": up.foreign_packets + down.foreign_packets,
            "ecn_unknown_packets_count": up.ecn_unknown_packets + down.ecn_unknown_packets,
            "kernel_drops_count": self.near.stats.kernel_drops + self.far.stats.kernel_drops,
            "uplink": link.describe() if link is not None else None,
            "return_path": link_summary(
                self.relay.downlink, offered=down.received_packets, now=now
            ),
        }

    def paths(self) -> list[PathView]:
        """Both directions, for the metrics."""
        now = self._clock.now()
        self.relay.handle_timeout(now=now)
        views = []
        for name, path in (("uplink", self.relay.uplink), ("downlink", self.relay.downlink)):
            link = path.bottleneck
            counters = link.counters(now) if link is not None else None
            queued = sum(q.dropped_packets for q in queues_of(path))
            oversize = counters.oversize_packets if counters else 0
            views.append(
                PathView(
                    name=name,
                    queues=queues_of(path),
                    losses=path.dropped_packets - queued - oversize,
                    oversize=oversize,
                    opportunities=counters.opportunities if counters else 0,
                    opportunities_used=counters.opportunities_used if counters else 0,
                )
            )
        return views

    def invalid(self) -> dict[str, int]:
        """Datagrams that were not relayed, by reason."""
        up, down = self.relay.uplink_counters, self.relay.downlink_counters
        return {
            "foreign_source": up.foreign_packets + down.foreign_packets,
            "unroutable": up.unroutable_packets + down.unroutable_packets,
        }


def _ms(counts: list[int], queues: list[QueueCounters], quantile: float) -> float | None:
    if not queues:
        return None
    value = queues[0].sojourn.percentile(quantile, counts=counts)
    return None if value is None else round(value * 1000, 3)


def write_record(record: PacketRecord, path: FilePath) -> None:
    """One CSV line per packet. StreamdError when the file cannot be written."""
    try:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(RECORD_COLUMNS)
            writer.writerows(record.rows())
    except OSError as error:
        raise StreamdError(f"{path}: cannot be written: {error.strerror}") from error


async def main(life: Lifecycle) -> None:
    """The bottleneck's life."""
    config = life.config
    assert isinstance(config, BottleneckConfig)
    if config.record is not None:
        check_writable(config.record)
    network = UdpNetwork(asyncio.get_running_loop(), life.clock)
    daemon = BottleneckDaemon(config, clock=life.clock, seed=life.seed, network=network)
    await daemon.open()
    life.registry.register(LinkCollector(daemon.paths, daemon.invalid))
    life.registry.register(
        SocketCollector(lambda: {"near": socket_view(daemon.near), "far": socket_view(daemon.far)})
    )
    life.started(
        listen=format_address(daemon.near.local_address), peer=str(config.peer), queue=config.queue
    )
    reports = life.spawn(report_periodically(life, daemon.report), "report")
    await daemon.run(life.stopping)
    reports.cancel()
    finish(life, daemon.summary())
    if daemon.record is not None and config.record is not None:
        write_record(daemon.record, config.record)


def run(config: BottleneckConfig) -> int:
    """Run the daemon to its end; its exit code."""
    return run_daemon(main, config)
