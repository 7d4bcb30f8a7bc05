"""The sending half against a socket that fails on order."""

import errno
import socket

from io_fakes import FakeLoop, ScriptedSocket

from streamd.datagram import Transmit
from streamd.ecn import CE, ECT1
from streamd.io.net import EndpointStats
from streamd.io.udp_send import UdpSender

PEER = ("127.0.0.1", 9)
TOS_ECT1 = (socket.IPPROTO_IP, socket.IP_TOS, b"\x01\0\0\0")


class Bench:
    def __init__(
        self, *, family: int = socket.AF_INET, gso: bool = True, backlog_limit: int = 8
    ) -> None:
        self.sock = ScriptedSocket(family)
        self.loop = FakeLoop()
        self.stats = EndpointStats()
        self.sender = UdpSender(
            self.sock.as_socket(),
            loop=self.loop.as_loop(),
            stats=self.stats,
            gso=gso,
            backlog_limit=backlog_limit,
        )

    def send(self, *segments: bytes, ecn: int = ECT1, dscp: int = 0) -> None:
        self.sender.send(Transmit(list(segments), PEER, ecn, dscp))

    def fail(self, *codes: int) -> None:
        self.sock.failures = list(codes)

    @property
    def sent(self) -> list[list[bytes]]:
        return [buffers for buffers, _, _ in self.sock.sent]

    def nonzero(self) -> dict[str, int]:
        return {name: value for name, value in self.stats.as_dict().items() if value}


def test_one_datagram_is_one_call_with_its_tos() -> None:
    bench = Bench()
    bench.send(b"abc", ecn=CE, dscp=46)
    assert bench.sock.sent == [([b"abc"], [(0, 1, b"\xbb\0\0\0")], PEER)]
    assert bench.nonzero() == {"send_calls": 1, "datagrams_sent": 1, "bytes_sent": 3}


def test_a_run_is_one_call_with_its_segment_size() -> None:
    bench = Bench()
    bench.send(b"aaaa", b"bbbb", b"c")
    assert bench.sock.sent == [([b"aaaa", b"bbbb", b"c"], [TOS_ECT1, (17, 103, b"\x04\0")], PEER)]
    assert bench.nonzero() == {"send_calls": 1, "datagrams_sent": 3, "bytes_sent": 9}


def test_a_dual_stack_socket_attaches_both_items() -> None:
    bench = Bench(family=socket.AF_INET6)
    bench.send(b"abc")
    assert bench.sock.sent[0][1] == [TOS_ECT1, (41, socket.IPV6_TCLASS, b"\x01\0\0\0")]


def test_a_long_run_is_split_at_64_segments() -> None:
    bench = Bench()
    bench.send(*[b"xy"] * 130)
    assert [len(run) for run in bench.sent] == [64, 64, 2]
    assert bench.stats.datagrams_sent == 130


def test_a_heavy_run_is_split_at_65000_bytes() -> None:
    bench = Bench()
    bench.send(*[bytes(1400)] * 60)
    assert [len(run) for run in bench.sent] == [46, 14]


def test_without_gso_every_datagram_is_its_own_call() -> None:
    bench = Bench(gso=False)
    bench.send(b"aa", b"bb", b"c")
    assert bench.sock.sent == [([data], [TOS_ECT1], PEER) for data in (b"aa", b"bb", b"c")]


def test_items_are_made_once_per_kind_of_send_and_never_pile_up() -> None:
    bench = Bench()
    bench.send(b"aa", b"bb")
    bench.send(b"cc", b"dd")
    assert bench.sock.sent[0][1] is bench.sock.sent[1][1]
    for size in range(1, 3000):
        bench.send(bytes(size), bytes(size))
    assert len(bench.sender._items) <= 1024


# ---- GSO refused


def test_a_device_without_checksum_offload_ends_gso_for_good() -> None:
    bench = Bench()
    bench.fail(errno.EIO, errno.EIO)
    bench.send(b"aa", b"bb", b"cc")
    bench.send(b"dd", b"ee")
    assert bench.sent == [[b"aa"], [b"bb"], [b"cc"], [b"dd"], [b"ee"]]
    assert bench.stats.gso_fallbacks == 1
    assert bench.stats.send_dropped == 0


def test_segments_too_large_for_the_path_go_alone_and_smaller_ones_still_run() -> None:
    bench = Bench()
    bench.fail(errno.EINVAL, errno.EINVAL)
    bench.send(bytes(1480), bytes(1480))
    bench.send(bytes(1480), bytes(1480))
    bench.send(bytes(1479), bytes(1479))
    assert [[len(data) for data in run] for run in bench.sent] == [
        [1480],
        [1480],
        [1480],
        [1480],
        [1479, 1479],
    ]
    assert bench.stats.gso_fallbacks == 1


def test_a_run_refused_for_another_reason_teaches_nothing() -> None:
    bench = Bench()
    bench.fail(*[errno.EINVAL] * 6)
    bench.send(b"aa", b"bb")
    assert bench.stats.send_errors == 2
    assert bench.stats.send_dropped == 2
    bench.send(b"cc", b"dd")
    assert bench.sent == [[b"cc", b"dd"]]


# ---- ICMP, ENOBUFS, EMSGSIZE


def test_a_reported_icmp_error_does_not_cost_the_datagram() -> None:
    bench = Bench()
    bench.fail(errno.ECONNREFUSED)
    bench.send(b"abc")
    assert bench.sent == [[b"abc"]]
    assert bench.nonzero() == {
        "send_calls": 1,
        "datagrams_sent": 1,
        "bytes_sent": 3,
        "pending_errors": 1,
    }


def test_no_buffers_costs_the_run_and_is_counted() -> None:
    bench = Bench()
    bench.fail(errno.ENOBUFS)
    bench.send(b"aa", b"bb", b"cc")
    bench.send(b"dd")
    assert bench.sent == [[b"dd"]]
    assert bench.stats.send_no_buffers == 1
    assert bench.stats.send_dropped == 3
    assert not bench.loop.writers


def test_too_big_is_counted_apart() -> None:
    bench = Bench()
    bench.fail(errno.EMSGSIZE, errno.EMSGSIZE)
    bench.send(bytes(70000))
    assert bench.stats.send_too_big == 1
    assert bench.stats.send_dropped == 1
    assert bench.stats.send_errors == 0


def test_no_route_is_counted_and_not_raised() -> None:
    bench = Bench()
    bench.fail(errno.ENETUNREACH, errno.ENETUNREACH)
    bench.send(b"aa", b"bb")
    assert bench.nonzero() == {"send_errors": 1, "send_dropped": 2}


# ---- EAGAIN


def test_a_full_send_buffer_makes_runs_wait_in_order() -> None:
    bench = Bench()
    bench.fail(errno.EAGAIN)
    bench.send(b"1a", b"1b")
    bench.send(b"2")
    bench.send(b"3")
    assert bench.sent == []
    assert bench.sock.calls == 1
    assert bench.sender.waiting == 4
    bench.loop.writers[77]()
    assert bench.sent == [[b"1a", b"1b"], [b"2"], [b"3"]]
    assert bench.sender.waiting == 0
    assert not bench.loop.writers
    assert bench.stats.send_would_block == 1
    assert bench.stats.send_dropped == 0


def test_a_buffer_that_fills_again_keeps_the_order() -> None:
    bench = Bench()
    bench.fail(errno.EAGAIN)
    for data in (b"1", b"2", b"3"):
        bench.send(data)
    bench.fail(0, errno.EAGAIN)
    bench.loop.writers[77]()
    assert bench.sent == [[b"1"]]
    assert bench.sender.waiting == 2
    bench.loop.writers[77]()
    assert bench.sent == [[b"1"], [b"2"], [b"3"]]


def test_the_backlog_is_bounded_and_loses_its_oldest() -> None:
    bench = Bench(backlog_limit=3)
    bench.fail(errno.EAGAIN)
    for data in (b"1", b"2", b"3", b"4", b"5"):
        bench.send(data)
    assert bench.sender.waiting == 3
    assert bench.stats.backlog_drops == 2
    assert bench.stats.send_dropped == 2
    bench.loop.writers[77]()
    assert bench.sent == [[b"3"], [b"4"], [b"5"]]


def test_a_run_larger_than_the_backlog_does_not_wait() -> None:
    bench = Bench(backlog_limit=3)
    bench.fail(errno.EAGAIN)
    bench.send(b"1")
    bench.send(*[b"x"] * 4)
    assert bench.sender.waiting == 0
    assert bench.stats.backlog_drops == 5


def test_a_run_sent_apart_that_meets_a_full_buffer_goes_on_where_it_stopped() -> None:
    bench = Bench()
    bench.fail(errno.EIO, errno.EIO, 0, errno.EAGAIN)
    bench.send(b"1", b"2", b"3")
    bench.send(b"4")
    assert bench.sent == [[b"1"]]
    assert bench.sender.waiting == 3
    bench.loop.writers[77]()
    assert bench.sent == [[b"1"], [b"2"], [b"3"], [b"4"]]


def test_the_first_of_a_backlog_may_fail_and_the_rest_still_goes() -> None:
    bench = Bench()
    bench.fail(errno.EAGAIN)
    bench.send(b"1")
    bench.send(b"2")
    bench.fail(errno.ENOBUFS)
    bench.loop.writers[77]()
    assert bench.sent == [[b"2"]]
    assert bench.stats.send_dropped == 1
    assert bench.sender.waiting == 0


def test_close_tries_once_more_and_counts_what_is_left() -> None:
    bench = Bench()
    bench.fail(errno.EAGAIN)
    for data in (b"1", b"2", b"3"):
        bench.send(data)
    bench.fail(0, errno.EAGAIN)
    bench.sender.close()
    assert bench.sent == [[b"1"]]
    assert bench.stats.send_dropped == 2
    assert bench.sender.waiting == 0
    assert not bench.loop.writers
