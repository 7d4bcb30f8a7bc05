"""The bw-tool profile against stand-ins for the public tool's programs, in every set-up it has."""

import struct
from itertools import pairwise
from pathlib import Path

import pytest
from e2e_bwtool import Media, ToolReceiver, ToolSender
from e2e_stage import HOME, Address, Meddler, Stage, free_port, needs_linux

pytestmark = pytest.mark.asyncio

PROFILE = ("--profile", "bw-tool")
OTHER_HOST = "127.0.0.2"
"""Both ends use one port number, so on one machine they need two addresses."""


def check_frames(media: list[Media], header: int) -> None:
    """Numbers from 0 without a gap, one timestamp per frame, the marker on its last packet."""
    assert [packet.seq for packet in media] == [n & 0xFFFF for n in range(len(media))]
    assert {packet.ssrc for packet in media} == {100}
    assert max(len(packet.data) for packet in media) <= header + 1200
    for before, after in pairwise(media):
        assert before.marker == (before.timestamp != after.timestamp)
        if not before.marker:
            assert len(before.data) >= len(after.data)


@needs_linux
async def test_sender_ramps_up_towards_a_receiver_that_answers_to_the_port(tmp_path: Path) -> None:
    """Reports come to our address and port from a socket of their own."""
    port = free_port()
    async with Stage(tmp_path) as stage:
        listen, answer = stage.plain(OTHER_HOST, port), stage.plain(OTHER_HOST)
        tool = ToolReceiver(listen, answer, (HOME, port))
        sender = await stage.sender(
            f"{OTHER_HOST}:{port}",
            *(*PROFILE, "--listen", f"{HOME}:{port}", "--fps", "50"),
            *("--min-rate", "1Mbps", "--max-rate", "6Mbps"),
        )
        await sender.line("report", where=lambda line: line["target_bps"] > 3_000_000)
        await sender.line("report", where=lambda line: line["tx_bps"] > 3_000_000)
        summary = await sender.end()
        tool.stop()
        assert tool.other == []
        assert {packet.data[0] for packet in tool.media} == {0x80}
        check_frames(tool.media, 12)
        assert len(tool.media) == summary["packets_count"]
        assert max(len(packet.data) for packet in tool.media) == 1212
        assert summary["feedback_reports_count"] > 10
        assert summary["feedback_ignored_count"].keys() <= {"duplicate_or_reordered"}
        assert summary["invalid_datagrams_count"] == {}
        assert summary["sender_loss_ratio"] == 0
        assert summary["rtt_p50_s"] < 0.1
        assert sender.lines("peer_changed") == []
        # 90 kHz, whatever it starts from: a frame each 20 ms.
        first, last = tool.media[0], tool.media[-1]
        frames = sum(packet.marker for packet in tool.media)
        ticks = (last.timestamp - first.timestamp) & 0xFFFFFFFF
        skipped = sum(summary["frames_skipped_count"].values())
        assert ticks == pytest.approx(1800 * (frames - 1 + skipped), abs=1800 * (1 + skipped))


async def test_sender_and_a_receiver_that_learns_the_source(tmp_path: Path) -> None:
    async with Stage(tmp_path) as stage:
        sock = stage.plain()
        tool = ToolReceiver(sock, sock, None)
        sender = await stage.sender(sock.at, *PROFILE)
        await sock.until(lambda: len(tool.media) > 100)
        # What its receiver sends when it has nothing to say; no answer, no error.
        sock.send(b"\x00", (HOME, sender.address()[1]))
        await sock.until(lambda: len(tool.media) > 200)
        summary = await sender.end()
        tool.stop()
        check_frames(tool.media, 12)
        assert summary["invalid_datagrams_count"] == {}
        assert summary["target_bps"] > 1_000_000


async def test_video_of_the_sender_has_the_tools_extension(tmp_path: Path) -> None:
    async with Stage(tmp_path) as stage:
        receiver = await stage.receiver(*PROFILE)
        wire = Meddler(stage, receiver.address())
        sender = await stage.sender(wire.near.at, *PROFILE, "--keyframe-on", "target", source="low")
        await receiver.until_decoded(20)
        await sender.end()
        assert (await receiver.end())["frames_undecodable_count"] == 0
        media = [Media(data) for data in wire.media]
        check_frames(media, 24)
        assert {packet.data[0] for packet in media} == {0x90}
        frame = fragment = 0
        for packet in media:
            words = struct.unpack_from("!HHBBHHH", packet.data, 12)
            flags, count = words[3], words[6]
            assert words[:3] == (0xBEDE, 2, 0x16)
            assert words[4:6] == (frame, fragment)
            assert packet.marker == (fragment == count - 1)
            assert flags == (0x80 if frame == 0 else 0)
            frame, fragment = (frame + 1, 0) if packet.marker else (frame, fragment + 1)
        assert frame >= 20
        # Nothing but bare reports under the receiver's fixed SSRC came back.
        assert {data[:2] for data in wire.feedback if len(data) > 1} == {b"\x8b\xcd"}
        assert {data[4:8] for data in wire.feedback if len(data) > 1} == {b"\x00\x00\x00\x0a"}


@needs_linux
async def test_receiver_announces_itself_to_the_tools_sender(tmp_path: Path) -> None:
    """One byte before any media, and again every half second; reports stop them."""
    port = free_port()
    async with Stage(tmp_path) as stage:
        sock = stage.plain(OTHER_HOST, port)
        tool = ToolSender(sock, (HOME, port))
        receiver = await stage.daemon(
            "receiver", "--listen", f"{HOME}:{port}", "--peer", f"{OTHER_HOST}:{port}", *PROFILE
        )
        await sock.until(lambda: tool.keepalives == 2)
        assert {address for _, address in sock.got} == {(HOME, port)}
        for _ in range(10):
            await tool.reported(tool.frame(3))
        assert (await receiver.end())["packets_count"] == 30


async def test_receiver_that_learns_the_source_is_quiet_until_then(tmp_path: Path) -> None:
    async with Stage(tmp_path) as stage:
        receiver = await stage.receiver(*PROFILE)
        sock = stage.plain()
        tool = ToolSender(sock, receiver.address())
        tool.frame(2)
        first = await tool.reported(1)
        assert tool.keepalives == 0
        assert (first.sender_ssrc, first.size) == (10, 148)
        (entry,) = first.lists
        assert (entry.begin, entry.end, entry.received) == (65536 - 62, 1, [0, 1])
        # Then it stays in touch.
        await sock.until(lambda: any(len(data) == 1 for data, _ in sock.got))
        assert sock.got[0][1] == receiver.address()
        await receiver.end()


async def test_reports_drive_the_tools_sender(tmp_path: Path) -> None:
    """At each marker, after 32 packets, after 40 ms; each ends with a packet that arrived."""
    async with Stage(tmp_path) as stage:
        receiver = await stage.receiver(*PROFILE)
        sock = stage.plain()
        # Whatever SSRC the packets have, they are filed under the one the tool knows.
        tool = ToolSender(sock, receiver.address(), ssrc=0x01020304)
        sock.mark(1)
        for size in (2, 1, 5, 31, 1, 12):
            last = tool.frame(size)
            report = await tool.reported(last)
            assert report.lists[-1].end == last
            blocks = report.lists[-1].blocks
            assert {block >> 13 & 3 for block in blocks if block & 0x8000} == {1}
        numbers = [tool.packet(marker=False) for _ in range(40)]
        report = await tool.reported(numbers[31])
        await tool.reported(numbers[39])
        assert report.lists[-1].end < numbers[39]
        await tool.reported(tool.packet(marker=False))

        # Numbers the sender threw away: several lists in one packet, on to the highest.
        before = tool.reports[-1].lists[-1].end
        sock.mark(3)
        last = tool.packet(marker=True, skip=200)
        report = await tool.reported(last)
        assert report.lists[-1].blocks[-1] >> 13 & 3 == 3
        assert [entry.end for entry in report.lists] == [
            *range(before + 64, last, 64),
            last,
        ]
        assert [len(entry.blocks) for entry in report.lists] == [64] * len(report.lists)

        # A packet that was overtaken.
        tool.send(last - 3, False)
        report = await tool.reported(last - 3)
        assert sum(len(entry.blocks) for entry in report.lists) <= 64

        assert {report.sender_ssrc for report in tool.reports} == {10}
        assert all(entry.received for r in tool.reports for entry in r.lists[-1:])
        for entry in (r.lists[-1] for r in tool.reports if len(r.lists[-1].blocks) == 64):
            assert entry.blocks[-1] & 0x8000
        times = [report.timestamp for report in tool.reports]
        assert all((b - a) & 0xFFFFFFFF < 0x80000000 for a, b in pairwise(times))
        summary = await receiver.end()
        assert summary["invalid_datagrams_count"] == {}
        assert summary["streams_count"] == 1


async def test_text_lines_and_wraps_of_the_tools_sender(tmp_path: Path) -> None:
    async with Stage(tmp_path) as stage:
        receiver = await stage.receiver(*PROFILE)
        sock = stage.plain()
        tool = ToolSender(sock, receiver.address())
        await tool.reported(tool.frame(4))
        address: Address = receiver.address()
        sock.send(b"\x80\x7f rate 1000 kbps\n", address)
        # Up to the 16-bit wrap in gaps that one report can tell of, and across it.
        while tool.seq < 65_536 + 1000:
            last = tool.packet(marker=True, skip=400)
            report = await tool.reported(last)
            assert report.lists[-1].end == last
            tool.reports.clear()
        summary = await receiver.end()
        assert summary["invalid_datagrams_count"] == {"text_line": 1}
        assert summary["streams_count"] == 1


async def test_stream_of_another_number_starts_again(tmp_path: Path) -> None:
    """A sender that restarts counts from 0 again; two seconds of silence lie between."""
    async with Stage(tmp_path) as stage:
        receiver = await stage.receiver(*PROFILE)
        sock = stage.plain()
        tool = ToolSender(sock, receiver.address())
        for _ in range(20):
            await tool.reported(tool.frame(30))
        await receiver.line("media_missing")
        again = ToolSender(sock, receiver.address())
        await sock.until(lambda: sum(len(data) == 1 for data, _ in sock.got) >= 4)
        again.frame(2)
        report = await again.reported(1)
        assert report.lists[-1].received == [0, 1]
        assert (await receiver.end())["streams_count"] == 2
