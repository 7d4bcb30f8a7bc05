"""Senders we did not write: our receiver takes their streams, shows and counts them."""

import asyncio
import shutil
from pathlib import Path

import pytest
from interop_stream import need_gstreamer

from streamd.stack.process import DaemonProcess, Record

PICTURES = 60
PATIENCE = 60.0
FFMPEG = {
    "vp9": ("-c:v", "libvpx-vp9", "-deadline", "realtime", "-cpu-used", "8", "-b:v", "600k"),
    "vp8": ("-c:v", "libvpx", "-deadline", "realtime", "-cpu-used", "8", "-b:v", "600k"),
    "h264": ("-c:v", "libx264", "-preset", "ultrafast", "-tune", "zerolatency", "-b:v", "600k"),
}
GSTREAMER = {
    "vp9": "vp9enc deadline=1 cpu-used=8 keyframe-max-dist=15 ! rtpvp9pay",
    "vp8": "vp8enc deadline=1 cpu-used=8 keyframe-max-dist=15 ! rtpvp8pay",
    "h264": "x264enc tune=zerolatency speed-preset=ultrafast key-int-max=15 ! rtph264pay",
}


async def received(codec: str, command: list[str], folder: Path) -> Record:
    """What a receiver says of the stream that `command` sends to PORT."""
    result = folder / "receiver.json"
    args = ("--listen", "127.0.0.1:0", "--codec", codec, "--metrics-port", "off")
    receiver = DaemonProcess("receiver", (*args, "--report-interval", "200ms"), result)
    enough = asyncio.Event()

    def look(record: Record) -> None:
        if record.get("event") == "report" and record["frames_decoded"] >= PICTURES:
            enough.set()

    receiver.on_record = look
    try:
        started = await receiver.start()
        port = started["listen"].rpartition(":")[2]
        words = [word.replace("PORT", port) for word in command]
        sender = await asyncio.create_subprocess_exec(
            *words, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL
        )
        try:
            await asyncio.wait_for(enough.wait(), PATIENCE)
        finally:
            if sender.returncode is None:
                sender.kill()
            await sender.wait()
        assert await receiver.stop() == 0
    finally:
        await receiver.kill()
    return receiver.result()


def check(summary: Record) -> None:
    assert summary["frames_decoded_count"] >= PICTURES
    assert summary["frames_undecodable_count"] == 0
    # what came before the first key frame, at most
    assert summary["frames_lost_count"] + summary["frames_skipped_count"] <= 20
    assert summary["packets_count"] > PICTURES
    assert summary["invalid_datagrams_count"].keys() <= {"stray_packet"}
    assert 0.02 < summary["inter_frame_p50_s"] < 0.06


@pytest.mark.skipif(not shutil.which("ffmpeg"), reason="ffmpeg is not installed")
@pytest.mark.parametrize("codec", FFMPEG)
def test_ffmpegs_stream_is_shown(codec: str, tmp_path: Path) -> None:
    command = [
        *("ffmpeg", "-hide_banner", "-loglevel", "error", "-re"),
        *("-f", "lavfi", "-i", "testsrc2=size=352x288:rate=30"),
        *FFMPEG[codec],
        *("-g", "15", "-pix_fmt", "yuv420p", "-threads", "1", "-strict", "experimental"),
        *("-f", "rtp", "rtp://127.0.0.1:PORT?pkt_size=1200"),
    ]
    check(asyncio.run(received(codec, command, tmp_path)))


@pytest.mark.parametrize("codec", GSTREAMER)
def test_gstreamers_stream_is_shown(codec: str, tmp_path: Path) -> None:
    need_gstreamer(GSTREAMER[codec])
    pipeline = (
        "videotestsrc is-live=true pattern=ball ! video/x-raw,width=352,height=288,framerate=30/1"
        f" ! {GSTREAMER[codec]} mtu=1200 ! udpsink host=127.0.0.1 port=PORT"
    )
    command = ["gst-launch-1.0", "-q", *pipeline.split()]
    check(asyncio.run(received(codec, command, tmp_path)))
