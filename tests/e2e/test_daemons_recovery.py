"""Peers that are absent, restart, move or fall silent: the stream recovers within two seconds."""

import asyncio
import signal
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from e2e_stage import HOME, Daemon, Stage, free_port, stamp, total

from streamd.stack.process import Record

pytestmark = pytest.mark.asyncio

Scene = Callable[[Path], Coroutine[Any, Any, None]]

RECOVERY = 2.0
"""Promised: seconds from a peer's return to a running stream."""
REFUSED = 'streamd_socket_icmp_refused_total{socket="media"}'
STREAM = ("--max-rate", "2Mbps")


async def showing(receiver: Daemon, *, after: int = 0, beyond: int = 0) -> Record:
    """The first report that shows more frames than `beyond`."""
    return await receiver.line("report", after=after, where=lambda r: r["frames_decoded"] > beyond)


async def limits(sender: Daemon, count: int, *, after: int = 0) -> list[float]:
    """The first limits the circuit breaker set, one after the other."""
    found: list[float] = []
    while len(found) < count:
        line = await sender.line("rate_limited", after=after)
        after = sender.log.index(line) + 1
        found.append(line["limit_bps"])
    return found


async def receiver_that_is_late_dies_and_moves(folder: Path) -> None:
    port = free_port()
    async with Stage(folder) as stage:
        fixed = await stage.sender(f"{HOME}:{free_port()}", "--rate", "1Mbps")
        sender = await stage.sender(f"{HOME}:{port}", *STREAM)
        # Absent at the start, for three seconds of its reports.
        await sender.line("feedback_missing")
        limited = await sender.line("rate_limited")
        assert stamp(limited) - sender.started_at > 1.49
        await sender.line("report", where=lambda r: stamp(r) >= sender.started_at + 3)
        assert (await sender.metrics())[REFUSED] > 0
        assert sender.lines("report")[-1]["target_bps"] == 150_000
        assert limited["limit_bps"] == 150_000

        mark = sender.mark()
        receiver = await stage.receiver(listen=f"{HOME}:{port}")
        await sender.line("rate_limited", after=mark, where=lambda r: r["limit_bps"] is None)
        shown = await showing(receiver)
        assert stamp(shown) - receiver.started_at < RECOVERY

        # Killed, and back on the same port once that was noticed.
        mark = sender.mark()
        await receiver.process.kill()
        await sender.line("feedback_missing", after=mark)
        receiver = await stage.receiver(listen=f"{HOME}:{port}")
        await sender.line("feedback_back", after=mark)
        shown = await showing(receiver)
        assert stamp(shown) - receiver.started_at < RECOVERY
        assert sender.lines("peer_changed") == []

        # Killed, and back on another port, from where it says so.
        mark = sender.mark()
        await receiver.process.kill()
        await sender.line("feedback_missing", after=mark)
        receiver = await stage.receiver("--peer", f"{HOME}:{sender.address()[1]}")
        await sender.line("peer_changed", after=mark)
        shown = await showing(receiver)
        assert stamp(shown) - receiver.started_at < RECOVERY

        # Killed, and back on the first port, waiting to be sent to.
        mark = sender.mark()
        await receiver.process.kill()
        await sender.line("feedback_missing", after=mark)
        receiver = await stage.receiver(listen=f"{HOME}:{port}")
        await sender.line("feedback_back", after=mark)
        shown = await showing(receiver)
        assert stamp(shown) - receiver.started_at < RECOVERY

        # All that time a rate the user fixed was left alone.
        assert fixed.lines("rate_limited") == []
        assert len(fixed.lines("feedback_missing")) == 1
        targets = {line["target_bps"] for line in fixed.lines("report")}
        assert targets == {1_000_000}
        assert fixed.lines("report")[-1]["tx_bps"] > 500_000
        assert (await sender.end())["circuit_breaker_count"] >= 1


async def sender_that_restarts_takes_its_place_again(folder: Path) -> None:
    """A new process has another port and another SSRC; the old one is dead without a word."""
    async with Stage(folder) as stage:
        receiver = await stage.receiver()
        first = await stage.sender(receiver.listen, *STREAM)
        before = await showing(receiver)
        await first.process.kill()
        mark = receiver.mark()
        second = await stage.sender(receiver.listen, *STREAM)
        await receiver.line("stream_started", after=mark)
        shown = await showing(receiver, after=mark, beyond=before["frames_decoded"] + 10)
        assert stamp(shown) - second.started_at < RECOVERY
        assert total(await receiver.metrics(), "streamd_receiver_streams_total") == 2
        await second.end()
        summary = await receiver.end()
        assert summary["streams_count"] == 2
        parts = ("decoded", "lost", "skipped", "undecodable")
        counted = sum(summary[f"frames_{part}_count"] for part in parts)
        assert counted == summary["frames_seen_count"]


async def sender_that_restarts_is_let_through_a_running_bottleneck(folder: Path) -> None:
    async with Stage(folder) as stage:
        receiver = await stage.receiver()
        bottleneck = await stage.bottleneck(receiver.listen, "--delay", "5ms")
        first = await stage.sender(bottleneck.listen, *STREAM)
        await showing(receiver)
        # One that ends properly: its BYE tells the receiver, nothing tells the bottleneck.
        await first.end()
        before = receiver.process.report["frames_decoded"]
        mark = receiver.mark()
        second = await stage.sender(bottleneck.listen, *STREAM)
        shown = await showing(receiver, after=mark, beyond=before + 10)
        assert stamp(shown) - second.started_at < RECOVERY
        assert second.process.report["rtt_ms"] >= 10
        summary = await second.end()
        assert summary["feedback_reports_count"] > 0


async def bottleneck_that_restarts_is_no_news_to_either_end(folder: Path) -> None:
    async with Stage(folder) as stage:
        receiver = await stage.receiver()
        bottleneck = await stage.bottleneck(receiver.listen)
        sender = await stage.sender(bottleneck.listen, *STREAM)
        await showing(receiver)
        mark, seen = sender.mark(), receiver.mark()
        await bottleneck.process.kill()
        await sender.line("feedback_missing", after=mark)
        before = receiver.process.report["frames_decoded"]
        bottleneck = await stage.bottleneck(receiver.listen, listen=bottleneck.listen)
        await sender.line("feedback_back", after=mark)
        shown = await showing(receiver, after=seen, beyond=before + 5)
        assert stamp(shown) - bottleneck.started_at < RECOVERY
        await sender.end()
        # To the receiver the media come from another port now; it is the same stream.
        assert len(receiver.lines("stream_started")) == 1
        assert (await receiver.end())["streams_count"] == 1


async def silent_receiver_halves_the_rate_until_it_speaks(folder: Path) -> None:
    async with Stage(folder) as stage:
        receiver = await stage.receiver()
        sender = await stage.sender(receiver.listen, "--start-rate", "2Mbps", *STREAM)
        await showing(receiver, beyond=10)
        await sender.line("report", where=lambda r: r["target_bps"] > 1_300_000)
        mark = sender.mark()
        receiver.process.signal(signal.SIGSTOP)
        missing = await sender.line("feedback_missing", after=mark)
        assert missing["seconds"] > 1.0
        first, second, third, _ = await limits(sender, 4, after=mark)
        assert (second, third) == (first / 2, max(150_000, first / 4))
        held = await sender.line("report", after=sender.mark())
        assert held["target_bps"] <= third
        mark, seen = sender.mark(), receiver.mark()
        before = receiver.process.report["frames_decoded"]
        receiver.process.signal(signal.SIGCONT)
        lifted = await sender.line("rate_limited", after=mark)
        assert lifted["limit_bps"] is None
        back = await sender.line("feedback_back", after=mark)
        assert abs(stamp(back) - stamp(lifted)) < RECOVERY
        shown = await showing(receiver, after=seen, beyond=before)
        assert stamp(shown) - stamp(lifted) < RECOVERY
        free = await sender.line("report", after=sender.mark())
        assert free["target_bps"] > held["target_bps"]
        await sender.end()
        assert (await receiver.end())["streams_count"] == 1


@pytest.mark.parametrize(
    "scenes",
    [
        (receiver_that_is_late_dies_and_moves, silent_receiver_halves_the_rate_until_it_speaks),
        (
            sender_that_restarts_takes_its_place_again,
            sender_that_restarts_is_let_through_a_running_bottleneck,
            bottleneck_that_restarts_is_no_news_to_either_end,
        ),
    ],
    ids=["receivers", "senders-and-bottlenecks"],
)
async def test_streaming_again_within_two_seconds(
    tmp_path: Path, scenes: tuple[Scene, ...]
) -> None:
    """Side by side, since they mostly wait."""
    async with asyncio.TaskGroup() as group:
        for scene in scenes:
            group.create_task(scene(tmp_path / scene.__name__))
