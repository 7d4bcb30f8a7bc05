"""A hundred thousand packets, one in six damaged: counted, bounded, and the picture comes back."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).with_name("fuzz_program.py")
PACKETS = 34_000
"""Per codec."""


def run(codec: str, packets: int, seed: int) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, str(PROGRAM), codec, str(packets), str(seed)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("codec", ["vp9", "vp8", "h264"])
def test_damaged_packets_are_counted_and_the_picture_comes_back(codec: str) -> None:
    found = run(codec, PACKETS, 1)
    assert found["packets"] >= PACKETS
    # half of the seconds are whole, and decoding begins anew in each
    assert found["decoded"] > 0.4 * found["frames"]
    assert found["lost"] > 0
    # what the packets themselves contradict, by reason
    assert found["invalid"].keys() & {"video_mismatch", "video_fragment"}
    assert sum(found["invalid"].values()) > 100
    assert found["bytes_held"] < 2_000_000
    assert found["rss_bytes"] < 400_000_000
