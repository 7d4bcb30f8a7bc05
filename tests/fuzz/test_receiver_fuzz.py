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
PACKETS_OF_OTHERS = 12_000


def run(codec: str, packets: int, seed: int, sender: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, str(PROGRAM), codec, str(packets), str(seed), sender],
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
    found = run(codec, PACKETS, 1, "ours")
    assert found["packets"] >= PACKETS
    # half of the seconds are whole, and decoding begins anew in each
    assert found["decoded"] > 0.4 * found["frames"]
    assert found["lost"] > 0
    # what the packets themselves contradict, by reason
    assert found["invalid"].keys() & {"video_mismatch", "video_fragment"}
    assert sum(found["invalid"].values()) > 100
    assert found["bytes_held"] < 2_000_000
    assert found["rss_bytes"] < 400_000_000


@pytest.mark.parametrize("codec", ["vp9", "vp8", "h264"])
def test_so_are_those_of_other_senders(codec: str) -> None:
    found = run(codec, PACKETS_OF_OTHERS, 2, "others")
    assert found["packets"] >= PACKETS_OF_OTHERS
    # a gap is waited for, so that a good second begins later than with ours
    assert found["decoded"] > 0.35 * found["frames"]
    assert found["lost"] > 0
    assert found["invalid"].keys() & {"vp9_payload", "vp8_payload", "h264_payload"}
    assert found["bytes_held"] < 2_000_000
    assert found["rss_bytes"] < 400_000_000
