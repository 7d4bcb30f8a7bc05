"""The two measurements that are no simulated call."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from streamd.errors import ConfigError
from streamd.lab import probes
from streamd.lab.execute import check
from streamd.lab.extra import need

numpy = need("numpy")
TRACES = Path(os.environ.get("STREAMD_TRACES", "../shared/traces"))
VERIZON = TRACES / "Verizon-LTE-short.up"
PROBE = {
    "offered": "16Mbps",
    "payload": 1448,
    "headers": 32,
    "opportunity": 1504,
    "packets": 100,
    "phase": "0ms",
}


def _statistics(**changed: Any) -> dict[str, Any]:
    summary, _ = probes.trace_statistics(**{**PROBE, **changed})
    flow: dict[str, Any] = summary["flows"]["udp"]
    return flow


def test_a_link_of_one_packet_each_10_ms(tmp_path: Path) -> None:
    file = tmp_path / "t.up"
    # 100 opportunities in the first second, none in the second, one at its end.
    stamps = [*range(10, 1001, 10), 2000]
    file.write_text("".join(f"{stamp}\n" for stamp in stamps), encoding="ascii")
    found = _statistics(capacity=str(file), opportunity=1480)
    # The packet of 1.000 s lies in the second second, that of 2.000 s in none.
    assert found["max_bps"] == 99 * 1448 * 8
    assert found["min_bps"] == 1 * 1448 * 8
    assert found["mean_bps"] == 50 * 1448 * 8
    assert found["seconds_count"] == 2


@pytest.mark.parametrize(
    ("phase", "mean", "deviation"),
    # The reference's figures for this very flow (its README of the traces).
    [
        ("0ms", "5.832", "3.053"),
        ("250ms", "5.813", "3.014"),
        ("500ms", "5.817", "3.042"),
        ("750ms", "5.821", "3.095"),
    ],
)
@pytest.mark.skipif(not VERIZON.is_file(), reason="the Verizon trace is not there")
def test_the_published_trace(phase: str, mean: str, deviation: str) -> None:
    found = _statistics(capacity=str(VERIZON), phase=phase)
    assert f"{found['mean_bps'] / 1e6:.3f}" == mean
    assert f"{found['sd_bps'] / 1e6:.3f}" == deviation
    assert found["seconds_count"] == (140 if phase == "0ms" else 139)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"capacity": "12Mbps"}, "a trace is needed, not a rate"),
        ({"phase": "1s"}, "a part of a second is needed"),
        ({"phase": "soon"}, "phase: "),
        ({"offered": "0bps"}, "offered 0bps: must be above 0"),
        ({"offered": "fast"}, "offered: "),
        ({"payload": 0}, "a datagram of 0 bytes"),
    ],
)
def test_a_senseless_probe(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        _statistics(**{"capacity": "lte", **changed})


def test_keys_of_a_probe_are_checked() -> None:
    check("trace", {**PROBE, "capacity": "lte"})
    with pytest.raises(ConfigError, match="has the keys source, not clip"):
        check("clips", {"clip": "low"})


class _Plane(bytes):
    """4 x 4 pixels in lines of 8."""

    width = height = 4
    line_size = 8


class _Frames:
    def __init__(self, *pictures: list[list[int]]) -> None:
        self._pictures = iter(pictures)

    def read(self) -> SimpleNamespace:
        picture = next(self._pictures, None)
        if picture is None:
            raise EOFError
        return SimpleNamespace(planes=[_Plane(b"".join(bytes([*r, 9, 9, 9, 9]) for r in picture))])


def test_motion_of_the_specification_s_example() -> None:
    # 10 everywhere, 50 in the middle; then the block one column to the right.
    first = [[10, 50 if 0 < y < 3 else 10, 50 if 0 < y < 3 else 10, 10] for y in range(4)]
    second = [[10, 10, 50 if 0 < y < 3 else 10, 50 if 0 < y < 3 else 10] for y in range(4)]
    luma = probes._luma(_Frames(first, second), numpy)
    (motion,) = probes.motion(luma, numpy)
    # 20.0 without expansion of the range, 23.288 with it.
    assert round(motion, 3) == 23.288


def test_motion_of_a_built_in_clip() -> None:
    summary, tables = probes.clip_motion(source="low")
    found = summary["flows"]["clip"]
    assert found["pictures_count"] == 300
    assert len(tables["pictures"]["ti"]) == 299
    # It is made to have 2.99; what FFmpeg draws differs a little between versions.
    assert 2.84 < found["ti_mean"] < 3.14
