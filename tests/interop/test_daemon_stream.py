"""A player opens the description `streamd sender --sdp` wrote, late, and has a picture soon."""

import asyncio
from pathlib import Path
from typing import NamedTuple

import av
import pytest
from interop_stream import FPS, free_port

from streamd.stack.process import DaemonProcess, Record

WANTED = 60
PATIENCE = 60
LATE_PICTURE = 2.5
"""A player that joins in the middle has a picture within this (s of the stream)."""


class Played(NamedTuple):
    """What a player saw."""

    before: int
    """Packets (frames) before the first picture."""
    pictures: int
    refused: int
    """Frames the decoder refused after the first picture."""
    sizes: set[tuple[int, int]]


def play(path: Path) -> Played:
    before, pictures, refused = 0, 0, 0
    sizes: set[tuple[int, int]] = set()
    with av.open(
        str(path),
        format="sdp",
        options={"protocol_whitelist": "file,udp,rtp"},
        timeout=PATIENCE,
    ) as stream:
        stream.streams.video[0].codec_context.thread_count = 1
        packets = stream.demux(video=0)
        while pictures < WANTED:
            try:
                shown = next(packets).decode()
            except av.error.InvalidDataError:
                shown = []
                refused += pictures > 0
            pictures += len(shown)
            sizes |= {(picture.width, picture.height) for picture in shown}
            before += pictures == 0
    return Played(before, pictures, refused, sizes)


async def _late_player(codec: str, folder: Path) -> tuple[Played, Record]:
    path = folder / "stream.sdp"
    words = f"--peer 127.0.0.1:{free_port()} --rate 500kbps --codec {codec} --metrics-port off"
    sender = DaemonProcess(
        "sender", (*words.split(), "--sdp", str(path), "--report-interval", "1s"), folder / "s.json"
    )
    running = asyncio.Event()

    def look(record: Record) -> None:
        if record.get("event") == "report":
            running.set()

    sender.on_record = look
    try:
        await sender.start()
        # a whole second has gone by: the first key frame is long gone
        await asyncio.wait_for(running.wait(), PATIENCE)
        played = await asyncio.wait_for(asyncio.to_thread(play, path), PATIENCE)
        assert await sender.stop() == 0
    finally:
        await sender.kill()
    return played, sender.result()


@pytest.mark.parametrize("codec", ["vp9", "vp8", "h264"])
def test_a_late_player_has_a_picture_soon_and_all_that_follow(codec: str, tmp_path: Path) -> None:
    played, summary = asyncio.run(_late_player(codec, tmp_path))
    # of VP8 the player shows nothing at all before a key frame, not even as a packet
    assert played.before <= LATE_PICTURE * FPS
    assert codec == "vp8" or played.before > 0
    assert played.pictures >= WANTED
    assert played.refused == 0
    assert played.sizes == {(352, 288)}
    # nobody answered in a way that would move or slow the stream
    assert summary["target_bps"] == 500_000
    assert summary["keyframe_requests_count"]["unacked"] == 0
    assert summary["keyframe_requests_count"]["periodic"] >= 1
