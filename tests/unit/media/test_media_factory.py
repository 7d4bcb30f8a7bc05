import random
import subprocess
import sys
from pathlib import Path

import pytest

from streamd.errors import ConfigError, StartupError
from streamd.media.clips import CLIPS as CLIPS_OF_THE_MODULE
from streamd.media.clips import ClipSource
from streamd.media.factory import (
    CLIPS,
    encoder_threads,
    open_decoder,
    open_encoder,
    open_source,
)
from streamd.media.libvpx import VpxEncoder
from streamd.media.pyav import FileSource
from streamd.media.pyav_codec import PyavDecoder, X264Encoder
from streamd.media.synthetic import SyntheticDecoder, SyntheticEncoder, SyntheticSource


@pytest.mark.parametrize("name", ["low", "medium", "high"])
def test_clips_by_name(name: str) -> None:
    source = open_source(name, size=(176, 144), fps=15.0)
    assert isinstance(source, ClipSource)
    assert (source.fps, source.width, source.height) == (15.0, 176, 144)
    source.close()


def test_the_names_are_those_of_the_clips() -> None:
    assert CLIPS == CLIPS_OF_THE_MODULE


def test_synthetic_by_name() -> None:
    source = open_source("synthetic", fps=50.0)
    assert isinstance(source, SyntheticSource)
    assert (source.fps, source.width, source.height) == (50.0, 352, 288)
    with pytest.raises(ConfigError, match="frame rate"):
        open_source("synthetic", fps=0.0)


def test_any_other_name_is_a_file_or_device() -> None:
    source = open_source("lavfi:testsrc=s=64x48")
    assert isinstance(source, FileSource)
    source.close()
    with pytest.raises(StartupError, match="No such file"):
        open_source("mediun")


@pytest.mark.parametrize(
    ("codec", "encoder_type", "decoder_type"),
    [
        ("vp9", VpxEncoder, PyavDecoder),
        ("vp8", VpxEncoder, PyavDecoder),
        ("h264", X264Encoder, PyavDecoder),
        ("synthetic", SyntheticEncoder, SyntheticDecoder),
    ],
)
def test_from_source_to_picture(codec: str, encoder_type: type, decoder_type: type) -> None:
    source = open_source("synthetic" if codec == "synthetic" else "low")
    encoder = open_encoder(codec, source, start_bps=500e3, max_bps=2e6)
    decoder = open_decoder(codec)
    assert isinstance(encoder, encoder_type)
    assert isinstance(decoder, decoder_type)
    assert encoder.inline is decoder.inline is (codec == "synthetic")
    frame = encoder.encode(source.read(), target_bps=500e3, keyframe=False)
    assert frame is not None
    assert frame[1]
    assert len(decoder.decode(frame[0])) == 1
    for part in (decoder, encoder, source):
        part.close()


def test_synthetic_settings_arrive() -> None:
    encoder = open_encoder(
        "synthetic",
        open_source("synthetic", fps=50.0),
        start_bps=1e6,
        max_bps=1e6,
        keyframe_factor=4.0,
        size_deviation=0.0,
        rng=random.Random(1),
    )
    frame = encoder.encode(None, target_bps=400e3, keyframe=False)
    assert frame is not None
    assert (len(frame[0]), frame[1]) == (4000, True)


def test_codec_and_source_have_to_match() -> None:
    with pytest.raises(ConfigError, match="no codec 'av1'; there are vp9, vp8, h264, synthetic"):
        open_decoder("av1")
    with pytest.raises(ConfigError, match="both are synthetic or none"):
        open_encoder("vp9", open_source("synthetic"), start_bps=1e6, max_bps=1e6)
    source = open_source("low")
    with pytest.raises(ConfigError, match="both are synthetic or none"):
        open_encoder("synthetic", source, start_bps=1e6, max_bps=1e6)
    source.close()


@pytest.mark.parametrize(
    ("size", "threads"),
    [((352, 288), 1), ((640, 480), 1), ((1280, 720), 3), ((1920, 1080), 4), ((2, 2), 1)],
)
def test_threads_by_picture_size(
    size: tuple[int, int], threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 16)
    assert encoder_threads(*size) == threads
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    assert encoder_threads(*size) == min(threads, 2)


def test_nothing_heavy_is_loaded_for_the_synthetic_codec() -> None:
    program = (
        "import sys, streamd\n"
        "from streamd.media.factory import open_source, open_encoder, open_decoder\n"
        "source = open_source('synthetic')\n"
        "open_encoder('synthetic', source, start_bps=1e6, max_bps=1e6)\n"
        "open_decoder('synthetic')\n"
        "print(sorted({'av', 'ctypes', 'asyncio', 'socket', 'numpy'} & set(sys.modules)))\n"
    )
    root = Path(__file__).resolve().parents[3]
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=root, stdout=subprocess.PIPE, check=True, text=True
    )
    assert done.stdout.strip() == "[]"
