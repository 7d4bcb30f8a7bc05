"""The log of frames: its lines, and files that cannot be written."""

from pathlib import Path

import pytest

from streamd.errors import MediaError, StartupError
from streamd.media.frame_log import SentLog, ShownLog
from streamd.media.model import EncodedFrame
from streamd.media.sinks import Shown


def test_a_line_of_the_sender(tmp_path: Path) -> None:
    log = SentLog(tmp_path / "s.csv", unix_offset=1000.0)
    frame = EncodedFrame(b"abc", True, 2.0, refer=None)
    log.add(7, frame, quantizer=31, target_bps=1.5e6, first_seq=0x10005, packets=2, now=2.25)
    log.add(8, frame, quantizer=-1, target_bps=1.5e6, first_seq=0x10007, packets=1, now=2.5)
    lines = (tmp_path / "s.csv").read_text().splitlines()
    log.close()
    assert lines[0].startswith("frame,captured_unix_s,encoded_unix_s,size_bytes,keyframe,repair")
    assert lines[1] == "7,1002.000000,1002.250000,3,1,0,31,1500000,5,2"
    assert lines[2] == "8,1002.000000,1002.500000,3,1,0,,1500000,7,1"


def test_a_line_of_the_receiver_without_anything_to_compare(tmp_path: Path) -> None:
    log = ShownLog(tmp_path / "r.csv", unix_offset=1000.0)
    log.show(Shown(3, 9000, b"abcd", False, None, 5.0, 5.125, None))
    lines = (tmp_path / "r.csv").read_text().splitlines()
    log.close()
    log.close()
    assert lines[1] == "3,9000,,1005.000000,1005.125000,4,0,,"


def test_a_file_that_cannot_be_written_is_said_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match="cannot be written"):
        SentLog(tmp_path / "none" / "s.csv", unix_offset=0.0)


def test_a_full_disk_ends_the_log_with_a_sentence() -> None:
    with pytest.raises(MediaError, match="log of frames cannot go on"):
        SentLog(Path("/dev/full"), unix_offset=0.0)
