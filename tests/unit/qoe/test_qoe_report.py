"""The rows metrics leave in."""

import csv
import io
import json
from math import inf

import pytest

from streamd.qoe.report import (
    COLUMNS,
    COUNTS_DIFFER,
    NEGATIVE_DELAY,
    NO_FRAMES,
    OVER_CAPACITY,
    TAIL_FREEZE,
    MetricRow,
    all_warnings,
    warn_delays,
    warn_frames,
    warn_utilisation,
)


def test_a_value_that_is_not_available_is_null_and_an_empty_cell() -> None:
    row = MetricRow("rtt_p95_s", None, "s")
    assert json.dumps(row.as_dict()) == (
        '{"metric": "rtt_p95_s", "value": null, "unit": "s", "mode": "", "samples": 0, '
        '"warnings": []}'
    )
    assert row.as_cells() == ["rtt_p95_s", "", "s", "", "0", ""]


def test_a_row_survives_csv() -> None:
    row = MetricRow("freeze_count", 2.0, "1", "webrtc", 700, (TAIL_FREEZE, NO_FRAMES))
    out = io.StringIO()
    csv.writer(out).writerows([COLUMNS, row.as_cells()])
    assert out.getvalue() == (
        "metric,value,unit,mode,samples,warnings\r\n"
        "freeze_count,2.0,1,webrtc,700,tail freeze; no frames\r\n"
    )


@pytest.mark.parametrize(("value", "written"), [(inf, "inf"), (-inf, "-inf"), (0.0, 0.0)])
def test_infinity_is_spelled_out_in_json(value: float, written: object) -> None:
    assert MetricRow("frame_delay_p90_s", value, "s").as_dict()["value"] == written


def test_warnings_of_a_run_are_listed_once() -> None:
    rows = [
        MetricRow("a", 1, "s", warnings=(TAIL_FREEZE,)),
        MetricRow("b", 1, "s", warnings=(NEGATIVE_DELAY, TAIL_FREEZE)),
    ]
    assert all_warnings(rows) == [TAIL_FREEZE, NEGATIVE_DELAY]


def test_what_is_warned_of() -> None:
    assert warn_utilisation(1.011) == (OVER_CAPACITY,)
    assert warn_utilisation(1.01) == ()
    assert warn_utilisation(None) == ()
    assert warn_delays(-0.001) == (NEGATIVE_DELAY,)
    assert warn_delays(0.0) == ()
    assert warn_delays(None) == ()
    assert warn_frames(3, [1, 2]) == ()
    assert warn_frames(0, [0]) == (NO_FRAMES,)
    assert warn_frames(3, [1, 1]) == (COUNTS_DIFFER,)
    assert warn_frames(0, [1]) == (NO_FRAMES, COUNTS_DIFFER)
