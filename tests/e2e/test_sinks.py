"""Recordings of real daemons: what is in them, and that kill -9 leaves them playable."""

import asyncio
import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import av
import pytest

from streamd.stack.process import DaemonProcess, Record

ENOUGH = 60


async def record(folder: Path, name: str, codec: str, *, kill: bool) -> Record:
    """Record until `ENOUGH` frames were shown; the receiver's summary, or nothing if killed."""
    receiver = DaemonProcess(
        "receiver",
        (
            *("--listen", "127.0.0.1:0", "--metrics-port", "off", "--report-interval", "100ms"),
            *("--record", str(folder / name)),
        ),
        folder / "receiver.json",
    )
    enough = asyncio.Event()

    def look(entry: Record) -> None:
        if entry.get("event") == "report" and entry["frames_decoded"] >= ENOUGH:
            enough.set()

    receiver.on_record = look
    started = await receiver.start()
    sender = DaemonProcess(
        "sender",
        (
            *("--peer", started["listen"], "--metrics-port", "off", "--codec", codec),
            *("--max-rate", "1Mbps"),
        ),
        folder / "sender.json",
    )
    try:
        await sender.start()
        await asyncio.wait_for(enough.wait(), 40)
        if kill:
            receiver.signal(signal.SIGKILL)
            await receiver.wait(10)
            return {}
        await sender.stop()
        assert await receiver.stop() == 0
        return receiver.result()
    finally:
        await sender.kill()
        await receiver.kill()


def pictures(path: Path) -> list[Any]:
    with av.open(str(path)) as container:
        return list(container.decode(video=0))


@pytest.mark.parametrize(("name", "codec"), [("film.webm", "vp9"), ("film.mp4", "h264")])
def test_a_recording_survives_kill_9(name: str, codec: str, tmp_path: Path) -> None:
    asyncio.run(record(tmp_path, name, codec, kill=True))
    found = pictures(tmp_path / name)
    # a cluster of half a second may be missing
    assert len(found) >= ENOUGH - 20
    assert {(picture.width, picture.height) for picture in found} == {(352, 288)}
    times = [picture.time for picture in found]
    assert times == sorted(times)
    assert times[0] < 0.1


@pytest.mark.parametrize(
    ("name", "codec"),
    [("film.webm", "vp8"), ("film.mkv", "h264"), ("film.mp4", "vp9"), ("film.y4m", "vp9")],
)
def test_a_whole_recording_has_every_frame(name: str, codec: str, tmp_path: Path) -> None:
    summary = asyncio.run(record(tmp_path, name, codec, kill=False))
    assert summary["pictures_left_out_count"] == 0
    assert len(pictures(tmp_path / name)) == summary["frames_decoded_count"]


EXAMPLE = """\
import sys
from streamd.receive import receive

seen = []

def look(shown):
    seen.append((shown.frame_no, shown.picture.width, shown.picture.height))

code = receive(look, listen="127.0.0.1:0", duration="6s", metrics_port="off", log_format="json")
print(len(seen), seen[0][1:], [number for number, _, _ in seen] == list(range(len(seen))))
sys.exit(code)
"""


def test_the_callback_of_the_manual() -> None:
    program = subprocess.Popen(
        [sys.executable, "-u", "-c", EXAMPLE],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert program.stderr is not None
        line = next(line for line in program.stderr if '"started"' in line)
        address = json.loads(line)["listen"]
        command = [sys.executable, "-m", "streamd", "sender", "--peer", address]
        options = ["--duration", "2s", "--metrics-port", "off", "--log-level", "error"]
        subprocess.run([*command, *options], check=True, timeout=30)
        printed, _ = program.communicate(timeout=30)
    finally:
        program.kill()
        program.wait()
    assert program.returncode == 0
    found = re.fullmatch(r"(\d+) \(352, 288\) True", printed.strip())
    assert found is not None, printed
    assert int(found[1]) >= 55
