"""Result keys of a link, and what makes a joined row doubtful."""

from typing import Any

import pytest

from streamd.link.droptail import SPEC, DropTailConfig
from streamd.link.path import Path, PathConfig, build_path
from streamd.link.queue import Packet
from streamd.results.joined import LINK_KEYS, LOST_KEYS, RECEIVER_KEYS, SENDER_KEYS, join
from streamd.results.link import is_media, link_summary, queues_of
from streamd.results.streams import clock_warnings
from streamd.session.stats import ReceiverStats

MEDIA = bytes([0x80, 98]) + bytes(10)
RTCP = bytes([0x80, 205]) + bytes(10)


def path(capacity: float | None) -> Path:
    """Holds three packets beside the one it sends."""
    config = PathConfig(capacity=capacity, queue=SPEC, queue_config=DropTailConfig(packets=3))
    return build_path(config, seed="1", now=0.0)


def test_media_are_told_from_rtcp_and_from_what_is_too_short() -> None:
    assert is_media(MEDIA)
    assert not is_media(RTCP)
    assert not is_media(MEDIA[:11])
    assert not is_media(b"")


def test_what_a_link_did_is_counted() -> None:
    link = path(80_000.0)
    for _ in range(6):
        link.send(Packet(MEDIA, 1000, 1, 0.0), 0.0)
    link.advance(0.8)
    summary = link_summary(link, offered=6, now=0.8)
    assert summary["link_offered_count"] == 6
    assert summary["link_drops_count"] == {"fifo_limit_packets": 2, "fifo_limit_bytes": 0}
    assert summary["link_loss_ratio"] == pytest.approx(2 / 6)
    # four packets of 0.1 s each in 0.8 s
    assert summary["utilisation_ratio"] == pytest.approx(0.5)
    assert len(link.out) == 4


def test_a_path_without_a_limit_has_neither_queue_nor_utilisation() -> None:
    link = path(None)
    link.send(Packet(MEDIA, 1000, 1, 0.0), 0.0)
    summary = link_summary(link, offered=1, now=1.0)
    assert queues_of(link) == []
    assert summary["utilisation_ratio"] is None
    assert summary["link_loss_ratio"] == 0.0
    assert link_summary(path(None), offered=0, now=1.0)["link_loss_ratio"] is None


def records(**change: Any) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Summaries of an ordinary stream of 100 frames, with changes."""
    sender: dict[str, Any] = dict.fromkeys(SENDER_KEYS, 0)
    receiver: dict[str, Any] = dict.fromkeys((*RECEIVER_KEYS, *LOST_KEYS), 0)
    link: dict[str, Any] = dict.fromkeys(LINK_KEYS, 0)
    sender["frames_encoded_count"] = 100
    receiver |= {"frames_decoded_count": 97, "frames_seen_count": 99, "frames_lost_count": 2}
    receiver |= {"rendered_frames_count": 97, "kernel_drops_count": 0, "ce_ratio": None}
    receiver |= {"clock_warnings": [], **change}
    link["kernel_drops_count"] = 0
    return sender, link, receiver


def test_frames_never_seen_are_lost_too() -> None:
    row = join(*records(), ecn_capable=False, exit_codes={"sender": 0})
    assert row["frames_lost_count"] == 3
    assert row["ce_ratio"] == 0.0
    assert row["warnings"] == []


@pytest.mark.parametrize(
    ("change", "exit_codes", "warning"),
    [
        ({"rendered_frames_count": 0}, {}, "no frame was shown"),
        ({"freeze_tail_s": 2.5}, {}, "the picture stood still for the last 2.5 s"),
        ({"frames_decoded_count": 96}, {}, "100 frames encoded, 99 accounted for"),
        ({}, {"sender": 1}, "sender ended with exit code 1"),
        ({"clock_warnings": ["frame latencies may be wrong"]}, {}, "frame latencies may be wrong"),
        ({"kernel_drops_count": 4}, {}, "the kernel dropped datagrams: this machine is overloaded"),
    ],
)
def test_what_makes_a_row_doubtful_is_said(
    change: dict[str, Any], exit_codes: dict[str, int], warning: str
) -> None:
    row = join(*records(**change), ecn_capable=True, exit_codes=exit_codes)
    assert row["warnings"] == [warning]


@pytest.mark.parametrize(
    ("bound", "negative", "expected"),
    [
        (None, 0, []),
        (0.002, 0, []),
        (0.0125, 0, ["frame latencies may be wrong by 12.5 ms"]),
        (None, 4, ["4 frames were shown before their capture"]),
    ],
)
def test_clocks_that_make_latencies_doubtful(
    bound: float | None, negative: int, expected: list[str]
) -> None:
    stats = ReceiverStats(clock_error_bound=bound, frames_negative_latency=negative)
    found = clock_warnings(stats)
    assert [text.partition(":")[0] for text in found] == expected
