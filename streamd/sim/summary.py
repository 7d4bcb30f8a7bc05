"""The result keys of a simulated flow and path: those of the daemons, from the same code."""

from typing import Protocol

from streamd.ecn import NOT_ECT
from streamd.link.record import PacketRecord, percentile
from streamd.qoe.percentile import ratio
from streamd.results.joined import join
from streamd.results.link import link_summary, recorded_summary
from streamd.results.streams import (
    NoSocket,
    Summary,
    rate_bps,
    receiver_summary,
    sender_summary,
)
from streamd.sim.model import FlowSpec, PathSpec
from streamd.sim.nodes import End, PathNode, ReceiverNode, SenderNode

NOT_COMPARED: Summary = {
    "frames_compared_count": 0,
    "psnr_mean_db": None,
    "psnr_of_mean_db": None,
    "ssim_mean": None,
}
IP_UDP_BYTES = 28
"""Simulated paths are IPv4."""


class Baseline(Protocol):
    """Counters of a flow at the end of the warm-up."""

    at: float
    sent_packets: int
    sent_bytes: int
    received_packets: int
    received_bytes: int
    freezes: int
    freeze_seconds: float


class Flow(Protocol):
    """What is summed up."""

    spec: FlowSpec
    sender: SenderNode
    receiver: ReceiverNode
    up: PathNode
    end: End
    record: PacketRecord

    @property
    def baseline(self) -> Baseline:
        """At the end of the warm-up."""


def flow_summary(flow: Flow, *, now: float) -> Summary:
    """As one chain of `streamd demo --json`.

    Loss on the link is the flow's own; drops and marks by cause are those of its
    uplink, all flows together.
    """
    sender, receiver, base = flow.sender, flow.receiver, flow.baseline
    sent = sender_summary(sender.session, NoSocket(), overhead=IP_UDP_BYTES, now=now)
    got = receiver_summary(
        receiver.session.stats,
        receiver.session.freezes,
        NoSocket(),
        overhead=IP_UDP_BYTES,
        now=now,
    )
    sent["tx_bps"] = _tx_bps(flow)
    sent["frames_skipped_count"] = {
        "encoder": sender.skipped,
        "queue": sender.skipped_behind,
        "ladder": sender.skipped_ladder,
    }
    sent["encode_mean_s"] = ratio(sender.encode_seconds, sender.encoded)
    got["rx_bps"] = _rx_bps(flow)
    got.update(receiver.pictures.sum.figures() if receiver.pictures else NOT_COMPARED)
    got["freeze_count"] -= base.freezes
    got["freeze_s"] -= base.freeze_seconds
    link = {
        **link_summary(flow.up.path, offered=_offered(flow.up), now=now),
        **recorded_summary(flow.record, since=max(base.at, flow.record.first_arrival or base.at)),
        "link_loss_ratio": ratio(flow.end.dropped, flow.end.offered),
        "kernel_drops_count": 0,
    }
    capable = flow.spec.ecn_codepoint() != NOT_ECT
    row = join(sent, link, got, ecn_capable=capable, exit_codes={})
    row["delivered_bps"] = link["delivered_bps"]
    return row


def path_summary(node: PathNode, spec: PathSpec, *, since: float, now: float) -> Summary:
    """One path with all its flows; queue delay and rate are of media that left from `since` on."""
    records = [end.record for end in node.ends if end.record is not None]
    delays = [delay for record in records for delay in record.sojourns(since=since)]
    delays.sort()
    return {
        "capacity": str(spec.capacity),
        **link_summary(node.path, offered=_offered(node), now=now),
        **{f"queue_delay_p{share}_s": percentile(delays, share / 100) for share in (50, 95, 99)},
    }


def _offered(node: PathNode) -> int:
    offered = 0
    for end in node.ends:
        offered += end.offered
    return offered


def _tx_bps(flow: Flow) -> float:
    """Wire rate from the start of the source, or the end of the warm-up, to its end."""
    stats, base = flow.sender.session.stats, flow.baseline
    if stats.started_at is None or stats.ended_at is None:
        return 0.0
    seconds = stats.ended_at - max(stats.started_at, base.at)
    sent_bytes, packets = stats.bytes - base.sent_bytes, stats.packets - base.sent_packets
    return rate_bps(sent_bytes, packets, IP_UDP_BYTES, seconds)


def _rx_bps(flow: Flow) -> float:
    """Wire rate from the first packet, or the end of the warm-up, to the last."""
    stats, base = flow.receiver.session.stats, flow.baseline
    if stats.first_arrival is None or stats.last_arrival is None:
        return 0.0
    seconds = stats.last_arrival - max(stats.first_arrival, base.at)
    got_bytes, packets = stats.bytes - base.received_bytes, stats.packets - base.received_packets
    return rate_bps(got_bytes, packets, IP_UDP_BYTES, seconds)
