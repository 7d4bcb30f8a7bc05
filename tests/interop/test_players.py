"""Players we did not write open our streams and decode them frame for frame."""

import shutil
import subprocess
from pathlib import Path

import av
import pytest
from interop_stream import (
    Broadcast,
    Film,
    check_sequence,
    digest,
    free_port,
    i420,
    make_film,
    need_gstreamer,
)

from streamd.session.packetize import PAYLOAD_TYPES
from streamd.session.sdp import description

CODECS = ("vp9", "vp8", "h264")
WANTED = 45
"""Pictures: more than one round of the film."""
SIZE = 352 * 288 * 3 // 2
PATIENCE = 60
DEPAY = {
    "vp9": "rtpvp9depay ! vp9dec",
    "vp8": "rtpvp8depay ! vp8dec",
    "h264": "rtph264depay ! h264parse ! avdec_h264",
}


@pytest.fixture(scope="module", params=CODECS)
def film(request: pytest.FixtureRequest) -> Film:
    return make_film(request.param)


def session_file(film: Film, port: int, folder: Path) -> Path:
    path = folder / "stream.sdp"
    path.write_text(description(film.codec, ("127.0.0.1", port), fps=30, muxed=False))
    return path


def from_the_first_good(film: Film, seen: list[str]) -> list[str]:
    """A player that joins in the middle may show rubbish until the first key frame."""
    start = next((n for n, value in enumerate(seen) if value == film.shown[0]), len(seen))
    return seen[start:]


def test_pyav_opens_the_description(film: Film, tmp_path: Path) -> None:
    port = free_port()
    path = session_file(film, port, tmp_path)
    seen: list[str] = []
    with (
        Broadcast(film, port),
        av.open(
            str(path),
            format="sdp",
            options={"protocol_whitelist": "file,udp,rtp"},
            timeout=PATIENCE,
        ) as stream,
    ):
        stream.streams.video[0].codec_context.thread_count = 1
        packets = stream.demux(video=0)
        while len(from_the_first_good(film, seen)) < WANTED:
            try:
                pictures = next(packets).decode()
            except av.error.InvalidDataError:
                continue
            seen += [digest(i420(picture)) for picture in pictures]
    check_sequence(film, from_the_first_good(film, seen), WANTED)


@pytest.mark.skipif(not shutil.which("ffmpeg"), reason="ffmpeg is not installed")
def test_ffmpeg_decodes_it_frame_for_frame(film: Film, tmp_path: Path) -> None:
    port = free_port()
    path = session_file(film, port, tmp_path)
    out = tmp_path / "out.txt"
    command = [
        *("ffmpeg", "-hide_banner", "-loglevel", "error", "-threads", "1"),
        *("-protocol_whitelist", "file,udp,rtp", "-i", str(path)),
        *("-frames:v", str(WANTED + 31), "-vsync", "passthrough"),
        *("-pix_fmt", "yuv420p", "-f", "framemd5", str(out)),
    ]
    with Broadcast(film, port):
        subprocess.run(command, check=True, timeout=PATIENCE, stdin=subprocess.DEVNULL)
    rows = [line for line in out.read_text().splitlines() if not line.startswith("#")]
    seen = [row.rpartition(",")[2].strip() for row in rows]
    check_sequence(film, from_the_first_good(film, seen), WANTED)


def test_gstreamer_decodes_it_frame_for_frame(film: Film, tmp_path: Path) -> None:
    need_gstreamer(DEPAY[film.codec])
    port = free_port()
    out = tmp_path / "out.yuv"
    kind = PAYLOAD_TYPES[film.codec]
    caps = (
        f"application/x-rtp,media=video,clock-rate=90000,payload={kind},"
        f"encoding-name={film.codec.upper()}"
    )
    pipeline = (
        f'udpsrc port={port} address=127.0.0.1 caps="{caps}" ! {DEPAY[film.codec]} ! '
        f"videoconvert ! video/x-raw,format=I420 ! identity eos-after={WANTED + 31} ! "
        f"filesink location={out}"
    )
    with Broadcast(film, port):
        subprocess.run(
            ["sh", "-c", f"exec gst-launch-1.0 -q {pipeline}"],
            check=True,
            timeout=PATIENCE,
            stdin=subprocess.DEVNULL,
        )
    data = out.read_bytes()
    seen = [digest(data[at : at + SIZE]) for at in range(0, len(data) - SIZE + 1, SIZE)]
    check_sequence(film, from_the_first_good(film, seen), WANTED)
