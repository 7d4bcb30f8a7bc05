from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import pytest

from streamd.bench.child import run_child
from streamd.errors import ConfigError, MediaError, StartupError
from streamd.media import pyav
from streamd.media.pyav import FileSource, PictureScaler

WIDTH, HEIGHT = 96, 64


def grey(level: int, width: int = WIDTH, height: int = HEIGHT) -> Any:
    """A flat picture whose level can be read back after lossy coding."""
    picture = av.VideoFrame(width, height, "yuv420p")
    for plane, value in zip(picture.planes, (level, 128, 128), strict=True):
        plane.update(bytes([value]) * plane.buffer_size)
    return picture


def write(path: Path, levels: list[int], *, codec: str = "mpeg4", **more: Any) -> Path:
    """A file with one flat picture per level."""
    width, height = more.get("size", (WIDTH, HEIGHT))
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream(codec, rate=more.get("fps", 25))
        stream.width, stream.height, stream.pix_fmt = width, height, more.get("pix_fmt", "yuv420p")
        stream.gop_size = more.get("gop", 5)
        for number, level in enumerate(levels):
            picture = grey(level, width, height)
            picture.pts = more.get("times", range(10**6))[number]
            picture.time_base = Fraction(1, more.get("fps", 25))
            container.mux(stream.encode(picture))
        container.mux(stream.encode(None))
    return path


def level_of(picture: av.VideoFrame) -> int:
    """Luma in the middle."""
    plane = picture.planes[0]
    pixels = bytes(plane)
    return pixels[plane.line_size * (picture.height // 2) + picture.width // 2]


def levels_of(source: FileSource, count: int) -> list[int]:
    """Levels of the next pictures, rounded to the steps of ten that `write` was given."""
    return [round(level_of(source.read()), -1) for _ in range(count)]


RAMP = list(range(30, 230, 10))


@pytest.mark.parametrize(
    ("name", "codec"),
    [
        ("a.mp4", "libx264"),
        ("a.mkv", "ffv1"),
        ("a.avi", "mpeg4"),
        ("a.ts", "mpeg2video"),
        ("a.y4m", "wrapped_avframe"),
    ],
)
def test_pictures_in_order_over_many_loops(name: str, codec: str, tmp_path: Path) -> None:
    path = write(tmp_path / name, RAMP, codec=codec)
    source = FileSource(str(path), loop=True)
    assert (source.fps, source.width, source.height) == (25.0, WIDTH, HEIGHT)
    assert levels_of(source, 100) == RAMP * 5
    assert source.corrupt_frames == 0
    source.close()


def test_the_end_is_an_eof_and_stays_one(tmp_path: Path) -> None:
    source = FileSource(str(write(tmp_path / "a.mkv", RAMP, codec="ffv1")))
    assert levels_of(source, 20) == RAMP
    for _ in range(2):
        with pytest.raises(EOFError):
            source.read()
    source.close()


def test_closed_means_ended(tmp_path: Path) -> None:
    source = FileSource(str(write(tmp_path / "a.mkv", RAMP, codec="ffv1")), loop=True)
    source.close()
    source.close()
    with pytest.raises(EOFError):
        source.read()


@pytest.mark.parametrize(
    ("fps", "expected"),
    [
        (50.0, [30, 30, 40, 40, 50, 50, 60, 60]),
        (12.5, [30, 40, 60, 80, 100, 120, 140, 160]),
        (25.0, RAMP[:8]),
    ],
)
def test_rate_conversion(fps: float, expected: list[int], tmp_path: Path) -> None:
    source = FileSource(str(write(tmp_path / "a.mkv", RAMP, codec="ffv1")), fps=fps)
    assert source.fps == fps
    assert levels_of(source, 8) == expected
    source.close()


def test_rate_conversion_goes_on_over_the_loop_point(tmp_path: Path) -> None:
    path = write(tmp_path / "a.mkv", [30, 40, 50], codec="ffv1")
    source = FileSource(str(path), fps=50.0, loop=True)
    assert levels_of(source, 12) == [30, 30, 40, 40, 50, 50] * 2
    source.close()


def test_a_still_stretch_is_filled_with_repeats(tmp_path: Path) -> None:
    """Variable frame rate: the third picture comes five frame times after the second."""
    path = write(tmp_path / "a.mkv", [30, 40, 50, 60], codec="ffv1", times=[0, 1, 6, 7])
    source = FileSource(str(path), fps=25.0)
    assert levels_of(source, 8) == [30, 40, 40, 40, 40, 40, 50, 60]
    source.close()


def test_a_wild_time_stamp_does_not_stop_the_picture(tmp_path: Path) -> None:
    path = write(tmp_path / "a.mkv", [30, 40, 50, 60], codec="ffv1", times=[0, 1, 900_000, 900_001])
    source = FileSource(str(path), fps=25.0)
    assert levels_of(source, 4) == [30, 40, 50, 60]
    source.close()


def test_scaling_keeps_the_shape_between_black_bars(tmp_path: Path) -> None:
    path = write(tmp_path / "a.mkv", [200], codec="ffv1")
    source = FileSource(str(path), size=(352, 288))
    picture = source.read()
    assert (picture.width, picture.height, picture.format.name) == (352, 288, "yuv420p")
    plane = picture.planes[0]
    column = bytes(plane)[176 :: plane.line_size][:288]
    # 96x64 fits as 352x234, which leaves 27 rows above and below.
    assert [column[row] for row in (0, 25, 29, 144, 258, 262, 287)] == [
        16,
        16,
        200,
        200,
        200,
        16,
        16,
    ]
    source.close()


def test_odd_sizes_become_even(tmp_path: Path) -> None:
    path = write(tmp_path / "a.mkv", [100, 110], codec="ffv1", size=(95, 63))
    source = FileSource(str(path))
    assert (source.width, source.height) == (96, 64)
    picture = source.read()
    assert (picture.width, picture.height) == (96, 64)
    source.close()


def test_other_pixel_formats_are_converted() -> None:
    source = FileSource("lavfi:testsrc=s=64x48:r=10")
    assert (source.fps, source.width, source.height) == (10.0, 64, 48)
    assert [source.read().format.name for _ in range(3)] == ["yuv420p"] * 3
    source.close()


def test_a_size_that_changes_on_the_way_is_scaled_to_the_first() -> None:
    scaler = PictureScaler(96, 64)
    for size in ((96, 64), (48, 32), (200, 100), (48, 32)):
        fitted = scaler.fit(grey(120, *size))
        assert (fitted.width, fitted.height) == (96, 64)
        assert level_of(fitted) == 120


def damage(path: Path, numbers: range) -> Path:
    """Zero the PNG pictures with these numbers; the container around them stays whole."""
    data = bytearray(path.read_bytes())
    end = 0
    for number in range(numbers.stop):
        begin = data.index(b"\x89PNG", end)
        end = data.index(b"IEND", begin)
        if number in numbers:
            data[begin:end] = bytes(end - begin)
    path.write_bytes(data)
    return path


def test_damaged_pictures_are_left_out_and_counted(tmp_path: Path) -> None:
    path = write(tmp_path / "a.mov", RAMP, codec="png", pix_fmt="rgb24")
    source = FileSource(str(damage(path, range(5, 8))))
    assert levels_of(source, 17) == RAMP[:5] + RAMP[8:]
    assert source.corrupt_frames == 3
    with pytest.raises(EOFError):
        source.read()
    source.close()


def test_a_damaged_start_is_skipped_in_every_loop(tmp_path: Path) -> None:
    path = write(tmp_path / "a.mov", RAMP, codec="png", pix_fmt="rgb24")
    source = FileSource(str(damage(path, range(0, 2))), loop=True)
    assert levels_of(source, 54) == RAMP[2:] * 3
    assert source.corrupt_frames == 6
    source.close()


def test_a_file_cut_short_plays_to_the_cut(tmp_path: Path) -> None:
    path = write(tmp_path / "a.mkv", RAMP, codec="ffv1")
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])
    source = FileSource(str(path))
    assert 5 <= drain(source) < 20
    source.close()


def drain(source: FileSource) -> int:
    """Read to the end; how many pictures came."""
    for count in range(10_000):
        try:
            source.read()
        except EOFError:
            return count
    raise AssertionError("no end")


@pytest.mark.parametrize("loop", [False, True])
@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("absent.mp4", None, "No such file or directory"),
        ("text.mp4", b"this is no video\n" * 100, "Invalid data"),
        ("empty.mkv", b"", "Invalid data|End of file"),
        ("noise.y4m", bytes(range(256)) * 64, "Invalid argument"),
    ],
)
def test_unreadable_files_give_one_clear_line(
    name: str, content: bytes | None, reason: str, loop: bool, tmp_path: Path
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(StartupError, match=reason) as caught:
        FileSource(str(path), loop=loop)
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    assert caught.value.exit_code == 3


@pytest.mark.parametrize("loop", [False, True])
def test_a_file_whose_pictures_are_all_damaged(loop: bool, tmp_path: Path) -> None:
    path = damage(write(tmp_path / "a.mov", RAMP, codec="png", pix_fmt="rgb24"), range(20))
    with pytest.raises(StartupError, match=r"cannot read video from .*a\.mov"):
        FileSource(str(path), loop=loop)


def test_sound_alone_is_no_video(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    path.write_bytes(
        b"RIFF\x28\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00"
        b"\x40\x1f\x00\x00\x80\x3e\x00\x00\x02\x00\x10\x00data\x04\x00\x00\x00\x00\x00\x00\x00"
    )
    with pytest.raises(StartupError, match="it has no video stream"):
        FileSource(str(path))


def test_a_file_that_vanishes_while_looped_is_a_media_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "a.y4m", RAMP[:3], codec="wrapped_avframe")
    source = FileSource(str(path), loop=True)
    levels_of(source, 3)

    class Unseekable:
        """The open container without a way back."""

        def __init__(self, container: Any) -> None:
            self._container = container

        def seek(self, *_: Any, **__: Any) -> None:
            raise av.error.PermissionError(1, "Operation not permitted")

        def close(self) -> None:
            self._container.close()

    monkeypatch.setattr(source._reader, "_container", Unseekable(source._reader._container))
    path.unlink()
    with pytest.raises(MediaError, match="No such file"):
        source.read()
    write(path, RAMP[:3], codec="wrapped_avframe")
    monkeypatch.undo()
    source.close()


def test_a_source_that_cannot_seek_is_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "a.mkv", RAMP, codec="ffv1")
    opened: list[str] = []
    original = pyav._open_container

    def counted(name: str) -> Any:
        opened.append(name)
        return original(name)

    monkeypatch.setattr(pyav, "_open_container", counted)
    source = FileSource(str(path), loop=True)
    monkeypatch.setattr(source._reader, "_first_pts", -12345)
    assert levels_of(source, 60) == RAMP * 3
    assert len(opened) == 3
    source.close()


def test_senseless_requests(tmp_path: Path) -> None:
    path = str(write(tmp_path / "a.mkv", RAMP[:2], codec="ffv1"))
    for fps in (0.0, -1.0, 1e9, float("nan")):
        with pytest.raises(ConfigError, match="frame rate"):
            FileSource(path, fps=fps)
    for size in ((0, 0), (-2, 4), (351, 288)):
        with pytest.raises(ConfigError, match="must be positive and even"):
            FileSource(path, size=size)


def test_a_file_named_like_a_device_is_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "a.mkv", RAMP[:2], codec="ffv1").rename(tmp_path / "lavfi:x")
    assert pyav._split_name("lavfi:x") == (None, "lavfi:x")
    assert pyav._split_name("lavfi:testsrc") == ("lavfi", "testsrc")
    assert pyav._split_name("udp://host:1") == (None, "udp://host:1")
    assert pyav._split_name("plain.mp4") == (None, "plain.mp4")


def test_looping_does_not_grow(tmp_path: Path) -> None:
    path = write(tmp_path / "a.mp4", RAMP, codec="libx264")
    counts = run_child("streamd.bench.codec_child", "loop", str(path), "8000")
    assert counts["frames_count"] == 8000
    assert counts["loop_growth_bytes"] <= 2_000_000
