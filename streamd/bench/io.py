"""CPU cost of the socket shell and the timer: `python -m streamd.bench.io [--json FILE]`.

Loopback only, a few seconds. Every figure is the best of several rounds, which
is what the code costs when nobody disturbs it; "bare" is the system call alone
from Python with prepared arguments.
"""

import argparse
import asyncio
import json
import socket
import time
from collections.abc import Callable
from pathlib import Path

import uvloop

from streamd.clock import MonotonicClock
from streamd.datagram import Datagram, Transmit
from streamd.ecn import ECT1
from streamd.io.cmsg import CONTROL_BYTES, send_items
from streamd.io.net import UdpOptions
from streamd.io.timer import DeadlineTimer
from streamd.io.udp import UdpEndpoint, UdpNetwork

SIZE = 1200
RUNS = (1, 4, 16)
_BURST = 32
_BURSTS = 40
_ROUNDS = 7
_TIMER_PERIOD = 0.0005
_TIMER_SHOTS = 1500
_ARMINGS = 5000


def best(measure: Callable[[], float]) -> float:
    """The least of several rounds."""
    return min(measure() for _ in range(_ROUNDS))


class SocketBench:
    """Two endpoints on loopback and the same calls made bare."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        network = UdpNetwork(loop, MonotonicClock())
        self.source = network.open_udp(("127.0.0.1", 0))
        self.sink = network.open_udp(("127.0.0.1", 0), options=UdpOptions(gro=True))
        self.raw = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.raw_sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.raw_sink.bind(("127.0.0.1", 0))
        self.raw_sink.setblocking(False)
        self.sink.start(self._take)
        self.taken = 0
        self.overhead = best(_reading_the_clock)
        """What measuring itself costs, which matters around a single read."""

    def close(self) -> None:
        """Release the sockets."""
        self.source.close()
        self.sink.close()
        self.raw.close()
        self.raw_sink.close()

    def _take(self, batch: list[Datagram]) -> None:
        self.taken += len(batch)

    def measure(self, run: int) -> dict[str, float]:
        """Seconds of CPU per call for runs of `run` datagrams."""
        segments = [bytes(SIZE)] * run
        return {
            f"send_run{run}_s": best(lambda: self._send(segments)),
            f"send_bare_run{run}_s": best(lambda: self._send_bare(segments)),
            f"receive_run{run}_s": best(lambda: self._receive(segments, _BURST)),
            f"receive_alone_run{run}_s": best(lambda: self._receive(segments, 1)),
            f"receive_bare_run{run}_s": best(lambda: self._receive_bare(segments)),
        }

    def _send(self, segments: list[bytes]) -> float:
        transmit = Transmit(segments, self.raw_sink.getsockname(), ECT1)
        return self._timed_sends(lambda: self.source.send(transmit))

    def _send_bare(self, segments: list[bytes]) -> float:
        items = send_items(socket.AF_INET, ECT1, SIZE if len(segments) > 1 else 0)
        target, sendmsg = self.raw_sink.getsockname(), self.raw.sendmsg
        return self._timed_sends(lambda: sendmsg(segments, items, 0, target))

    def _timed_sends(self, send: Callable[[], object]) -> float:
        spent = 0.0
        for _ in range(_BURSTS):
            begun = time.process_time()
            for _ in range(_BURST):
                send()
            spent += time.process_time() - begun
            self._empty_raw_sink()
        return spent / (_BURSTS * _BURST)

    def _empty_raw_sink(self) -> None:
        try:
            while True:
                self.raw_sink.recv(65535)
        except BlockingIOError:
            return

    def _receive(self, segments: list[bytes], burst: int) -> float:
        items = send_items(socket.AF_INET, ECT1, SIZE if len(segments) > 1 else 0)
        spent = 0.0
        self.taken = 0
        while self.taken < _BURSTS * _BURST:
            for _ in range(burst):
                self.raw.sendmsg(segments, items, 0, self.sink.local_address)
            begun = time.process_time()
            self.sink.poll()
            spent += time.process_time() - begun - self.overhead
        return spent / self.taken

    def _receive_bare(self, segments: list[bytes]) -> float:
        """As `_receive`, on the endpoint's own socket so that the options are the same."""
        items = send_items(socket.AF_INET, ECT1, SIZE if len(segments) > 1 else 0)
        recvmsg = _socket_of(self.sink).recvmsg
        spent = 0.0
        for _ in range(_BURSTS):
            for _ in range(_BURST):
                self.raw.sendmsg(segments, items, 0, self.sink.local_address)
            begun = time.process_time()
            for _ in range(_BURST):
                recvmsg(65535, CONTROL_BYTES)
            spent += time.process_time() - begun
        return spent / (_BURSTS * _BURST)


def _reading_the_clock() -> float:
    begun = time.process_time()
    for _ in range(_ARMINGS):
        time.process_time()
    return (time.process_time() - begun) / _ARMINGS


def _socket_of(endpoint: UdpEndpoint) -> socket.socket:
    return endpoint._sock


def measure_arming(loop: asyncio.AbstractEventLoop) -> dict[str, float]:
    """Seconds of CPU per `DeadlineTimer.arm`, by how the deadline differs from the armed one."""
    return {
        "arm_same_s": best(lambda: _arming(loop, 0.0)),
        "arm_earlier_s": best(lambda: _arming(loop, -1e-6)),
        "arm_later_s": best(lambda: _arming(loop, 1e-6)),
    }


def _arming(loop: asyncio.AbstractEventLoop, step: float) -> float:
    clock = MonotonicClock()
    timer = DeadlineTimer(loop, clock, lambda now: None)
    start = clock.now() + 3600.0
    begun = time.process_time()
    for index in range(_ARMINGS):
        timer.arm(start + step * index)
    spent = time.process_time() - begun
    timer.close()
    return spent / _ARMINGS


async def measure_firing() -> dict[str, float]:
    """Lateness and CPU of deadlines `_TIMER_PERIOD` apart, and of deadlines already past."""
    loop, clock = asyncio.get_running_loop(), MonotonicClock()
    done: asyncio.Future[None] = loop.create_future()
    late: list[float] = []
    period = _TIMER_PERIOD

    def on_deadline(now: float) -> None:
        late.append(clock.now() - due[0])
        if len(late) >= _TIMER_SHOTS:
            done.set_result(None)
            return
        due[0] = now + period
        timer.arm(due[0])

    timer = DeadlineTimer(loop, clock, on_deadline)
    due = [clock.now() + period]
    timer.arm(due[0])
    begun = time.process_time()
    await done
    spent = time.process_time() - begun
    late.sort()
    result = {
        "timer_late_p50_s": late[len(late) // 2],
        "timer_late_p99_s": late[len(late) * 99 // 100],
        "timer_late_max_s": late[-1],
        "timer_wakeup_s": spent / _TIMER_SHOTS,
    }
    late.clear()
    done = loop.create_future()
    period = 0.0
    due[0] = clock.now()
    timer.arm(due[0])
    begun = time.process_time()
    await done
    result["timer_past_s"] = (time.process_time() - begun) / _TIMER_SHOTS
    timer.close()
    return result


def measure() -> dict[str, float]:
    """Everything, under flat keys in seconds (of CPU, but for `timer_late_*`)."""
    result: dict[str, float] = {}
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        loop = runner.get_loop()
        sockets = SocketBench(loop)
        for run in RUNS:
            result |= sockets.measure(run)
        sockets.close()
        result |= measure_arming(loop)
        result |= runner.run(measure_firing())
    return result


def table(result: dict[str, float]) -> str:
    """The figures for people, in microseconds."""
    lines = [f"{'us of CPU, 1200-byte datagrams':34}{'per call':>10}{'bare':>8}{'/datagram':>11}"]
    for way, label in (
        ("send", "send, run of {}"),
        ("receive", "receive in bursts, run of {}"),
        ("receive_alone", "receive one read, run of {}"),
    ):
        bare = way.removesuffix("_alone") + "_bare"
        for run in RUNS:
            cost = result[f"{way}_run{run}_s"] * 1e6
            floor = result[f"{bare}_run{run}_s"] * 1e6
            lines.append(f"{label.format(run):34}{cost:10.2f}{floor:8.2f}{cost / run:11.2f}")
    for key in sorted(result):
        if key.startswith(("arm_", "timer_")):
            lines.append(f"{key.removesuffix('_s'):34}{result[key] * 1e6:10.2f}")
    return "\n".join(lines)


def main() -> None:
    """Measure, print, and write JSON if asked."""
    parser = argparse.ArgumentParser(prog="python -m streamd.bench.io", description=__doc__)
    parser.add_argument("--json", type=Path, help="also write the figures there")
    arguments = parser.parse_args()
    result = measure()
    print(table(result))
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
