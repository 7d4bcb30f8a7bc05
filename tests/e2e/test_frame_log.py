"""`--frames` of both daemons: a line per frame, the same frames, times in order."""

import asyncio
import csv
import itertools
from pathlib import Path

from streamd.stack.process import DaemonProcess, Record

ENOUGH = 50


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


async def stream(folder: Path) -> tuple[int, int]:
    """Over loopback until `ENOUGH` frames were shown; frames encoded and decoded."""
    common = ("--metrics-port", "off", "--report-interval", "100ms", "--frames")
    receiver = DaemonProcess(
        "receiver",
        ("--listen", "127.0.0.1:0", "--reference", "medium", *common, str(folder / "got.csv")),
        folder / "receiver.json",
    )
    enough = asyncio.Event()

    def look(entry: Record) -> None:
        if entry.get("event") == "report" and entry["frames_decoded"] >= ENOUGH:
            enough.set()

    receiver.on_record = look
    started = await receiver.start()
    sender = DaemonProcess(
        "sender",
        ("--peer", started["listen"], *common, str(folder / "sent.csv")),
        folder / "sender.json",
    )
    try:
        await sender.start()
        await asyncio.wait_for(enough.wait(), 40)
        assert await sender.stop() == 0
        assert await receiver.stop() == 0
    finally:
        await sender.kill()
        await receiver.kill()
    encoded: int = sender.result()["frames_encoded_count"]
    decoded: int = receiver.result()["frames_decoded_count"]
    return encoded, decoded


def test_a_line_per_frame_at_both_ends(tmp_path: Path) -> None:
    encoded, decoded = asyncio.run(stream(tmp_path))
    sent, got = rows(tmp_path / "sent.csv"), rows(tmp_path / "got.csv")
    assert len(sent) == encoded
    assert len(got) == decoded >= ENOUGH
    by_frame = {row["frame"]: row for row in sent}
    assert len(by_frame) == len(sent)
    assert sent[0]["keyframe"] == got[0]["keyframe"] == "1"
    for theirs in got:
        ours = by_frame[theirs["frame"]]
        times = [ours["captured_unix_s"], ours["encoded_unix_s"]]
        times += [theirs["completed_unix_s"], theirs["shown_unix_s"]]
        # the two processes read the wall clock once each, to a millisecond
        assert all(float(b) >= float(a) - 0.001 for a, b in itertools.pairwise(times))
        assert 0 <= int(ours["quantizer"]) <= 63
        assert ours["size_bytes"] == theirs["size_bytes"]
        assert float(theirs["psnr_db"]) > 20
        assert 0.5 < float(theirs["ssim"]) <= 1
