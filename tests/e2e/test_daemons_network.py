"""ECN and IPv6 through three daemons, full buffers, and peers that nobody answers for."""

import asyncio
import signal
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from e2e_stage import (
    HOME,
    PATIENCE,
    Daemon,
    Metrics,
    Stage,
    free_port,
    needs_ipv6,
    needs_linux,
    read_json,
    total,
)

from streamd.stack.process import Record

pytestmark = pytest.mark.asyncio

STREAM = ("--max-rate", "2Mbps")
FREE = ("--uplink", "unlimited")
"""A link without a queue marks nothing."""


def arrived(metrics: Metrics) -> dict[str, float]:
    """Packets at the receiver by codepoint."""
    name = "streamd_receiver_ecn_packets_total"
    codepoints = ("not_ect", "ect1", "ect0", "ce")
    return {codepoint: metrics[f'{name}{{codepoint="{codepoint}"}}'] for codepoint in codepoints}


async def only(receiver: Daemon, codepoint: str, packets: int = 20) -> None:
    """Wait for so many packets; all must have this codepoint."""
    metrics = await receiver.until(lambda m: sum(arrived(m).values()) >= packets)
    assert {name for name, count in arrived(metrics).items() if count} == {codepoint}


async def codepoint_kept(folder: Path, ecn: str, codepoint: str) -> None:
    """A chain of its own, every packet with one codepoint."""
    async with Stage(folder) as stage:
        receiver = await stage.receiver()
        bottleneck = await stage.bottleneck(receiver.listen, *FREE)
        sender = await stage.sender(bottleneck.listen, "--ecn", ecn, *STREAM)
        await only(receiver, codepoint, 100)
        sent = await sender.end()
        assert sent["ecn"] == codepoint
        assert sent["ce_ratio"] == (None if ecn == "notect" else 0)
        got = await receiver.end()
        assert got["ecn_packets_count"][codepoint] == got["packets_count"]
        assert (await bottleneck.end())["ecn_unknown_packets_count"] == 0


async def test_codepoint_of_every_packet_arrives(tmp_path: Path) -> None:
    codepoints = {"notect": "not_ect", "ect0": "ect0", "ect1": "ect1"}
    await asyncio.gather(
        *(codepoint_kept(tmp_path / ecn, ecn, seen) for ecn, seen in codepoints.items())
    )


async def test_marks_of_the_bottleneck_reach_the_sender(tmp_path: Path) -> None:
    async with Stage(tmp_path) as stage:
        receiver = await stage.receiver()
        bottleneck = await stage.bottleneck(receiver.listen, "--uplink", "1Mbps")
        sender = await stage.sender(bottleneck.listen, "--ecn", "ect1", "--max-rate", "5Mbps")
        await sender.until(lambda m: m["streamd_cc_packets_ce_marked_total"] >= 20)
        await sender.end()
        got = await receiver.end()
        marked = (await bottleneck.end())["link_marks_count"]
        ce = got["ecn_packets_count"]["ce"]
        assert ce >= 20
        assert ce == sum(count for cause, count in marked.items() if cause.startswith("l4s_"))
        assert got["ecn_packets_count"]["not_ect"] == 0
        assert got["ce_ratio"] == ce / got["packets_count"]


@needs_ipv6
async def test_chain_over_ipv6(tmp_path: Path) -> None:
    async with Stage(tmp_path) as stage:
        receiver = await stage.receiver(listen="[::1]:0")
        bottleneck = await stage.bottleneck(receiver.listen, *FREE, listen="[::1]:0")
        assert receiver.listen.startswith("[::1]:")
        sender = await stage.sender(bottleneck.listen, *STREAM)
        await only(receiver, "ect1", 100)
        await receiver.until_decoded(10)
        sent = await sender.end()
        assert sent["ce_ratio"] == 0
        assert sent["loss_ratio"] == 0
        got = await receiver.end()
        assert got["frames_decoded_count"] == sent["frames_encoded_count"]
        assert (await bottleneck.end())["ecn_unknown_packets_count"] == 0


@needs_ipv6
async def test_dual_stack_receiver_serves_both_families(tmp_path: Path) -> None:
    """One socket, a sender of one family after one of the other; ECN is seen on both."""
    async with Stage(tmp_path) as stage:
        receiver = await stage.receiver(listen=":0")
        port = receiver.address()[1]
        first = await stage.sender(f"[::1]:{port}", "--ecn", "ect1", *STREAM)
        await only(receiver, "ect1", 50)
        await first.end()
        mark = receiver.mark()
        second = await stage.sender(f"{HOME}:{port}", "--ecn", "ect0", *STREAM)
        await receiver.line("stream_started", after=mark)
        await receiver.until(lambda m: arrived(m)["ect0"] >= 50)
        assert (await second.end())["ce_ratio"] == 0
        got = await receiver.end()
        assert got["streams_count"] == 2
        assert got["ecn_packets_count"]["not_ect"] == 0
        assert got["ecn_unknown_packets_count"] == 0


@needs_ipv6
async def test_bottleneck_between_the_families(tmp_path: Path) -> None:
    """A sender on IPv4, a receiver on IPv6."""
    async with Stage(tmp_path) as stage:
        receiver = await stage.receiver(listen="[::1]:0")
        bottleneck = await stage.bottleneck(receiver.listen, *FREE)
        sender = await stage.sender(bottleneck.listen, *STREAM)
        await only(receiver, "ect1", 50)
        assert (await sender.end())["feedback_reports_count"] > 0


@needs_linux
async def test_full_receive_buffer_is_exported(tmp_path: Path) -> None:
    """A receiver that is stopped for a while: the kernel drops, the receiver tells how much."""
    async with Stage(tmp_path) as stage:
        receiver = await stage.receiver("--receive-buffer", "16384")
        drops = 'streamd_socket_kernel_drops_total{socket="media"}'
        granted = 'streamd_socket_receive_buffer_bytes{socket="media"}'
        metrics = await receiver.metrics()
        assert (metrics[drops], metrics[granted]) == (0, 16384)
        source = stage.plain()

        def send(seq: int) -> None:
            extension = struct.pack("!HHBBHHH", 0xBEDE, 2, 0x16, 0x80, seq & 0xFFFF, 0, 1)
            header = struct.pack("!BBHII", 0x90, 0x80 | 99, seq & 0xFFFF, 3000 * seq, 77)
            source.send(header + extension + bytes(1000), receiver.address())

        for seq in range(2):
            send(seq)
        await receiver.until(lambda m: m["streamd_receiver_packets_total"] == 2)
        receiver.process.signal(signal.SIGSTOP)
        for seq in range(2, 500):
            send(seq)
        receiver.process.signal(signal.SIGCONT)
        await receiver.until(lambda m: m[drops] > 0)
        # It goes on with what comes next.
        before = (await receiver.metrics())["streamd_receiver_packets_total"]
        for seq in range(500, 503):
            send(seq)
        await receiver.until(lambda m: m["streamd_receiver_packets_total"] == before + 3)
        summary = await receiver.end()
        assert summary["kernel_drops_count"] + summary["packets_count"] == 503
        assert summary["packets_count"] > 5


@needs_linux
async def test_refused_datagrams_are_counted_and_survived(tmp_path: Path) -> None:
    """ICMP errors come back to a sender and to a bottleneck with nobody behind them."""
    async with Stage(tmp_path) as stage:
        port = free_port()
        bottleneck = await stage.bottleneck(f"{HOME}:{port}")
        sender = await stage.sender(f"{HOME}:{free_port()}", *STREAM)
        relayed = await stage.sender(bottleneck.listen, *STREAM)
        refused = "streamd_socket_icmp_refused_total"
        await sender.until(lambda m: total(m, refused) > 10)
        await bottleneck.until(lambda m: m[f'{refused}{{socket="far"}}'] > 10)
        receiver = await stage.receiver(listen=f"{HOME}:{port}")
        await receiver.until_decoded(5)
        await relayed.line("feedback_back")
        assert total(await sender.metrics(), "streamd_socket_send_drops_total") == 0
        assert (await relayed.end())["send_dropped_count"] == 0


NAMESPACE = 'ip link set lo up && tc qdisc replace dev lo root {queue} && exec "$@"'


def can_shape() -> bool:
    """Whether a network namespace with a slow loopback of its own can be made here."""
    script = NAMESPACE.format(queue="pfifo limit 5")
    try:
        made = subprocess.run(
            ["unshare", "-rn", "sh", "-c", script, "sh", "true"], capture_output=True, timeout=20
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return made.returncode == 0


async def sent_into(queue: str, result: Path) -> Record:
    """The summary of a sender whose packets leave through this queue, at ten times its rate."""
    process = await asyncio.create_subprocess_exec(
        *("unshare", "-rn", "sh", "-c", NAMESPACE.format(queue=queue), "sh"),
        *(sys.executable, "-m", "streamd", "sender", "--peer", f"{HOME}:9", "--rate", "60Mbps"),
        *("--source", "synthetic", "--duration", "1s", "--metrics-port", "off"),
        *("--json", str(result), "--log-level", "warning"),
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        _, err = await asyncio.wait_for(process.communicate(), PATIENCE)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, err
    return read_json(result)


@needs_linux
async def test_full_send_buffer_and_full_device_queue(tmp_path: Path) -> None:
    """EAGAIN, where a deep queue holds all our buffer, and ENOBUFS, where a short one drops.

    Both are counted, and the stream goes on to its end.
    """
    if not await asyncio.to_thread(can_shape):
        pytest.skip("needs unshare, tc and leave to make a network namespace")
    rate = "tbf rate 6mbit burst 5kb limit"
    deep, short = await asyncio.gather(
        sent_into(f"{rate} 50mb", tmp_path / "deep.json"),
        sent_into(f"{rate} 20kb", tmp_path / "short.json"),
    )
    for summary in (deep, short):
        assert summary["frames_encoded_count"] > 10
        assert 0 < summary["send_dropped_count"] < summary["packets_count"]
        assert summary["stop_reason"] == "duration"
