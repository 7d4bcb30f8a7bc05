"""Real daemons and plain sockets for end-to-end tests; whatever happens, all of them end.

Nothing here waits for time to pass: a test waits for log lines, for metrics (looked at
again after each log line) or for datagrams, and gives up after `PATIENCE`.
"""

import asyncio
import json
import socket
import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Self

import pytest

from streamd.io.address import format_address, parse_host_port
from streamd.stack.process import DaemonProcess, Record

PATIENCE = 40.0
"""Seconds after which a test that waits for something gives up."""
HOME = "127.0.0.1"

Metrics = dict[str, float]
Address = tuple[Any, ...]


def has_ipv6() -> bool:
    """Whether ::1 can be bound here."""
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as sock:
            sock.bind(("::1", 0))
    except OSError:
        return False
    return True


needs_ipv6 = pytest.mark.skipif(not has_ipv6(), reason="no IPv6 on this machine")
needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="/proc and signals of Linux")


def free_port(host: str = HOME) -> int:
    """A UDP port nobody has at this moment."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind((host, 0))
        port: int = sock.getsockname()[1]
        return port


def stamp(line: Record) -> float:
    """When a log line was written, Unix time (s)."""
    return datetime.fromisoformat(line["timestamp"]).timestamp()


def total(metrics: Metrics, name: str) -> float:
    """The sum over all labels of a metric."""
    return sum(value for key, value in metrics.items() if key.partition("{")[0] == name)


class Daemon:
    """One child process, its whole log, its metrics."""

    def __init__(self, role: str, args: Sequence[str], result: Path) -> None:
        args = ("--metrics-port", "0", "--report-interval", "0.1s", *args)
        self.process = DaemonProcess(role, args, result)
        self.process.on_record = self._take
        self.role = role
        self.log: list[Record] = []
        self._more = asyncio.Event()
        self._started: Record = {}

    async def start(self) -> Self:
        self._started = await self.process.start()
        return self

    def address(self, key: str = "listen") -> tuple[str, int]:
        """An address of its `started` line."""
        return parse_host_port(self._started[key])

    @property
    def listen(self) -> str:
        """Where its socket is bound, as text."""
        return str(self._started["listen"])

    @property
    def started_at(self) -> float:
        return stamp(self._started)

    def mark(self) -> int:
        """The present end of the log, for `line`."""
        return len(self.log)

    def lines(self, event: str) -> list[Record]:
        """The lines of one event so far."""
        return [line for line in self.log if line["event"] == event]

    async def line(
        self, event: str, *, after: int = 0, where: Callable[[Record], bool] = lambda _: True
    ) -> Record:
        """The first such line from position `after` on; waits for it."""
        async with asyncio.timeout(PATIENCE):
            while True:
                for line in self.log[after:]:
                    if line["event"] == event and where(line):
                        return line
                after = len(self.log)
                await self._changed()

    async def metrics(self) -> Metrics:
        """One scrape: values by name with labels, as exposed."""
        body = await fetch(self.address("http"), "/metrics")
        rows = (line.rpartition(" ") for line in body.splitlines() if not line.startswith("#"))
        return {name: float(value) for name, _, value in rows}

    async def until(self, good: Callable[[Metrics], bool]) -> Metrics:
        """The first scrape that is good; looked at again after each log line."""
        async with asyncio.timeout(PATIENCE):
            while not good(metrics := await self.metrics()):
                await self._changed()
        return metrics

    async def until_decoded(self, more: int) -> Record:
        """The first report with this many frames decoded beyond those of the last one."""
        before = self.process.report.get("frames_decoded", 0)
        return await self.line(
            "report", after=self.mark(), where=lambda r: r["frames_decoded"] >= before + more
        )

    async def end(self) -> Record:
        """SIGTERM, exit code 0, and the summary it wrote."""
        assert await self.process.stop() == 0, self.log[-3:]
        return self.process.result()

    def _take(self, line: Record) -> None:
        self.log.append(line)
        self._more.set()

    async def _changed(self) -> None:
        self._more.clear()
        await self._more.wait()


async def get(address: tuple[str, int], path: str) -> str:
    """What a web server answers, head and body."""
    reader, writer = await asyncio.open_connection(*address)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    async with asyncio.timeout(PATIENCE):
        answer = await reader.read()
    writer.close()
    return answer.decode()


async def fetch(address: tuple[str, int], path: str) -> str:
    """The body of a page that answers 200."""
    head, _, body = (await get(address, path)).partition("\r\n\r\n")
    assert head.startswith("HTTP/1.1 200 "), head
    return body


class Plain:
    """A plain UDP socket that keeps what it gets and can be told what to do with it."""

    def __init__(self, host: str, port: int) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._sock = socket.socket(family, socket.SOCK_DGRAM)
        self._sock.setblocking(False)
        self._sock.bind((host, port))
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        self.address: tuple[str, int] = self._sock.getsockname()[:2]
        self.got: list[tuple[bytes, Address]] = []
        self.on_datagram: Callable[[bytes, Address], None] = lambda _data, _address: None
        self._more = asyncio.Event()
        asyncio.get_running_loop().add_reader(self._sock, self._readable)

    @property
    def at(self) -> str:
        """Its address as text."""
        return format_address(self.address)

    def mark(self, codepoint: int) -> None:
        """Send with this ECN codepoint from now on (IPv4)."""
        self._sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, codepoint)

    def send(self, data: bytes, address: Address) -> None:
        self._sock.sendto(data, address)

    async def until(self, good: Callable[[], bool]) -> None:
        """Wait until `good()`, looked at after every datagram."""
        async with asyncio.timeout(PATIENCE):
            while not good():
                self._more.clear()
                await self._more.wait()

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._sock)
        self._sock.close()

    def _readable(self) -> None:
        try:
            while True:
                data, address = self._sock.recvfrom(65535)
                self.got.append((data, address))
                self.on_datagram(data, address)
        except OSError:
            # Nothing left, or an ICMP error about a datagram sent before.
            self._more.set()


class Stage:
    """Starts daemons and sockets; the end of the `async with` ends them."""

    def __init__(self, folder: Path) -> None:
        """Summaries are written to `folder`, which is made."""
        folder.mkdir(exist_ok=True)
        self._folder = folder
        self._daemons: list[Daemon] = []
        self._sockets: list[Plain] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.gather(*(daemon.process.kill() for daemon in self._daemons))
        for sock in self._sockets:
            sock.close()

    async def daemon(self, role: str, *args: str) -> Daemon:
        """A started daemon; `args` as on the command line."""
        daemon = Daemon(role, args, self._folder / f"{len(self._daemons)}-{role}.json")
        self._daemons.append(daemon)
        return await daemon.start()

    async def receiver(self, *args: str, listen: str = f"{HOME}:0") -> Daemon:
        return await self.daemon("receiver", "--listen", listen, *args)

    async def sender(self, peer: str, *args: str, source: str = "synthetic") -> Daemon:
        return await self.daemon("sender", "--peer", peer, "--source", source, *args)

    async def bottleneck(self, peer: str, *args: str, listen: str = f"{HOME}:0") -> Daemon:
        return await self.daemon("bottleneck", "--listen", listen, "--peer", peer, *args)

    def plain(self, host: str = HOME, port: int = 0) -> Plain:
        """A bound plain socket."""
        sock = Plain(host, port)
        self._sockets.append(sock)
        return sock


class Meddler:
    """Stands between two peers, passes everything on, keeps it, and can add to it.

    To both of them it is the peer, so what it adds comes from the right source.
    """

    def __init__(self, stage: Stage, peer: Address) -> None:
        """`peer` is where the sender's packets go."""
        self.near, self.far, self.peer = stage.plain(), stage.plain(), peer
        self.sender: Address | None = None
        self.media: list[bytes] = []
        self.feedback: list[bytes] = []
        self.near.on_datagram = self._up
        self.far.on_datagram = self._down

    def to_sender(self, data: bytes) -> None:
        """Send as the receiver."""
        assert self.sender is not None
        self.near.send(data, self.sender)

    def to_receiver(self, data: bytes) -> None:
        """Send as the sender."""
        self.far.send(data, self.peer)

    def _up(self, data: bytes, address: Address) -> None:
        self.sender = address
        self.media.append(data)
        self.to_receiver(data)

    def _down(self, data: bytes, address: Address) -> None:
        self.feedback.append(data)
        if self.sender is not None:
            self.to_sender(data)


async def run_cli(
    *args: str, code: str | None = None, env: dict[str, str] | None = None
) -> tuple[int, str, str]:
    """`streamd ARGS` in a process of its own: exit code, stdout, stderr.

    `code` is Python to run first in that process, as a stand-in for a machine that lacks something.
    """
    start = f"{code or ''}\nimport sys\nfrom streamd.cli import main\nsys.exit(main())"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", start, *args),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=env,
    )
    try:
        out, err = await asyncio.wait_for(process.communicate(), PATIENCE)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


def read_json(path: Path) -> Record:
    loaded: Record = json.loads(path.read_text())
    return loaded
