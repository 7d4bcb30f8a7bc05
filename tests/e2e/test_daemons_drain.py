"""How daemons end: the first signal drains them, with RTCP BYE and a summary; the second kills."""

import asyncio
import signal
import struct
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from e2e_stage import PATIENCE, Daemon, Plain, Stage, get

pytestmark = pytest.mark.asyncio

BYE = 203
Scene = Callable[[Path, signal.Signals], Coroutine[Any, Any, None]]


def rtcp_types(datagram: bytes) -> list[int]:
    """Packet types of a compound packet (RFC 3550 section 6.1), by hand."""
    types, position = [], 0
    while position < len(datagram):
        first, kind, words = struct.unpack_from("!BBH", datagram, position)
        assert first >> 6 == 2
        types.append(kind)
        position += 4 * words + 4
    assert position == len(datagram)
    return types


def is_control(datagram: bytes) -> bool:
    return 192 <= datagram[1] <= 223


def has_bye(sock: Plain) -> bool:
    return any(is_control(data) and BYE in rtcp_types(data) for data, _ in sock.got)


class Acknowledger:
    """The least a receiver must do: one RFC 8888 packet per frame on what has come, in order."""

    def __init__(self, sock: Plain) -> None:
        self._sock = sock
        self.ssrc: int | None = None
        self._ticks = 1 << 20
        sock.on_datagram = self._on_datagram

    def _on_datagram(self, data: bytes, address: tuple[object, ...]) -> None:
        if is_control(data):
            return
        _, second, seq, _, self.ssrc = struct.unpack_from("!BBHII", data)
        if not second & 0x80:
            return
        self._ticks += 1
        blocks = b"\x80\x00" * 64
        head = struct.pack("!BBHIIHH", 0x8B, 205, 36, 1, self.ssrc, (seq - 63) & 0xFFFF, 64)
        self._sock.send(head + blocks + struct.pack("!I", self._ticks), address)


async def ended(daemon: Daemon, number: signal.Signals) -> int:
    daemon.process.signal(number)
    return await daemon.process.wait(PATIENCE)


async def sender_drains_says_bye_and_sums_up(folder: Path, number: signal.Signals) -> None:
    async with Stage(folder) as stage:
        peer = stage.plain()
        answers = Acknowledger(peer)
        sender = await stage.sender(peer.at)
        await peer.until(lambda: len(peer.got) > 50)
        assert await ended(sender, number) == 0
        await peer.until(lambda: has_bye(peer))
        last = peer.got[-1][0]
        assert rtcp_types(last) == [200, 202, BYE]
        assert struct.unpack("!I", last[-4:])[0] == answers.ssrc
        reports = [rtcp_types(data) for data, _ in peer.got[:-1] if is_control(data)]
        assert reports[0] == [200, 202]
        summary = sender.process.result()
        assert summary["stop_reason"] == number.name
        assert summary["packets_count"] == sum(not is_control(data) for data, _ in peer.got)
        line = sender.lines("session_summary")[-1]
        assert {key: line[key] for key in summary if key != "role"} == {
            key: value for key, value in summary.items() if key != "role"
        }


async def receiver_says_bye_to_the_source_and_sums_up(folder: Path, number: signal.Signals) -> None:
    async with Stage(folder) as stage:
        receiver = await stage.receiver()
        source = stage.plain()
        for seq in range(40):
            extension = struct.pack("!HHBBHHH", 0xBEDE, 2, 0x16, 0x80 * (not seq), seq, 0, 1)
            header = struct.pack("!BBHII", 0x90, 0x80 | 99, seq, 3000 * seq, 0xC0FFEE)
            source.send(header + extension + bytes(500), receiver.address())
        await source.until(lambda: bool(source.got))
        await receiver.until(lambda m: m["streamd_receiver_packets_total"] == 40)
        assert await ended(receiver, number) == 0
        await source.until(lambda: has_bye(source))
        last = source.got[-1][0]
        assert rtcp_types(last) == [201, 202, BYE]
        own = last[-4:]
        reporting = [data for data, _ in source.got if data[:2] == b"\x8b\xcd"]
        assert reporting
        assert {data[4:8] for data in reporting} == {own}
        assert receiver.process.result()["packets_count"] == 40
        assert receiver.process.result()["stop_reason"] == number.name


async def bottleneck_ends_cleanly(folder: Path, number: signal.Signals) -> None:
    async with Stage(folder) as stage:
        far, near = stage.plain(), stage.plain()
        bottleneck = await stage.bottleneck(far.at, "--delay", "1ms")
        near.send(b"one way", bottleneck.address())
        await far.until(lambda: bool(far.got))
        far.send(b"and back", far.got[0][1])
        await near.until(lambda: bool(near.got))
        assert await ended(bottleneck, number) == 0
        assert [data for data, _ in near.got] == [b"and back"]
        assert [data for data, _ in far.got] == [b"one way"]
        summary = bottleneck.process.result()
        assert summary["link_offered_count"] == 1
        assert summary["recorded_packets_count"] == 1


@pytest.mark.parametrize(
    "scene",
    [
        sender_drains_says_bye_and_sums_up,
        receiver_says_bye_to_the_source_and_sums_up,
        bottleneck_ends_cleanly,
    ],
)
async def test_first_signal(tmp_path: Path, scene: Scene) -> None:
    """SIGTERM and SIGINT, side by side: exit code 0 after a drain."""
    async with asyncio.TaskGroup() as group:
        for number in (signal.SIGTERM, signal.SIGINT):
            group.create_task(scene(tmp_path / number.name, number))


async def test_second_signal_kills_a_sender_that_still_drains(tmp_path: Path) -> None:
    """Nobody answers, so it waits for what is outstanding: up to two seconds."""
    async with Stage(tmp_path) as stage:
        peer = stage.plain()
        sender = await stage.sender(peer.at)
        await peer.until(lambda: len(peer.got) > 5)
        sender.process.signal(signal.SIGTERM)
        await sender.line("stopping")
        ready = await get(sender.address("http"), "/-/ready")
        assert ready.startswith("HTTP/1.1 503 ")
        assert ready.endswith("not ready:\nstopping\n")
        assert (await get(sender.address("http"), "/-/healthy")).startswith("HTTP/1.1 200 ")
        assert await ended(sender, signal.SIGTERM) == -signal.SIGTERM
        assert not has_bye(peer)


STUCK = """
import asyncio, sys
from streamd.config.model import ReceiverConfig
from streamd.daemon.lifecycle import run_daemon

async def main(life):
    life.started()
    await life.stopping.wait()
    {work}

sys.exit(run_daemon(main, ReceiverConfig(metrics_port=None, shutdown_timeout="{limit}")))
"""


async def stuck(work: str, limit: str) -> asyncio.subprocess.Process:
    """A daemon whose drain is `work`, after its first SIGTERM."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", STUCK.format(work=work, limit=limit)),
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    async with asyncio.timeout(PATIENCE):
        assert b'"event": "started"' in await process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        assert b'"event": "stopping"' in await process.stderr.readline()
    return process


async def test_second_signal_kills_even_a_loop_that_is_stuck() -> None:
    process = await stuck(
        "[print('stuck', file=sys.stderr, flush=True) for _ in iter(int, 1)]", "5s"
    )
    assert process.stderr is not None
    async with asyncio.timeout(PATIENCE):
        assert await process.stderr.readline() == b"stuck\n"
        process.send_signal(signal.SIGINT)
        await process.communicate()
    assert process.returncode == -signal.SIGINT


async def test_drain_that_does_not_end_is_given_up() -> None:
    process = await stuck("await asyncio.Event().wait()", "0.2s")
    async with asyncio.timeout(PATIENCE):
        _, said = await process.communicate()
    assert said == (b"streamd receiver: not drained within shutdown_timeout (0.2 s); giving up\n")
    assert process.returncode == 1


async def test_source_that_ends_is_a_normal_end(tmp_path: Path) -> None:
    """`--duration` as well as a signal; the receiver stays for the next stream."""
    async with Stage(tmp_path) as stage:
        receiver = await stage.receiver()
        sender = await stage.sender(receiver.listen, "--duration", "0.3s")
        assert await sender.process.wait(PATIENCE) == 0
        assert sender.process.result()["stop_reason"] == "duration"
        await receiver.line("peer_closed")
        summary = await receiver.end()
        encoded = sender.process.result()["frames_encoded_count"]
        assert encoded == summary["frames_decoded_count"]
        assert summary["freeze_tail_s"] == 0
