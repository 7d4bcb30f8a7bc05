"""Every report in the reference sender's call traces decodes, and encodes to the same bytes."""

import csv
import os
from pathlib import Path

import pytest

from streamd.wire.bwtool import MEDIA_SSRC, RTCP_SENDER_SSRC
from streamd.wire.ccfb import decode_ccfb, encode_ccfb

ROOT = Path(__file__).resolve().parents[2]
VECTORS = Path(os.environ.get("STREAMD_VECTORS", ROOT.parent / "shared" / "reference"))
TRACES = sorted((VECTORS / "scream").glob("*.trace.csv"))
MISSING = pytest.param(
    None, marks=pytest.mark.skip(reason=f"no call traces in {VECTORS.name}/scream"), id="missing"
)


@pytest.mark.parametrize(
    "trace", [pytest.param(path, id=path.name) for path in TRACES] or [MISSING]
)
def test_conformance_reports_of_the_reference_receiver(trace: Path) -> None:
    with trace.open(newline="") as file:
        reports = [bytes.fromhex(row[2]) for row in csv.reader(file) if row[0] == "FB"]
    assert reports
    for packet in reports:
        feedback = decode_ccfb(packet, minus_one=True)
        assert feedback.sender_ssrc == RTCP_SENDER_SSRC
        assert {item.ssrc for item in feedback.lists} == {MEDIA_SSRC}
        assert all(len(item.blocks) == 64 for item in feedback.lists)
        assert encode_ccfb(feedback, minus_one=True) == packet
