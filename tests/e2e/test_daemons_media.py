"""Codecs and sources that fail while the stream runs."""

import asyncio
from pathlib import Path

import av
import pytest
from e2e_stage import HOME, PATIENCE, Stage, read_json, run_cli

pytestmark = pytest.mark.asyncio

SENDER = ("sender", "--peer", f"{HOME}:9", "--metrics-port", "off", "--source", "low")

EVERY_THIRD_FAILS = """
import streamd.media.libvpx as vpx
from streamd.errors import MediaError
real, calls = vpx.VpxEncoder.encode, iter(range(1 << 30))
def encode(self, picture, **options):
    if next(calls) % 3 == 2:
        raise MediaError("the encoder stumbled")
    return real(self, picture, **options)
vpx.VpxEncoder.encode = encode
"""

SOURCE_BREAKS = """
import streamd.media.clips as clips
from streamd.errors import MediaError
real, calls = clips.ClipSource.read, iter(range(1 << 30))
def read(self):
    if next(calls) == 10:
        raise MediaError("the camera was pulled out")
    return real(self)
clips.ClipSource.read = read
"""


async def test_codec_and_source_that_fail(tmp_path: Path) -> None:
    """Pictures the encoder fails on are left out; a source that breaks ends the stream in order."""
    encoder, source = tmp_path / "encoder.json", tmp_path / "source.json"
    stumbling, broken = await asyncio.gather(
        run_cli(*SENDER, "--duration", "0.5s", "--json", str(encoder), code=EVERY_THIRD_FAILS),
        run_cli(*SENDER, "--json", str(source), code=SOURCE_BREAKS),
    )
    status, _, err = stumbling
    assert status == 0, err
    assert err.count("frame_not_encoded") == 1
    summary = read_json(encoder)
    assert summary["frames_encoded_count"] >= 4
    assert summary["frames_dropped_by_encoder_count"] >= 2

    status, _, err = broken
    assert status == 1
    assert err.splitlines()[-1] == "streamd sender: the camera was pulled out"
    summary = read_json(source)
    assert summary["frames_encoded_count"] >= 1
    assert summary["stop_reason"] == "media failed"


def write_film(file: Path, pictures: int) -> None:
    """A little film of a moving bar."""
    with av.open(str(file), "w") as container:
        stream = container.add_stream("mpeg4", rate=30)
        stream.width, stream.height, stream.pix_fmt = 128, 96, "yuv420p"
        for number in range(pictures):
            frame = av.VideoFrame(128, 96, "yuv420p")
            luma = bytearray(b"\x60" * 128 * 96)
            luma[number * 128 : (number + 8) * 128] = b"\xd0" * 1024
            frame.planes[0].update(bytes(luma))
            for plane in frame.planes[1:]:
                plane.update(b"\x80" * plane.buffer_size)
            frame.pts = number
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))


async def streamed_to_its_end(folder: Path, film: Path, codec: str) -> None:
    """Every frame of a file arrives and is decoded; then the sender ends, and says why."""
    async with Stage(folder) as stage:
        receiver = await stage.receiver()
        sender = await stage.sender(receiver.listen, "--codec", codec, source=str(film))
        assert await sender.process.wait(PATIENCE) == 0
        sent = sender.process.result()
        assert sent["stop_reason"] == "source ended"
        assert sent["frames_encoded_count"] + sent["frames_dropped_by_encoder_count"] == 25
        await receiver.line("peer_closed")
        got = await receiver.end()
        assert got["codec"] == codec
        assert got["frames_decoded_count"] == sent["frames_encoded_count"]
        assert got["frames_undecodable_count"] == 0


async def test_film_is_streamed_to_its_end_by_every_codec(tmp_path: Path) -> None:
    film = tmp_path / "film.mp4"
    write_film(film, 25)
    async with asyncio.TaskGroup() as group:
        for codec in ("vp9", "vp8", "h264"):
            group.create_task(streamed_to_its_end(tmp_path / codec, film, codec))


async def test_codec_changes_with_the_next_sender(tmp_path: Path) -> None:
    """A receiver follows from one codec to another, and to one it cannot decode and back."""
    async with Stage(tmp_path) as stage:
        receiver = await stage.receiver()
        codecs = []
        for codec, source in (("vp9", "low"), ("vp8", "low"), ("vp9", "synthetic")):
            mark = receiver.mark()
            sender = await stage.sender(receiver.listen, "--codec", codec, source=source)
            started = await receiver.line("stream_started", after=mark)
            codecs.append(started["codec"])
            await receiver.until_decoded(10)
            await sender.end()
        assert codecs == ["vp9", "vp8", "synthetic"]
        assert (await receiver.end())["frames_undecodable_count"] == 0
