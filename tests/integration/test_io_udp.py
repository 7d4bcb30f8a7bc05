"""UDP endpoints on loopback: codepoints, batches, errors and overflow with a real kernel."""

import asyncio
import errno
import socket
import sys
from functools import partial
from typing import Any

import pytest
from io_loopback import Node, eventually, needs_ipv6, needs_linux, nodes

from streamd.clock import MonotonicClock
from streamd.datagram import Address, Datagram, Transmit
from streamd.errors import StartupError
from streamd.io import sockopts
from streamd.io.net import EndpointStats, UdpOptions
from streamd.io.sockopts import open_socket
from streamd.io.udp import UdpEndpoint, UdpNetwork

pytestmark = pytest.mark.asyncio

V4 = ("127.0.0.1", 0)
V6 = ("::1", 0)
ALL = ("", 0)

FAMILIES = [
    pytest.param(V4, V4, "127.0.0.1", id="ipv4"),
    pytest.param(V6, V6, "::1", id="ipv6", marks=needs_ipv6),
    pytest.param(V4, ALL, "127.0.0.1", id="ipv4-to-dual", marks=needs_ipv6),
    pytest.param(V6, ALL, "::1", id="ipv6-to-dual", marks=needs_ipv6),
    pytest.param(ALL, ALL, "127.0.0.1", id="dual-mapped", marks=needs_ipv6),
    pytest.param(ALL, ALL, "::1", id="dual-ipv6", marks=needs_ipv6),
]


def dead_port() -> Address:
    """An address where nobody listens."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(V4)
        address: Address = sock.getsockname()
        return address


def _more_refused(stats: EndpointStats, seen: int) -> bool:
    return stats.icmp_refused > seen


def send(node: Node, to: Address, *segments: bytes, ecn: int = 1, dscp: int = 0) -> None:
    peer = node.endpoint.to_peer(to)
    node.endpoint.send(Transmit(list(segments), peer, ecn, dscp))


# ---- codepoints


@pytest.mark.parametrize(("here", "there", "host"), FAMILIES)
async def test_every_codepoint_and_the_dscp_pass_both_ways(
    here: Address, there: Address, host: str
) -> None:
    marks = [(ecn, dscp) for ecn in (0, 1, 2, 3) for dscp in (0, 46, 63)]
    async with nodes(here, there) as (a, b):
        for ecn, dscp in marks:
            send(a, b.at(host), bytes([ecn, dscp]), ecn=ecn, dscp=dscp)
        forward = await b.receive(len(marks))
        assert [(read.ecn, read.dscp) for read in forward] == marks
        assert [tuple(read.data) for read in forward] == marks
        for read in forward:
            b.endpoint.send(Transmit([read.data], read.address, read.ecn or 0, read.dscp))
        back = await a.receive(len(marks))
        assert [(read.ecn, read.dscp) for read in back] == marks
        assert a.endpoint.stats.ecn_missing == 0
        assert b.endpoint.stats.ecn_missing == 0
        assert b.endpoint.stats.control_truncated == 0


@pytest.mark.parametrize(("here", "there", "host"), FAMILIES)
async def test_addresses_reported_are_addresses_to_send_to(
    here: Address, there: Address, host: str
) -> None:
    async with nodes(here, there) as (a, b):
        send(a, b.at(host), b"ping")
        (ping,) = await b.receive(1)
        assert ping.address == b.endpoint.to_peer(a.at(host))
        b.endpoint.send(Transmit([b"pong"], ping.address, 1))
        (pong,) = await a.receive(1)
        assert pong.address == a.endpoint.to_peer(b.at(host))


async def test_an_empty_datagram_arrives() -> None:
    async with nodes(V4, V4) as (a, b):
        send(a, b.address, b"")
        send(a, b.address, b"end")
        await b.receive(2)
        assert b.payloads() == [b"", b"end"]


# ---- batches


@needs_linux
@pytest.mark.parametrize(("here", "there", "host"), FAMILIES)
async def test_a_run_crosses_in_one_call_and_one_read(
    here: Address, there: Address, host: str
) -> None:
    segments = [bytes([n]) * 1200 for n in range(9)] + [b"short"]
    async with nodes(here, there) as (a, b):
        send(a, b.at(host), *segments, ecn=3, dscp=46)
        (read,) = await b.receive(10)
        assert b.payloads() == segments
        assert (read.segment_size, read.ecn, read.dscp) == (1200, 3, 46)
        sent, got = a.endpoint.stats, b.endpoint.stats
        assert (sent.send_calls, sent.datagrams_sent, sent.bytes_sent) == (1, 10, 10805)
        assert (got.receive_calls, got.datagrams_received, got.bytes_received) == (1, 10, 10805)


@needs_linux
async def test_without_gro_a_run_arrives_as_datagrams_with_their_own_tos() -> None:
    async with nodes(V4, V4, options=UdpOptions(gro=False)) as (a, b):
        assert not b.endpoint.gro
        send(a, b.address, b"aaaa", b"bbbb", b"cc", ecn=1)
        reads = await b.receive(3)
        assert [(read.data, read.ecn) for read in reads] == [
            (b"aaaa", 1),
            (b"bbbb", 1),
            (b"cc", 1),
        ]
        assert a.endpoint.stats.send_calls == 1


async def test_without_gso_the_same_datagrams_arrive() -> None:
    async with nodes(V4, V4, options=UdpOptions(gso=False)) as (a, b):
        segments = [bytes([n]) * 100 for n in range(20)]
        send(a, b.address, *segments, ecn=2)
        reads = await b.receive(20)
        assert b.payloads() == segments
        assert {read.ecn for read in reads} == {2}
        assert a.endpoint.stats.send_calls == 20


@needs_linux
async def test_a_run_beyond_the_kernels_limits_is_split() -> None:
    async with nodes(V4, V4) as (a, b):
        segments = [n.to_bytes(2, "big") + bytes(1198) for n in range(150)]
        send(a, b.address, *segments)
        await b.receive(150)
        assert b.payloads() == segments
        assert a.endpoint.stats.send_calls == 3
        assert a.endpoint.stats.gso_fallbacks == 0


@needs_linux
async def test_a_kernel_that_refuses_the_run_gets_it_piece_by_piece() -> None:
    loop, clock = asyncio.get_running_loop(), MonotonicClock()
    sock = open_socket(V4)
    so_no_check = 11
    sock.setsockopt(socket.SOL_SOCKET, so_no_check, 1)
    endpoint = UdpEndpoint(sock, loop=loop, clock=clock)
    async with nodes(V4) as (b,):
        segments = [bytes([n]) * 50 for n in range(5)]
        for _ in range(2):
            endpoint.send(Transmit(segments, b.address, 1))
        await b.receive(10)
        assert b.payloads() == segments * 2
        assert endpoint.stats.gso_fallbacks == 1
        assert endpoint.stats.send_dropped == 0
    endpoint.close()


# ---- errors


@needs_linux
async def test_an_absent_peer_is_counted_and_the_endpoint_lives_on() -> None:
    async with nodes(V4, V4) as (a, b):
        stats = a.endpoint.stats
        for _ in range(3):
            seen = stats.icmp_refused
            send(a, dead_port(), b"anybody?")
            await eventually(partial(_more_refused, stats, seen))
        send(b, a.address, b"still there")
        await a.receive(1)
        assert a.payloads() == [b"still there"]
        assert a.endpoint.stats.icmp_refused == 3
        assert a.endpoint.stats.send_dropped == 0
        assert a.endpoint.stats.receive_errors == 0


@needs_linux
async def test_refusals_do_not_cost_datagrams_for_others() -> None:
    async with nodes(V4, V4) as (a, b):
        nobody = dead_port()
        for n in range(50):
            send(a, nobody, b"lost")
            send(a, b.address, bytes([n]))
        await b.receive(50)
        assert b.payloads() == [bytes([n]) for n in range(50)]
        assert a.endpoint.stats.datagrams_sent == 100
        await eventually(lambda: a.endpoint.stats.icmp_refused == 50)


@needs_linux
@needs_ipv6
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_a_dual_stack_endpoint_hears_of_refusals_of_both_families(host: str) -> None:
    async with nodes(ALL) as (a,):
        send(a, (host, dead_port()[1]), b"anybody?")
        await eventually(lambda: a.endpoint.stats.icmp_refused == 1)


async def test_too_big_is_counted_not_raised() -> None:
    async with nodes(V4, V4) as (a, b):
        send(a, b.address, bytes(65508))
        send(a, b.address, b"next")
        await b.receive(1)
        assert b.payloads() == [b"next"]
        assert a.endpoint.stats.send_too_big == 1
        assert a.endpoint.stats.send_dropped == 1


async def test_a_port_in_use_is_one_clear_line() -> None:
    async with nodes(V4) as (a,):
        host, port = a.address
        network = UdpNetwork(asyncio.get_running_loop(), MonotonicClock())
        with pytest.raises(StartupError) as caught:
            network.open_udp((host, port))
        reason = "Address already in use"
        assert str(caught.value) == f"cannot open UDP 127.0.0.1:{port}: {reason}"


# ---- buffers and time


@needs_linux
async def test_a_full_receive_buffer_shows_as_kernel_drops() -> None:
    loop, clock = asyncio.get_running_loop(), MonotonicClock()
    network = UdpNetwork(loop, clock)
    sink = network.open_udp(V4, options=UdpOptions(receive_buffer=20_000, gro=False))
    got: list[Datagram] = []
    async with nodes(V4) as (a,):
        for n in range(500):
            send(a, sink.local_address, n.to_bytes(2, "big") + bytes(1000))
        dropped = sink.stats.kernel_drops
        assert 0 < dropped < 500
        sink.start(got.extend)
        await eventually(lambda: len(got) + dropped == 500)
        assert sink.stats.kernel_drops == dropped
    sink.close()
    assert sink.stats.kernel_drops == dropped


async def test_the_buffers_granted_are_read_back() -> None:
    async with nodes(V4, options=UdpOptions(receive_buffer=65536, send_buffer=65536)) as (a,):
        assert a.endpoint.receive_buffer == 65536
        assert a.endpoint.send_buffer == 65536


@needs_linux
async def test_arrival_is_stamped_by_the_kernel_in_session_time() -> None:
    clock = MonotonicClock()
    network = UdpNetwork(asyncio.get_running_loop(), clock)
    sink = network.open_udp(V4)
    assert sink.stamped
    got: list[Datagram] = []
    async with nodes(V4) as (a,):
        before = clock.now()
        send(a, sink.local_address, b"early")
        sent = clock.now()
        sink.start(got.extend)
        await eventually(lambda: len(got) == 1)
        assert before - 0.01 <= got[0].received_at <= sent + 0.01
    sink.close()


async def test_without_kernel_stamps_arrival_is_the_read() -> None:
    clock = MonotonicClock()
    network = UdpNetwork(asyncio.get_running_loop(), clock)
    sink = network.open_udp(V4, options=UdpOptions(timestamps=False))
    got: list[Datagram] = []
    async with nodes(V4) as (a,):
        send(a, sink.local_address, b"1")
        sent = clock.now()
        sink.start(got.extend)
        await eventually(lambda: len(got) == 1)
        assert sent <= got[0].received_at <= clock.now()
    sink.close()


# ---- a full send buffer, with a socket that says so


class FullSocket(socket.socket):
    """A real socket whose next sends fail as told."""

    failures: list[int]

    def sendmsg(self, *arguments: Any) -> int:
        if self.failures:
            raise OSError(self.failures.pop(0), "scripted")
        return super().sendmsg(*arguments)


async def test_a_full_send_buffer_delays_and_keeps_the_order() -> None:
    loop, clock = asyncio.get_running_loop(), MonotonicClock()
    sock = FullSocket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.failures = [errno.EAGAIN, errno.EAGAIN, errno.ENOBUFS]
    sock.bind(V4)
    sock.setblocking(False)
    endpoint = UdpEndpoint(sock, loop=loop, clock=clock)
    async with nodes(V4) as (b,):
        for n in range(5):
            endpoint.send(Transmit([bytes([n])], b.address, 1))
        assert endpoint.backlog == 5
        await b.receive(4)
        assert b.payloads() == [b"\x01", b"\x02", b"\x03", b"\x04"]
        assert endpoint.backlog == 0
        assert endpoint.stats.send_would_block == 2
        assert endpoint.stats.send_no_buffers == 1
        assert endpoint.stats.send_dropped == 1
    endpoint.close()


# ---- systems with less


async def test_a_system_without_linuxs_extras_still_carries_ecn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(sockopts, "IS_LINUX", False)
    async with nodes(V4, V4) as (a, b):
        endpoint = a.endpoint
        assert (endpoint.gso, endpoint.gro, endpoint.stamped) == (False, False, False)
        send(a, b.address, b"aa", b"bb", b"c", ecn=3)
        reads = await b.receive(3)
        assert [(read.data, read.ecn) for read in reads] == [(b"aa", 3), (b"bb", 3), (b"c", 3)]
        assert b.endpoint.stats.kernel_drops == 0


# ---- the end


async def test_a_closed_endpoint_neither_delivers_nor_raises() -> None:
    async with nodes(V4, V4) as (a, b):
        send(b, a.address, b"too late")
        a.endpoint.close()
        a.endpoint.close()
        a.endpoint.poll()
        send(a, b.address, b"nobody sends this")
        send(b, b.address, b"own")
        await b.receive(1)
        assert b.payloads() == [b"own"]
        assert a.got == []
        assert a.endpoint.stats.send_errors == 1


async def test_closing_from_the_delivery_is_safe() -> None:
    network = UdpNetwork(asyncio.get_running_loop(), MonotonicClock())
    sink = network.open_udp(V4)
    done: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def close_at_once(batch: list[Datagram]) -> None:
        sink.close()
        done.set_result(len(batch))

    sink.start(close_at_once)
    async with nodes(V4) as (a,):
        send(a, sink.local_address, b"x")
        assert await done == 1
