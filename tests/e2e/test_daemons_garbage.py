"""Bad input on every port of running daemons: counted by reason, never answered, never fatal."""

import asyncio
import random
import socket
import struct
from pathlib import Path

import pytest
from e2e_stage import HOME, Address, Daemon, Meddler, Stage, fetch, total

pytestmark = pytest.mark.asyncio

INVALID = "streamd_invalid_packets_total"
IGNORED = "streamd_cc_feedback_ignored_total"
STUN = bytes.fromhex("000100002112a442") + bytes(12)
DNS = bytes.fromhex("1234010000010000000000000377777703636f6d0000010001")
NTP = b"\x23" + bytes(47)
QUIC = bytes.fromhex("c300000001088394c8f03e5157080000449e") + bytes(1182)
HTTP = b"GET / HTTP/1.1\r\n\r\n"
OTHER_PROTOCOLS = (STUN, DNS, NTP, QUIC, HTTP, b"", b"\x00", b"\xff" * 1400)


def foreign_media(rng: random.Random) -> list[bytes]:
    """RTP nobody asked for: other payload types, other SSRCs, an extension with nonsense in it."""
    odd = [
        struct.pack("!BBHII", 0x80, kind, rng.getrandbits(16), 0, rng.getrandbits(32)) + bytes(100)
        for kind in (0, 8, 72, 98, 99, 111, 127, 255)
    ]
    element = struct.pack("!HHBBHHH", 0xBEDE, 2, 0x16, 0x80, 0, 9, 3)
    odd.append(struct.pack("!BBHII", 0x90, 98, 7, 0, 1) + element + bytes(50))
    return odd


def foreign_control(rng: random.Random) -> list[bytes]:
    """RTCP about others: sender report, BYE, application data, a key-frame request, feedback."""
    ssrc = rng.getrandbits(32)
    return [
        struct.pack("!BBHIQIII", 0x80, 200, 6, ssrc, rng.getrandbits(64), 0, 1, 1),
        struct.pack("!BBHI", 0x81, 203, 1, ssrc),
        struct.pack("!BBHI4s", 0x80, 204, 2, ssrc, b"junk"),
        struct.pack("!BBHII", 0x81, 206, 2, ssrc, rng.getrandbits(32)),
        struct.pack("!BBHIIHHHHI", 0x8B, 205, 5, ssrc, rng.getrandbits(32), 0, 2, 0x8000, 0, 0),
    ]


def damaged(packets: list[bytes], rng: random.Random) -> list[bytes]:
    """Real packets cut inside their headers, or with their lengths falsified."""
    result = []
    for packet in packets:
        result += [packet[:cut] for cut in range(0, min(24, len(packet)), 3)]
        result.append(packet[:2] + rng.randbytes(2) + packet[4:12])
        result.append(bytes((packet[0] | 0x2F,)) + packet[1:])
    return result


def garbage(real: list[bytes]) -> list[bytes]:
    """One of everything, the same at each run but for what is made of real packets."""
    rng = random.Random(1733)
    noise = [rng.randbytes(rng.randrange(1, 1400)) for _ in range(150)]
    mine = [*noise, *OTHER_PROTOCOLS, *foreign_media(rng), *foreign_control(rng)]
    return [*mine, *damaged(real[-8:], rng)]


class Stranger:
    """A socket nobody knows; what comes back to it is kept by the kernel."""

    def __init__(self) -> None:
        self._sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._sock.bind((HOME, 0))
        self._sock.setblocking(False)

    def send(self, packets: list[bytes], address: Address) -> int:
        for packet in packets:
            self._sock.sendto(packet, address)
        return len(packets)

    def close_unanswered(self) -> None:
        with pytest.raises(BlockingIOError):
            self._sock.recv(1)
        self._sock.close()


async def counted(daemon: Daemon, before: float, packets: int) -> None:
    """Wait until the daemon has counted that many more invalid datagrams."""
    metrics = await daemon.until(lambda m: total(m, INVALID) >= before + packets)
    assert total(metrics, INVALID) == before + packets


async def spoil_http(daemon: Daemon) -> None:
    """Noise, half a request, a request that never ends, and a reset on the HTTP port."""
    address = daemon.address("http")
    endless = b"GET / HTTP/1.1\r\nX: " + b"x" * 20_000
    for data in (random.Random(5).randbytes(500) + b"\r\n\r\n", b"GET /metr", endless):
        reader, writer = await asyncio.open_connection(*address)
        writer.write(data)
        if not data.startswith(b"GET /metr"):
            assert (await reader.readline()).startswith(b"HTTP/1.1 4")
        writer.transport.abort()
    assert await fetch(address, "/-/healthy") == "healthy\n"
    assert await fetch(address, "/-/ready") == "ready\n"


async def test_garbage_from_strangers_is_counted_and_never_answered(tmp_path: Path) -> None:
    async with Stage(tmp_path) as stage:
        receiver = await stage.receiver()
        wire = Meddler(stage, receiver.address())
        bottleneck = await stage.bottleneck(wire.near.at)
        sender = await stage.sender(bottleneck.listen, "--max-rate", "1Mbps", source="low")
        await receiver.until_decoded(5)
        assert wire.sender is not None
        targets = [
            (sender, (HOME, sender.address()[1]), wire.feedback),
            (bottleneck, bottleneck.address(), wire.media),
            (bottleneck, wire.sender, wire.feedback),
            (receiver, receiver.address(), wire.media),
        ]
        stranger = Stranger()
        for daemon, address, real in targets:
            before = total(await daemon.metrics(), INVALID)
            sent = stranger.send(garbage(real), address)
            await counted(daemon, before, sent)
        for daemon in (sender, bottleneck, receiver):
            await spoil_http(daemon)
        await receiver.until_decoded(10)
        assert (await sender.end())["invalid_datagrams_count"]["foreign_source"] > 0
        assert (await bottleneck.end())["foreign_packets_count"] > 0
        summary = await receiver.end()
        assert summary["invalid_datagrams_count"]["foreign_source"] > 0
        assert summary["streams_count"] == 1
        assert summary["frames_undecodable_count"] == 0
        stranger.close_unanswered()


async def test_garbage_from_the_peer_itself_does_not_stop_the_stream(tmp_path: Path) -> None:
    async with Stage(tmp_path) as stage:
        receiver = await stage.receiver()
        wire = Meddler(stage, receiver.address())
        bottleneck = await stage.bottleneck(wire.near.at)
        first = Meddler(stage, bottleneck.address())
        sender = await stage.sender(first.near.at, "--max-rate", "1Mbps", source="low")
        await receiver.until_decoded(5)
        # Through the bottleneck, which takes any bytes from its peers, to both ends.
        for packet in garbage(first.media):
            first.to_receiver(packet)
        for packet in garbage(wire.feedback):
            wire.to_sender(packet)
        await receiver.until(lambda m: total(m, INVALID) > 150)
        await sender.until(lambda m: total(m, INVALID) > 150)
        await receiver.until_decoded(10)
        sent = await sender.end()
        assert {"not_rtcp", "rtcp_length"} <= sent["invalid_datagrams_count"].keys()
        got = await receiver.end()
        reasons = got["invalid_datagrams_count"]
        assert {"rtp_truncated", "rtp_version", "payload_type"} <= reasons.keys()
        assert got["streams_count"] == 1
        assert got["frames_decoded_count"] >= 15
        assert (await bottleneck.end())["foreign_packets_count"] == 0


def words(feedback: bytes) -> list[int]:
    return list(struct.unpack(f"!{len(feedback) // 4}I", feedback))


def plain_feedback(packets: list[bytes]) -> list[bytes]:
    """The RFC 8888 packets among the RTCP packets."""
    return [packet for packet in packets if packet[:2] == b"\x8b\xcd"]


async def test_feedback_that_cannot_be_is_ignored_and_counted(tmp_path: Path) -> None:
    async with Stage(tmp_path) as stage:
        receiver = await stage.receiver()
        wire = Meddler(stage, receiver.address())
        sender = await stage.sender(wire.near.at, "--max-rate", "1Mbps")
        await wire.far.until(lambda: len(plain_feedback(wire.feedback)) >= 20)
        real = plain_feedback(wire.feedback)
        seq = struct.unpack_from("!H", wire.media[-1], 2)[0]
        ssrc, clock = real[-1][8:12], words(real[-1])[-1]

        def report(media_ssrc: bytes, begin: int, timestamp: int) -> bytes:
            header = b"\x8b\xcd\x00\x05" + real[-1][4:8] + media_ssrc
            blocks = struct.pack("!HHHH", begin & 0xFFFF, 2, 0x8000, 0x8000)
            return header + blocks + struct.pack("!I", timestamp & 0xFFFFFFFF)

        for packet in (real[-1], *reversed(real[-10:-1])):
            wire.to_sender(packet)
        for _ in range(5):
            wire.to_sender(report(ssrc, seq + 20_000, clock))
            wire.to_sender(report(b"\xde\xad\xbe\xef", seq, clock))
        hour = 3600 << 16
        for packet in real[-3:]:
            wire.to_sender(packet[:-4] + struct.pack("!I", words(packet)[-1] + hour & 0xFFFFFFFF))
        reasons = ("duplicate_or_reordered", "never_sent", "foreign_ssrc")
        await sender.until(
            lambda m: all(m.get(f'{IGNORED}{{reason="{reason}"}}', 0) >= 5 for reason in reasons)
        )
        await receiver.until_decoded(20)
        summary = await sender.end()
        assert summary["feedback_ignored_count"]["never_sent"] == 5
        assert summary["feedback_ignored_count"]["foreign_ssrc"] == 5
        assert summary["feedback_ignored_count"]["duplicate_or_reordered"] >= 10
        assert summary["keyframes_count"] == 1
        assert summary["sender_loss_ratio"] == 0
        assert summary["rtt_p95_s"] < 1


async def test_socket_nobody_told_us_of_is_not_taken_for_the_peer(tmp_path: Path) -> None:
    """Valid feedback from a stranger does not turn a live stream to him."""
    async with Stage(tmp_path) as stage:
        receiver = await stage.receiver()
        wire = Meddler(stage, receiver.address())
        sender = await stage.sender(wire.near.at, "--max-rate", "1Mbps")
        stranger = stage.plain()
        await wire.far.until(lambda: len(plain_feedback(wire.feedback)) >= 10)
        before = total(await sender.metrics(), INVALID)
        for packet in plain_feedback(wire.feedback)[-5:]:
            stranger.send(packet, (HOME, sender.address()[1]))
        await counted(sender, before, 5)
        await receiver.until_decoded(10)
        assert stranger.got == []
        assert sender.lines("peer_changed") == []
        assert (await sender.end())["invalid_datagrams_count"] == {"foreign_source": 5}
