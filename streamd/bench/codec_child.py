"""What has to be measured in a process of its own: memory, and decoders fed with damage.

    python -m streamd.bench.codec_child memory CODEC [FRAMES]
    python -m streamd.bench.codec_child damage CODEC [FRAMES]
    python -m streamd.bench.codec_child loop FILE [FRAMES]

Each prints one line of JSON.
"""

import json
import os
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from streamd.bench.codec_inputs import CIF, built_in
from streamd.bench.codec_steps import FPS
from streamd.errors import MediaError
from streamd.media.libvpx import VpxEncoder
from streamd.media.pyav import FileSource
from streamd.media.pyav_codec import PyavDecoder

SMALL = (96, 80)
WARM_UP_FRAMES = 1000
CYCLES = 250
WARM_UP_CYCLES = 50


def resident_bytes() -> int:
    """Memory of this process that is in RAM now (Linux)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def memory(codec: str, frames: int) -> dict[str, int]:
    """Growth while one encoder gets a new rate for every frame, and over encoders made anew."""
    rng = random.Random(7)
    pictures = built_in("medium", SMALL, count=30)
    encoder = VpxEncoder(codec, *SMALL, FPS, start_bps=500_000.0)
    keyframes, before = 0, 0
    for number in range(frames):
        if number == WARM_UP_FRAMES:
            before = resident_bytes()
        frame = encoder.encode(
            pictures[number % 30], target_bps=rng.uniform(150e3, 2e6), keyframe=False
        )
        keyframes += bool(frame and frame[1])
    stream = resident_bytes() - before
    encoder.close()
    return {
        "frames_count": frames,
        "keyframes_count": keyframes,
        "stream_growth_bytes": stream,
        "cycle_growth_bytes": _cycle_growth(codec, pictures[0]),
    }


def _cycle_growth(codec: str, picture: Any) -> int:
    before = 0
    for cycle in range(CYCLES):
        if cycle == WARM_UP_CYCLES:
            before = resident_bytes()
        encoder = VpxEncoder(codec, *SMALL, FPS, start_bps=500_000.0)
        encoder.encode(picture, target_bps=500_000.0, keyframe=False)
        encoder.close()
    return resident_bytes() - before


def loop(path: str, frames: int) -> dict[str, int]:
    """Growth while a file is shown in a loop, after a quarter of the pictures."""
    source = FileSource(path, size=SMALL, fps=FPS, loop=True)
    before = 0
    for number in range(frames):
        if number == frames // 4:
            before = resident_bytes()
        source.read()
    growth = resident_bytes() - before
    source.close()
    return {"frames_count": frames, "loop_growth_bytes": growth}


def damage(codec: str, frames: int) -> dict[str, int]:
    """Decode a stream in which most frames are damaged; counts what came of it."""
    rng = random.Random(11)
    sound = encoded_frames(codec, 60)
    decoder = PyavDecoder(codec, max_size=CIF)
    counts = {"frames_count": frames, "pictures_count": 0, "refused_count": 0}
    for number in range(frames):
        data = sound[number % len(sound)]
        if number % len(sound) or rng.random() < 0.5:
            data = rng.choice(MUTATIONS)(data, rng)
        try:
            counts["pictures_count"] += len(decoder.decode(data))
        except MediaError:
            counts["refused_count"] += 1
    counts["rebuilds_count"] = decoder.rebuilds
    decoder.close()
    return counts


def encoded_frames(codec: str, count: int) -> list[bytes]:
    """A short stream of the built-in clip "medium", VP9 or VP8, without dropped frames."""
    pictures = built_in("medium", count=count)
    encoder = VpxEncoder(codec, *CIF, FPS, start_bps=1e6)
    frames = [encoder.encode(p, target_bps=1e6, keyframe=False) for p in pictures]
    encoder.close()
    return [frame[0] for frame in frames if frame is not None]


def _flip_bits(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.randint(1, 8)):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _flip_header(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    changed[rng.randrange(min(12, len(changed)))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _overwrite(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + rng.randbytes(8) + data[at + 8 :]


def _truncate(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data))]


def _zero_tail(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + bytes(len(data) - at)


def _append(data: bytes, rng: random.Random) -> bytes:
    return data + rng.randbytes(rng.randint(1, 64))


def _garbage(data: bytes, rng: random.Random) -> bytes:
    return rng.randbytes(len(data))


def _hole(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + data[at + rng.randint(1, 1200) :]


MUTATIONS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    _flip_bits,
    _flip_header,
    _overwrite,
    _truncate,
    _zero_tail,
    _append,
    _garbage,
    _hole,
)


def main(arguments: list[str]) -> None:
    """Runs one of the three and prints its counts."""
    mode, subject = arguments[0], arguments[1]
    run = {"memory": memory, "damage": damage, "loop": loop}[mode]
    default = {"memory": 10_000, "damage": 2_000, "loop": 10_000}[mode]
    print(json.dumps(run(subject, int(arguments[2]) if len(arguments) > 2 else default)))


if __name__ == "__main__":
    main(sys.argv[1:])
