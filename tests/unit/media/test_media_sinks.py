"""Recordings: what they hold, what they refuse, and that a failing one ends alone."""

import threading
from pathlib import Path
from typing import Any

import av
import pytest

from streamd.daemon.viewing import MAX_WAITING, Viewers
from streamd.errors import ConfigError, MediaError
from streamd.media.clips import ClipSource
from streamd.media.factory import open_decoder, open_encoder
from streamd.media.sinks import Callback, RawRecording, Shown, Sink, open_recording
from streamd.session.events import FrameReady


def film(codec: str, count: int = 20) -> list[Shown]:
    source = ClipSource("low")
    encoder = open_encoder(codec, source, start_bps=400_000, max_bps=1e6, threads=1)
    decoder = open_decoder(codec)
    frames: list[Shown] = []
    while len(frames) < count:
        out = encoder.encode(source.read(), target_bps=400_000, keyframe=False)
        if out is not None:
            number = len(frames)
            time = (0xFFFFFFF0 + 3000 * number) & 0xFFFFFFFF
            frames.append(Shown(number, time, out[0], out[1], decoder.decode(out[0])[-1]))
    encoder.close()
    decoder.close()
    return frames


def times(path: Path) -> list[float]:
    with av.open(str(path)) as container:
        return [round(float(picture.time or 0), 3) for picture in container.decode(video=0)]


@pytest.mark.parametrize(
    ("name", "codec"), [("a.webm", "vp9"), ("a.webm", "vp8"), ("a.mkv", "h264"), ("a.mp4", "h264")]
)
def test_a_recording_has_every_frame_at_its_time_beyond_the_wrap(
    name: str, codec: str, tmp_path: Path
) -> None:
    sink = open_recording(tmp_path / name)
    sink.stream_started(codec)
    for shown in film(codec):
        sink.show(shown)
    sink.close()
    sink.close()
    assert times(tmp_path / name) == pytest.approx([n / 30 for n in range(20)], abs=0.002)


def test_another_stream_has_another_file_and_begins_with_a_key_frame(tmp_path: Path) -> None:
    frames = film("vp9")
    sink = open_recording(tmp_path / "a.webm")
    sink.stream_started("vp9")
    for shown in frames:
        sink.show(shown)
    sink.stream_started("vp9")
    for shown in frames[5:]:
        sink.show(shown)
    assert not (tmp_path / "a-2.webm").exists()
    for shown in frames:
        sink.show(shown)
    sink.close()
    assert len(times(tmp_path / "a-2.webm")) == 20


def test_what_a_container_cannot_hold_is_said(tmp_path: Path) -> None:
    sink = open_recording(tmp_path / "a.webm")
    sink.stream_started("h264")
    with pytest.raises(MediaError, match="webm holds vp9 and vp8, not h264"):
        sink.show(film("h264", 1)[0])
    with pytest.raises(ConfigError, match=r"a\.avi ends in none of \.webm"):
        open_recording(tmp_path / "a.avi")


def test_a_folder_that_is_gone_is_said(tmp_path: Path) -> None:
    shown = film("vp9", 1)[0]
    for name in ("a.webm", "a.y4m"):
        sink = open_recording(tmp_path / "none" / name)
        sink.stream_started("vp9")
        with pytest.raises(MediaError, match="cannot"):
            sink.show(shown)


def test_raw_pictures_are_those_shown(tmp_path: Path) -> None:
    frames = film("vp9", 3)
    sink = RawRecording(tmp_path / "a.y4m")
    for shown in frames:
        sink.show(shown)
    sink.close()
    with av.open(str(tmp_path / "a.y4m")) as container:
        found = [picture.to_ndarray().tobytes() for picture in container.decode(video=0)]
    assert found == [shown.picture.to_ndarray().tobytes() for shown in frames]


class Failing:
    """Fails on the second picture."""

    def __init__(self) -> None:
        self.seen = 0
        self.closed = 0

    def stream_started(self, codec: str) -> None:
        pass

    def show(self, shown: Shown) -> None:
        self.seen += 1
        if self.seen == 2:
            raise MediaError("enough")

    def close(self) -> None:
        self.closed += 1


def ready(number: int) -> FrameReady:
    return FrameReady(number, b"", False, 0.0, None)


def test_a_sink_that_fails_is_closed_and_the_others_go_on() -> None:
    seen: list[int] = []
    failing: Any = Failing()
    sinks: list[Sink] = [failing, Callback(lambda shown: seen.append(shown.frame_no))]
    viewers = Viewers(sinks)
    for number in range(5):
        viewers.show(ready(number), "picture", 0.0)
    viewers.close()
    assert seen == [0, 1, 2, 3, 4]
    assert (failing.seen, failing.closed) == (2, 1)


def test_a_slow_sink_misses_pictures_and_holds_up_nothing() -> None:
    go = threading.Event()
    seen: list[int] = []

    def slow(shown: Shown) -> None:
        go.wait(20)
        seen.append(shown.frame_no)

    viewers = Viewers([Callback(slow)])
    for number in range(MAX_WAITING + 7):
        viewers.show(ready(number), "picture", 0.0)
    assert viewers.left_out == 7
    go.set()
    viewers.close()
    assert seen == list(range(MAX_WAITING))
