"""The demo as a user runs it: two chains of real processes, a table, a file of results."""

import asyncio
import os
import signal
import struct
import sys
import termios
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from fcntl import ioctl
from pathlib import Path

import pytest
from e2e_stage import PATIENCE, needs_linux, read_json

from streamd.errors import StartupError, StreamdError
from streamd.stack.chain import Chain, ChainPlan
from streamd.stack.demo import DemoOptions, demo
from streamd.stack.process import Record

pytestmark = pytest.mark.asyncio

KEYS = (
    *("tx_bps", "rx_bps", "queue_delay_p50_s", "queue_delay_p95_s", "rtt_p95_s", "loss_ratio"),
    *("ce_ratio", "frames_encoded_count", "frames_decoded_count", "inter_frame_p50_s"),
    *("freeze_count", "freeze_s", "frame_latency_p50_s", "frame_latency_p95_s"),
    *("keyframes_count", "sender_loss_ratio", "queue_delay_est_p95_s"),
)
CHAINS = {"classic", "l4s"}


def check(results: Record) -> None:
    """What must hold in every demo, whatever the link did."""
    assert results.keys() == CHAINS
    for row in results.values():
        assert {key for key in KEYS if not isinstance(row[key], int | float)} == set()
        assert row["frames_encoded_count"] == row["frames_decoded_count"] + row["frames_lost_count"]
        assert row["frames_decoded_count"] > 10
        assert row["rx_bps"] > 0
        assert 0 <= row["queue_delay_p50_s"] <= row["queue_delay_p95_s"]
        assert 0 < row["frame_latency_p50_s"] <= row["frame_latency_p95_s"]
        assert row["rtt_p95_s"] >= 0.02
        assert row["exit_codes"] == dict.fromkeys(("sender", "bottleneck", "receiver"), 0)
    assert results["classic"]["ce_ratio"] == 0
    assert 0 <= results["l4s"]["ce_ratio"] <= 1


def descendants(mark: Path) -> list[str]:
    """Command lines of the processes that name a folder of this test."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                words = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if bytes(mark) in words:
                found.append(words.replace(b"\0", b" ").decode())
    return found


def make_folders(parent: Path, *new: str) -> list[Path]:
    folders = [parent / name for name in new]
    for folder in folders:
        folder.mkdir()
    return folders


def names(folder: Path) -> list[str]:
    """What is in a folder."""
    return sorted(entry.name for entry in folder.iterdir())


async def outcome(process: asyncio.subprocess.Process) -> tuple[str, str]:
    """stdout and stderr of a process that ends."""
    out, err = await asyncio.wait_for(process.communicate(), PATIENCE)
    return (out or b"").decode(), err.decode()


@asynccontextmanager
async def running(
    folder: Path, *args: str, stdout: int
) -> AsyncIterator[asyncio.subprocess.Process]:
    """`streamd demo` with its temporary files in `folder`; ended, with its daemons, at the end."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "streamd", "demo", *args),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=stdout,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(folder), "TERM": "xterm", "COLUMNS": "100"},
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
            await process.communicate()


@needs_linux
async def test_demo_without_a_terminal(tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    args = ("--seconds", "6", "--json", str(file))
    async with running(tmp_path, *args, stdout=asyncio.subprocess.PIPE) as process:
        out, err = await outcome(process)
    assert (process.returncode, err) == (0, "")
    results = read_json(file)
    check(results)
    assert results["l4s"]["ce_ratio"] > 0
    assert "What the viewer got" in out
    assert "\x1b[" not in out
    assert out.lstrip().startswith("5 s  classic: ")
    assert descendants(tmp_path) == []
    assert names(tmp_path) == ["result.json"]


class Screen:
    """A pseudo-terminal and what was drawn on it."""

    def __init__(self) -> None:
        self._master, self.slave = os.openpty()
        ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        self.text = ""
        self._more = asyncio.Event()
        asyncio.get_running_loop().add_reader(self._master, self._readable)

    async def shows(self, text: str) -> None:
        async with asyncio.timeout(PATIENCE):
            while text not in self.text:
                self._more.clear()
                await self._more.wait()

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._master)
        os.close(self._master)
        os.close(self.slave)

    def _readable(self) -> None:
        self.text += os.read(self._master, 65536).decode("utf-8", "replace")
        self._more.set()


async def ended_by(folder: Path, number: signal.Signals) -> int | None:
    """Ends a demo on a terminal in the middle; its exit code. Nothing of it must be left."""
    screen = Screen()
    try:
        async with running(folder, "--seconds", "60", stdout=screen.slave) as process:
            await screen.shows("streamd demo, 1 of 60 s")
            await screen.shows("Classic (not-ECT)")
            # Figures are there as soon as a daemon has reported.
            await screen.shows(" Mbps")
            started = descendants(folder)
            process.send_signal(number)
            _, err = await outcome(process)
        assert err == ""
        # The cursor is visible again.
        await screen.shows("\x1b[?25h")
    finally:
        screen.close()
    assert len(started) == 6
    assert descendants(folder) == []
    assert names(folder) == []
    return process.returncode


@needs_linux
async def test_demo_on_a_terminal_ends_with_all_it_started(tmp_path: Path) -> None:
    folders = make_folders(tmp_path, "interrupted", "terminated")
    codes = await asyncio.gather(
        ended_by(folders[0], signal.SIGINT), ended_by(folders[1], signal.SIGTERM)
    )
    assert list(codes) == [130, -signal.SIGTERM]


@needs_linux
async def test_chain_names_the_daemon_that_was_killed(tmp_path: Path) -> None:
    """The others still end cleanly; what they measured is no result."""
    source = ("--source", "synthetic")
    chain = Chain(ChainPlan("broken", sender=source), tmp_path)
    try:
        await chain.start()
        chain.processes["sender"].signal(signal.SIGKILL)
        assert await chain.processes["sender"].wait(PATIENCE) == -signal.SIGKILL
        with pytest.raises(StreamdError, match="streamd sender wrote no summary"):
            await chain.finish()
        assert names(tmp_path) == ["broken-bottleneck.json", "broken-receiver.json"]
    finally:
        await chain.kill()
    assert descendants(tmp_path) == []


@needs_linux
async def test_chain_that_fails_half_way_leaves_nothing_running(tmp_path: Path) -> None:
    plan = ChainPlan("half", sender=("--source", str(tmp_path / "film.mp4")))
    chain = Chain(plan, tmp_path)
    with pytest.raises(StartupError, match=r"streamd sender: cannot open .*film\.mp4"):
        await chain.start()
    assert len(descendants(tmp_path)) == 2
    await chain.kill()
    assert descendants(tmp_path) == []


def write_trace(file: Path) -> None:
    """12 Mbps with half a second of nothing in each two."""
    opportunities = [str(ms) for ms in range(2000) if ms % 2000 < 1500]
    file.write_text("\n".join([*opportunities, "2000"]) + "\n")


def write_film(file: Path) -> None:
    """A second of raw video: stripes that move."""
    line = bytes(range(0, 256, 2)) * 2
    frames = (
        b"".join(line[n + row % 64 : n + row % 64 + 128] for row in range(96)) for n in range(30)
    )
    chroma = b"\x80" * (128 * 96 // 2)
    body = b"".join(b"FRAME\n" + luma + chroma for luma in frames)
    file.write_bytes(b"YUV4MPEG2 W128 H96 F30:1 Ip C420jpeg\n" + body)


@pytest.mark.parametrize(
    "pair",
    [
        (("synthetic", "vp9", "trace"), ("low", "vp8", "6Mbps")),
        (("high", "vp9", "lte"), ("film", "h264", "3Mbps")),
    ],
    ids=lambda pair: "-".join(words[0] for words in pair),
)
async def test_demo_of_every_source(tmp_path: Path, pair: tuple[tuple[str, str, str], ...]) -> None:
    write_trace(tmp_path / "trace")
    write_film(tmp_path / "film")
    files = {name: str(tmp_path / name) for name in ("trace", "film")}
    results = await asyncio.gather(
        *(
            demo(
                DemoOptions(
                    seconds=2.0,
                    source=files.get(source, source),
                    codec=codec,
                    trace=files.get(trace, trace),
                )
            )
            for source, codec, trace in pair
        )
    )
    for result in results:
        check(result)
