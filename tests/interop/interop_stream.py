"""A stream of ours that others play: encoded once, sent again and again until they have enough."""

import hashlib
import shutil
import socket
import subprocess
import threading
from dataclasses import dataclass, field
from typing import Any

import pytest

from streamd.media.clips import ClipSource
from streamd.media.factory import open_decoder, open_encoder
from streamd.media.model import EncodedFrame
from streamd.session.packetize import PAYLOAD_TYPES, Packetizer, StreamIdentity

FRAMES = 30
FPS = 30


def digest(planes: bytes) -> str:
    return hashlib.md5(planes, usedforsecurity=False).hexdigest()


def i420(picture: Any) -> bytes:
    """A picture's planes without padding."""
    return bytes(picture.to_ndarray(format="yuv420p").tobytes())


@dataclass(slots=True)
class Film:
    """Frames as sent, and what a decoder shows of each."""

    codec: str
    frames: list[tuple[bytes, bool]] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)


def make_film(codec: str) -> Film:
    """`FRAMES` pictures that begin with a key frame, small enough for any socket buffer."""
    source = ClipSource("medium")
    encoder = open_encoder(codec, source, start_bps=600_000, max_bps=2_000_000, threads=1)
    decoder = open_decoder(codec)
    film = Film(codec)
    while len(film.frames) < FRAMES:
        out = encoder.encode(source.read(), target_bps=600_000, keyframe=False)
        if out is None:
            continue
        film.frames.append(out)
        (picture,) = decoder.decode(out[0])
        film.shown.append(digest(i420(picture)))
    encoder.close()
    decoder.close()
    return film


class Broadcast:
    """Sends a film at three times its frame rate, again and again, from a thread."""

    def __init__(self, film: Film, port: int) -> None:
        self._film = film
        self._address = ("127.0.0.1", port)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Broadcast":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        codec = self._film.codec
        packetizer = Packetizer(StreamIdentity(0x5EED, PAYLOAD_TYPES[codec], payload=codec))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            number = 0
            # the wait is the pace
            while not self._stop.wait(1 / (3 * FPS)):
                data, keyframe = self._film.frames[number % FRAMES]
                frame = EncodedFrame(data, keyframe, number / FPS)
                for packet in packetizer.packetize(frame, payload=1200, now=0.0):
                    try:
                        sender.sendto(packet.data, self._address)
                    except ConnectionRefusedError:
                        continue  # nobody listens yet
                number += 1


def need_gstreamer(pipeline: str) -> None:
    """Skip where GStreamer or an element of the pipeline is not installed."""
    for program in ("gst-launch-1.0", "gst-inspect-1.0"):
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed")
    for element in (part.split()[0] for part in pipeline.split("!")):
        if subprocess.run(["gst-inspect-1.0", "--exists", element], check=False).returncode:
            pytest.skip(f"GStreamer's {element} is not installed")


def free_port() -> int:
    """An even UDP port that is free, and so is the one above."""
    for _ in range(50):
        with (
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as first,
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as second,
        ):
            first.bind(("127.0.0.1", 0))
            port = int(first.getsockname()[1])
            if port % 2 or port > 65_000:
                continue
            try:
                second.bind(("127.0.0.1", port + 1))
            except OSError:
                continue
            return port
    raise RuntimeError("no free pair of ports")


def check_sequence(film: Film, seen: list[str], wanted: int) -> None:
    """Every picture is one of ours, and they follow each other as ours do."""
    assert len(seen) >= wanted
    places = {value: number for number, value in enumerate(film.shown)}
    assert len(places) == FRAMES
    unknown = [value for value in seen if value not in places]
    assert not unknown, f"{len(unknown)} of {len(seen)} pictures are none of ours"
    numbers = [places[value] for value in seen]
    assert numbers == [(numbers[0] + step) % FRAMES for step in range(len(numbers))]
