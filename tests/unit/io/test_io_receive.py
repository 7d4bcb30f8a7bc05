"""The receiving half against a socket that returns what the test scripts."""

import errno
import socket
import struct
from collections.abc import Iterator
from typing import Any, cast

import pytest
from io_fakes import FakeLoop, ManualClock

from streamd.datagram import Datagram
from streamd.io.cmsg import Item, StampClock, icmp_errno
from streamd.io.net import EndpointStats
from streamd.io.udp_receive import UdpReceiver

PEER = ("192.0.2.7", 7)
REAL_AHEAD = 1_700_000_000.0
"""Real time minus session time in these tests (s)."""

pytestmark = pytest.mark.skipif(
    not hasattr(socket, "MSG_ERRQUEUE"), reason="control messages as Linux has them"
)


def tos4(value: int) -> Item:
    return (0, 1, bytes([value]))


def tos6(value: int) -> Item:
    return (41, 67, struct.pack("=i", value))


def stamp(session_time: float) -> Item:
    seconds, fraction = divmod(session_time + REAL_AHEAD, 1.0)
    return (1, 35, struct.pack("@ll", int(seconds), round(fraction * 1e9)))


def icmp(code: int, origin: int = 2) -> Item:
    return (0, 11, struct.pack("=IBBBBII", code, origin, 3, 3, 0, 0, 0) + bytes(16))


Read = tuple[bytes, list[Item], int, tuple[str, int]]


class ScriptedReads:
    """Returns scripted reads; FIONREAD on its descriptor always says there is more."""

    def __init__(self) -> None:
        self._real = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._real.bind(("127.0.0.1", 0))
        self._real.sendto(b"x", self._real.getsockname())
        self.reads: list[Read | int] = []
        self.errors: list[Item] = []

    def fileno(self) -> int:
        return self._real.fileno()

    def close(self) -> None:
        self._real.close()

    def recvmsg(self, size: int, control: int, flags: int = 0) -> Any:
        if flags & socket.MSG_ERRQUEUE:
            if not self.errors:
                raise BlockingIOError(errno.EAGAIN, "empty")
            return b"", [self.errors.pop(0)], socket.MSG_ERRQUEUE, PEER
        found = self.reads.pop(0) if self.reads else errno.EAGAIN
        if isinstance(found, int):
            raise OSError(found, "scripted")
        return found


class Bench:
    def __init__(self, *, stamped: bool = False, read_limit: int = 64) -> None:
        self.sock = ScriptedReads()
        self.clock = ManualClock(100.0)
        self.stats = EndpointStats()
        self.got: list[list[Datagram]] = []
        self.real_ahead = REAL_AHEAD
        stamps = StampClock(self.clock, lambda: self.clock.time + self.real_ahead)
        self.loop = FakeLoop()
        self.receiver = UdpReceiver(
            cast(socket.socket, self.sock),
            loop=self.loop.as_loop(),
            clock=self.clock,
            stats=self.stats,
            stamps=stamps if stamped else None,
            read_limit=read_limit,
        )
        self.receiver.start(self.got.append)

    def wake(self, *reads: Read | int) -> list[Datagram]:
        """One wake-up with these reads, EAGAIN after them."""
        self.sock.reads = list(reads)
        self.got.clear()
        (callback,) = self.loop.readers.values()
        callback()
        assert len(self.got) <= 1, "one delivery per wake-up"
        return self.got[0] if self.got else []


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.receiver.close()
    made.sock.close()


@pytest.fixture
def stamped() -> Iterator[Bench]:
    made = Bench(stamped=True)
    yield made
    made.receiver.close()
    made.sock.close()


def read(data: bytes, *items: Item, flags: int = 0) -> Read:
    return data, list(items), flags, PEER


def test_everything_that_waits_comes_in_one_delivery(bench: Bench) -> None:
    batch = bench.wake(*[read(bytes([n]), tos4(1)) for n in range(10)])
    assert [datagram.data for datagram in batch] == [bytes([n]) for n in range(10)]
    assert bench.stats.wakeups == 1
    assert bench.stats.receive_calls == 10


@pytest.mark.parametrize("item", [tos4, tos6])
@pytest.mark.parametrize("ecn", [0, 1, 2, 3])
def test_codepoint_and_dscp_are_told_apart(bench: Bench, item: Any, ecn: int) -> None:
    (datagram,) = bench.wake(read(b"a", item(46 << 2 | ecn)))
    assert (datagram.ecn, datagram.dscp) == (ecn, 46)
    assert bench.stats.ecn_missing == 0


def test_a_missing_item_is_unknown_not_zero(bench: Bench) -> None:
    (datagram,) = bench.wake(read(b"a"))
    assert datagram.ecn is None
    assert bench.stats.ecn_missing == 1


def test_a_gro_read_counts_its_segments(bench: Bench) -> None:
    (datagram,) = bench.wake(read(bytes(2500), (17, 104, struct.pack("=i", 1200)), tos4(3)))
    assert datagram.segment_size == 1200
    assert [len(data) for data in datagram.segments()] == [1200, 1200, 100]
    assert bench.stats.datagrams_received == 3
    assert bench.stats.bytes_received == 2500
    assert bench.stats.receive_calls == 1


def test_an_empty_datagram_is_one(bench: Bench) -> None:
    (datagram,) = bench.wake(read(b"", tos4(1)))
    assert list(datagram.segments()) == [b""]
    assert bench.stats.datagrams_received == 1


def test_a_cut_payload_is_thrown_away_and_counted(bench: Bench) -> None:
    batch = bench.wake(read(b"cut", tos4(1), flags=socket.MSG_TRUNC), read(b"ok", tos4(1)))
    assert [datagram.data for datagram in batch] == [b"ok"]
    assert bench.stats.truncated == 1
    assert bench.stats.datagrams_received == 1


def test_cut_control_data_is_counted_and_the_payload_kept(bench: Bench) -> None:
    (datagram,) = bench.wake(read(b"ok", flags=socket.MSG_CTRUNC))
    assert datagram.data == b"ok"
    assert datagram.ecn is None
    assert bench.stats.control_truncated == 1


def test_reads_per_wakeup_are_bounded() -> None:
    bench = Bench(read_limit=5)
    batch = bench.wake(*[read(b"a", tos4(1))] * 8)
    assert len(batch) == 5
    assert len(bench.sock.reads) == 3
    bench.receiver.close()
    bench.sock.close()


def test_drops_of_the_kernel_are_cumulative_and_wrap(bench: Bench) -> None:
    def overflow(count: int) -> Item:
        return (1, 40, struct.pack("=I", count))

    bench.wake(read(b"a", overflow(0xFFFFFFFE), tos4(1)))
    assert bench.stats.kernel_drops == 0xFFFFFFFE
    bench.wake(read(b"a", overflow(3), tos4(1)))
    assert bench.stats.kernel_drops == 0xFFFFFFFE + 5


# ---- errors


def test_an_icmp_error_does_not_stop_reading(bench: Bench) -> None:
    bench.sock.errors = [icmp(errno.ECONNREFUSED)]
    (datagram,) = bench.wake(errno.ECONNREFUSED, read(b"a", tos4(1)))
    assert datagram.data == b"a"
    assert bench.stats.icmp_refused == 1
    assert bench.stats.pending_errors == 1
    assert bench.stats.receive_errors == 0


def test_a_wakeup_for_nothing_looks_into_the_error_queue(bench: Bench) -> None:
    bench.sock.errors = [
        icmp(errno.ECONNREFUSED),
        icmp(errno.EHOSTUNREACH),
        icmp(errno.EMSGSIZE),
        icmp(errno.EPROTO),
        icmp(errno.EMSGSIZE, origin=1),
    ]
    assert bench.wake() == []
    assert not bench.sock.errors
    stats = bench.stats
    assert stats.icmp_refused == 1
    assert stats.icmp_unreachable == 1
    assert stats.icmp_too_big == 1
    assert stats.icmp_other == 1


def test_an_error_storm_is_taken_in_parts(bench: Bench) -> None:
    bench.sock.errors = [icmp(errno.ECONNREFUSED)] * 100
    bench.wake()
    assert bench.stats.icmp_refused == 64
    bench.wake()
    assert bench.stats.icmp_refused == 100


def test_a_read_that_fails_for_another_reason_is_counted(bench: Bench) -> None:
    assert bench.wake(errno.ENOMEM) == []
    assert bench.stats.receive_errors == 1


def test_local_errors_and_short_items_are_no_icmp() -> None:
    assert icmp_errno([icmp(errno.ECONNREFUSED)]) == errno.ECONNREFUSED
    assert icmp_errno([icmp(errno.EMSGSIZE, origin=1)]) == 0
    assert icmp_errno([(0, 11, b"\1")]) == 0
    assert icmp_errno([tos4(1)]) == 0


# ---- arrival


def test_without_kernel_stamps_arrival_is_the_time_of_the_read(bench: Bench) -> None:
    bench.clock.time = 100.25
    (datagram,) = bench.wake(read(b"a", tos4(1)))
    assert datagram.received_at == 100.25


def test_a_kernel_stamp_becomes_session_time(stamped: Bench) -> None:
    stamped.clock.time = 101.0
    (datagram,) = stamped.wake(read(b"a", stamp(100.75), tos4(1)))
    assert datagram.received_at == pytest.approx(100.75, abs=1e-6)


def test_nothing_arrives_in_the_future(stamped: Bench) -> None:
    stamped.clock.time = 101.0
    (datagram,) = stamped.wake(read(b"a", stamp(101.5), tos4(1)))
    assert datagram.received_at == 101.0


def test_nothing_arrived_before_the_socket_was_seen_empty(stamped: Bench) -> None:
    stamped.clock.time = 101.0
    stamped.wake(read(b"a", stamp(100.9), tos4(1)))
    stamped.clock.time = 102.0
    (datagram,) = stamped.wake(read(b"a", stamp(40.0), tos4(1)))
    assert datagram.received_at == pytest.approx(101.0 - 0.01, abs=1e-9)


def test_a_step_of_the_wall_clock_is_followed(stamped: Bench) -> None:
    stamped.clock.time = 101.0
    stamped.wake(read(b"a", stamp(100.9), tos4(1)))
    stamped.real_ahead -= 3600.0
    stamped.clock.time = 102.0
    (datagram,) = stamped.wake(read(b"a", stamp(101.5 - 3600.0), tos4(1)))
    assert datagram.received_at == pytest.approx(101.5, abs=1e-6)


def test_an_interrupted_sample_of_the_two_clocks_is_taken_again() -> None:
    times = iter([1.0, 1.5, 2.0, 2.0 + 2e-6])
    reals = iter([1001.49, 1002.0])

    class Interrupted:
        def now(self) -> float:
            return next(times)

        def unix(self) -> float:
            return 0.0

    stamps = StampClock(Interrupted(), lambda: next(reals))
    assert stamps.sample() == pytest.approx(-1000.0, abs=1e-5)


# ---- start, poll, close


def test_poll_reads_what_waits(bench: Bench) -> None:
    bench.sock.reads = [read(b"a", tos4(1))]
    bench.receiver.poll()
    assert [datagram.data for datagram in bench.got[0]] == [b"a"]


def test_after_close_nothing_is_read(bench: Bench) -> None:
    bench.receiver.close()
    bench.receiver.close()
    assert not bench.loop.readers
    bench.sock.reads = [read(b"a", tos4(1))]
    bench.receiver.poll()
    assert bench.got == []
