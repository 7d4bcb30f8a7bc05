import statistics
import zlib
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import av
import av.filter
import pytest

from streamd.errors import ConfigError, MediaError, StartupError
from streamd.media import scenes
from streamd.media.clips import CLIPS, ClipSource
from streamd.media.libvpx import VpxEncoder
from streamd.media.pyav_codec import PyavDecoder


def read_all(name: str) -> list[Any]:
    source = ClipSource(name, loop=False)
    pictures = [source.read() for _ in range(300)]
    with pytest.raises(EOFError):
        source.read()
    source.close()
    return pictures


def temporal_information(pictures: list[Any], report: Path) -> list[float]:
    """TI of each picture but the first, by libavfilter's siti, which writes to `report`."""
    graph = av.filter.Graph()
    base = Fraction(1, 30)
    nodes = [
        graph.add_buffer(width=352, height=288, format=pictures[0].format, time_base=base),
        graph.add("siti"),
        graph.add("metadata", f"mode=print:file={report}"),
        graph.add("buffersink"),
    ]
    for earlier, later in pairwise(nodes):
        earlier.link_to(later)
    graph.configure()
    for number, picture in enumerate(pictures):
        picture.pts = number
        graph.vpush(picture)
        graph.vpull()
    graph.vpush(None)
    del graph, nodes  # closes the report
    lines = report.read_text().splitlines()
    return [float(line.split("=")[1]) for line in lines if "siti.ti" in line][1:]


@pytest.fixture(scope="module", params=CLIPS)
def clip(request: pytest.FixtureRequest) -> tuple[str, list[Any]]:
    return request.param, read_all(request.param)


PAPER = {"low": 2.99, "medium": 7.86, "high": 17.20}
"""Mean TI of akiyo, news and foreman in table 2 of the SCReAM video paper."""


def test_mean_temporal_information_is_the_paper_s(
    clip: tuple[str, list[Any]], tmp_path: Path
) -> None:
    name, pictures = clip
    values = temporal_information(pictures, tmp_path / "siti.txt")
    assert len(values) == 299
    assert scenes.TEMPORAL_INFORMATION[name] == PAPER[name]
    # The project allows 15 %; being tuned, the clips are nearer.
    assert statistics.fmean(values) == pytest.approx(PAPER[name], rel=0.05)
    # Motion comes and goes, it is no even flicker.
    assert min(values) < 0.5 * statistics.fmean(values)
    assert max(values) > 1.8 * statistics.fmean(values)


def test_ten_seconds_of_cif(clip: tuple[str, list[Any]]) -> None:
    _, pictures = clip
    assert len(pictures) == 300
    assert {(p.width, p.height, p.format.name) for p in pictures} == {(352, 288, "yuv420p")}


def test_pictures_survive_half_a_megabit(clip: tuple[str, list[Any]]) -> None:
    """Natural content compresses; noise would be destroyed at this rate."""
    name, pictures = clip
    encoder, decoder = VpxEncoder("vp9", 352, 288, 30.0, start_bps=500e3), PyavDecoder("vp9")
    errors = []
    for number, picture in enumerate(pictures[:90]):
        frame = encoder.encode(picture, target_bps=500e3, keyframe=False)
        if frame is None:
            continue
        (decoded,) = decoder.decode(frame[0])
        if number >= 30:
            errors.append(squared_error(decoded, picture))
    encoder.close()
    # 30 dB is a mean squared error of 65.
    assert statistics.fmean(errors) < {"low": 16.0, "medium": 40.0, "high": 65.0}[name]


def squared_error(one: av.VideoFrame, other: av.VideoFrame) -> float:
    """Mean over every 16th row of luma."""
    total = 0
    for row in range(8, 288, 16):
        a, b = (bytes(p.planes[0])[row * p.planes[0].line_size :][:352] for p in (one, other))
        total += sum((x - y) ** 2 for x, y in zip(a, b, strict=True))
    return total / (18 * 352)


def checksum(picture: Any) -> int:
    value = 0
    for plane in picture.planes:
        data = bytes(plane)
        for row in range(plane.height):
            value = zlib.crc32(data[row * plane.line_size :][: plane.width], value)
    return value


def test_the_same_pictures_every_time_and_every_loop() -> None:
    one, other = ClipSource("high"), ClipSource("high")
    first = [checksum(one.read()) for _ in range(300)]
    assert [checksum(other.read()) for _ in range(40)] == first[:40]
    assert [checksum(one.read()) for _ in range(40)] == first[:40]
    assert len(set(first)) == 300
    one.close()
    other.close()


def test_another_rate_and_size() -> None:
    source = ClipSource("low", fps=12.0, size=(640, 360))
    assert (source.fps, source.width, source.height) == (12.0, 640, 360)
    picture = source.read()
    assert (picture.width, picture.height) == (640, 360)
    source.close()


@pytest.mark.parametrize(
    ("fps", "expected"),
    [(60.0, [0, 0, 1, 1, 2, 2, 3]), (15.0, [0, 2, 4, 6, 8, 10, 12]), (29.97, list(range(7)))],
)
def test_rate_conversion_repeats_and_leaves_out(fps: float, expected: list[int]) -> None:
    plain, source = ClipSource("low"), ClipSource("low", fps=fps)
    order = [checksum(plain.read()) for _ in range(20)]
    assert [order.index(checksum(source.read())) for _ in range(7)] == expected
    plain.close()
    source.close()


def test_closed_means_ended() -> None:
    source = ClipSource("low")
    source.close()
    source.close()
    with pytest.raises(EOFError):
        source.read()


def test_senseless_requests() -> None:
    with pytest.raises(ConfigError, match="no clip 'lowest'; there are low, medium, high"):
        ClipSource("lowest")
    with pytest.raises(ConfigError, match="frame rate"):
        ClipSource("low", fps=0.0)
    with pytest.raises(ConfigError, match="353x288 must be positive and even"):
        ClipSource("low", size=(353, 288))


def test_an_ffmpeg_that_cannot_draw_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenes, "graph", lambda name: "nosuchfilter=1")
    with pytest.raises(StartupError, match=r"cannot draw the clip 'low': Invalid argument$"):
        ClipSource("low")


def test_a_clip_that_breaks_off_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenes, "graph", lambda name: "color=s=352x288:d=0.1:r=30")
    source = ClipSource("low")
    for _ in range(3):
        source.read()
    with pytest.raises(MediaError, match="ended after 3 of 300 pictures"):
        source.read()
