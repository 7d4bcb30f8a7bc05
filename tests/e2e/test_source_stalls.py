"""A source that stalls: the stream lives, and ends when it is told to."""

import asyncio
import os
from pathlib import Path

from streamd.media.clips import ClipSource
from streamd.stack.process import DaemonProcess, Record

PICTURES = 40


def film() -> bytes:
    """The beginning of a Y4M stream; its end never comes."""
    source = ClipSource("low")
    out = bytearray(b"YUV4MPEG2 W352 H288 F30:1 Ip A1:1 C420jpeg\n")
    for _ in range(PICTURES):
        out += b"FRAME\n"
        for plane in source.read().planes:
            data, line = bytes(plane), plane.line_size
            for row in range(plane.height):
                out += data[row * line : row * line + plane.width]
    return bytes(out)


async def stall(folder: Path) -> tuple[int, Record]:
    pipe = folder / "film.y4m"
    os.mkfifo(pipe)
    sender = DaemonProcess(
        "sender",
        (
            *("--peer", "127.0.0.1:9", "--source", str(pipe), "--rate", "500kbps"),
            *("--metrics-port", "off", "--shutdown-timeout", "3s"),
        ),
        folder / "sender.json",
    )
    stalled = asyncio.Event()

    def look(record: Record) -> None:
        if record.get("event") == "source_stalled":
            stalled.set()

    sender.on_record = look
    starting = asyncio.create_task(sender.start())
    # opening the pipe waits for the sender to open its end
    writer = await asyncio.to_thread(pipe.open, "wb", buffering=0)
    try:
        await asyncio.to_thread(writer.write, film())
        await starting
        await asyncio.wait_for(stalled.wait(), 30)
        code = await sender.stop()
        return code, sender.result()
    finally:
        writer.close()
        await sender.kill()


def test_a_stalled_source_does_not_hold_up_the_end(tmp_path: Path) -> None:
    code, summary = asyncio.run(stall(tmp_path))
    assert code == 0
    assert summary["source_stalls_count"] == 1
    assert 0 < summary["frames_encoded_count"] <= PICTURES
