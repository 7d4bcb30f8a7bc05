"""Pictures for the codec benchmark and the codec tests, held in memory.

The built-in clips are always there. Recorded clips are used where a folder has
them: `STREAMD_CLIPS`, by default `../shared/clips` beside the repository.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from streamd.media.clips import ClipSource
from streamd.media.pyav import FileSource
from streamd.media.scenes import FRAMES

CIF = (352, 288)
BIKES_WITHOUT_CUTS = slice(77, 136)
"""The longest stretch of bikes.mp4 without a scene cut."""


def recorded_folder() -> Path:
    """Where recorded clips are looked for; it may not exist."""
    beside = Path(__file__).resolve().parents[2].parent / "shared" / "clips"
    return Path(os.environ.get("STREAMD_CLIPS", beside))


def built_in(
    name: str, size: tuple[int, int] = CIF, start: int = 0, count: int = FRAMES
) -> list[Any]:
    """The first `count` pictures of a built-in clip, beginning with picture `start` of them."""
    source = ClipSource(name, size=size)
    try:
        return rotate([source.read() for _ in range(count)], start)
    finally:
        source.close()


def recorded(folder: Path, size: tuple[int, int] = CIF, start: int = 0) -> dict[str, list[Any]]:
    """The recorded clips, stretched to `size`; empty where a file is missing.

    The two without scene cuts run back and forth, so that their loop has no cut either.
    """
    carphone, bikes = folder / "carphone_pristine.mp4", folder / "bikes.mp4"
    if not (carphone.exists() and bikes.exists()):
        return {}
    pictures = _read(bikes, size)
    clips = {
        "carphone": back_and_forth(_read(carphone, size)),
        "bikes, no cuts": back_and_forth(pictures[BIKES_WITHOUT_CUTS]),
        "bikes": pictures,
    }
    return {name: rotate(clip, start) for name, clip in clips.items()}


def back_and_forth(pictures: Sequence[Any]) -> list[Any]:
    """The pictures and, without repeating either end, the way back."""
    return [*pictures, *pictures[-2:0:-1]]


def rotate(pictures: Sequence[Any], start: int) -> list[Any]:
    """The same loop from another picture on."""
    return [*pictures[start:], *pictures[:start]]


def _read(path: Path, size: tuple[int, int]) -> list[Any]:
    source = FileSource(str(path))
    pictures: list[Any] = []
    try:
        while True:
            pictures.append(source.read().reformat(*size, format="yuv420p"))
    except EOFError:
        return pictures
    finally:
        source.close()
