"""SCReAM against the reference's time series, call traces and feedback packets.

Reads every scenario listed in `$STREAMD_VECTORS/scream/scenarios.toml` that has
its series beside it. Series are compared row by row; three of them leave a
double-precision computation where single precision does, and are compared by
their means from there on, and row by row with the double-precision series.
"""

import csv
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from scream_simulation import HZ, START, STEP, Simulation, new_sender, scenarios, vectors

SCENARIOS = scenarios()
PROFILES = ("head", "p0304")
FOLDER = vectors() / "scream"

COLUMNS = ("ref_wnd", "target_bps", "srtt", "l4s_alpha", "window_headroom", "pkts_tx")
MORE_COLUMNS = ("target_bps_2",)
NOT_COMPARED = ("discarded_pkts",)
RELATIVE = 0.005
ALPHA_ABSOLUTE = 1e-4

DIVERGING = {
    ("S06_noecn_12M_loss1pct", "head"): 7.0,
    ("S09_l4s_12M_two_streams", "p0304"): 13.0,
    ("S11_noecn_12M_outage_1s", "head"): 27.0,
}
"""Single-precision series that a correct implementation in doubles leaves, and when."""
MEANS = {
    "ref_wnd": 0.05,
    "target_bps": 0.05,
    "srtt": 0.05,
    "l4s_alpha": 0.05,
    "window_headroom": 0.10,
}
GROWTH = ("rx_bytes", "pkts_tx")
WINDOWS = ((10.0, 20.0), (20.0, 30.0))

Row = dict[str, str]


Cases = list[Any]


def skipped(reason: str) -> Cases:
    return [pytest.param("", "", marks=pytest.mark.skip(reason=reason), id="missing")]


def series_cases() -> Cases:
    """Every scenario listed, in both profiles; a missing file skips that case alone."""
    found = []
    for name in SCENARIOS:
        for profile in PROFILES:
            path = FOLDER / f"{name}.{profile}.csv"
            marks = [] if path.is_file() else [pytest.mark.skip(reason=f"no {path.name}")]
            found.append(pytest.param(name, profile, marks=marks, id=f"{name}-{profile}"))
    return found or skipped(f"no scenarios in {FOLDER}")


def extra_cases(folder: Path, suffix: str) -> Cases:
    """Every scenario and profile that has a file of this kind."""
    found = [
        pytest.param(name, profile, id=f"{name}-{profile}")
        for name in SCENARIOS
        for profile in PROFILES
        if (folder / f"{name}.{profile}{suffix}").is_file()
    ]
    return found or skipped(f"no *{suffix} in {folder}")


def read(path: Path) -> list[Row]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@cache
def simulated(name: str, profile: str, seconds: float) -> list[dict[str, float]]:
    return list(Simulation(SCENARIOS[name], profile).rows(seconds))


def seconds_of(rows: list[Row]) -> float:
    return max(30.0, float(rows[-1]["t"]) + 0.1)


def half_digit(text: str) -> float:
    """Half a unit of the last printed digit."""
    _, point, decimals = text.partition(".")
    return 0.5 * 10.0 ** -len(decimals) if point else 0.5


def tolerance(column: str, text: str) -> float:
    allowed = abs(float(text)) * RELATIVE + half_digit(text) * (1 + 1e-9)
    return allowed + ALPHA_ABSOLUTE if column == "l4s_alpha" else allowed


def first_difference(
    reference: list[Row], got: list[dict[str, float]], columns: tuple[str, ...], until: float
) -> str | None:
    for want, have in zip(reference, got, strict=True):
        if float(want["t"]) >= until:
            return None
        for column in columns:
            if column in want and abs(float(want[column]) - have[column]) > tolerance(
                column, want[column]
            ):
                return f"t={want['t']} {column}: {have[column]}, reference {want[column]}"
    return None


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def mean_differences(reference: list[Row], got: list[dict[str, float]]) -> list[str]:
    """The rule for the diverging series: means and growth over 10-20 s and 20-30 s."""
    faults = []
    for start, end in WINDOWS:
        rows = [i for i, row in enumerate(reference) if start <= float(row["t"]) < end]
        for column, allowed in MEANS.items():
            want = mean([float(reference[i][column]) for i in rows])
            have = mean([got[i][column] for i in rows])
            if abs(have - want) > allowed * abs(want):
                faults.append(f"{start}-{end} s mean {column}: {have}, reference {want}")
        first, last = rows[0], rows[-1]
        for column in GROWTH:
            want = float(reference[last][column]) - float(reference[first][column])
            have = got[last][column] - got[first][column]
            if abs(have - want) > 0.05 * want:
                faults.append(f"{start}-{end} s growth {column}: {have}, reference {want}")
    return faults


@pytest.mark.parametrize(("name", "profile"), series_cases())
def test_conformance_series(name: str, profile: str) -> None:
    reference = read(FOLDER / f"{name}.{profile}.csv")
    got = simulated(name, profile, seconds_of(reference))[: len(reference)]
    until = DIVERGING.get((name, profile), float("inf"))
    assert first_difference(reference, got, COLUMNS + MORE_COLUMNS, until) is None
    if (name, profile) in DIVERGING:
        assert mean_differences(reference, got) == []


@pytest.mark.parametrize(("name", "profile"), extra_cases(FOLDER / "double", ".csv"))
def test_conformance_double_precision_series(name: str, profile: str) -> None:
    """Every column of the series made in double precision."""
    reference = read(FOLDER / "double" / f"{name}.{profile}.csv")
    got = simulated(name, profile, seconds_of(reference))[: len(reference)]
    columns = tuple(column for column in reference[0] if column not in NOT_COMPARED)
    assert set(columns) <= set(got[0])
    assert first_difference(reference, got, columns, float("inf")) is None


class Replay:
    """A call trace, step by step, against a sender of its own."""

    def __init__(self, name: str, profile: str) -> None:
        with (FOLDER / f"{name}.{profile}.trace.csv").open(newline="") as file:
            self.rows = list(csv.reader(file))[1:]
        self.sender = new_sender(SCENARIOS[name], profile)
        self.next = 0

    def run(self) -> None:
        last = int(self.rows[-1][1])
        for t in range(START, last + 1, STEP):
            for row in self.take(t, sending=False):
                self.call(row, t)
            sent = []
            for _ in range(64):
                packet = self.sender.transmit(t)
                if packet is None:
                    break
                sent.append((packet.seq, packet.size, int(packet.marker), packet.rtp_time))
            wanted = [tuple(map(int, row[2:6])) for row in self.take(t, sending=True)]
            assert sent == wanted, f"packets sent at {t}"
        assert self.next == len(self.rows)

    def take(self, t: int, *, sending: bool) -> list[list[str]]:
        """The next rows of time `t`: the TX ones, or all others up to the first TX."""
        begin = self.next
        while (
            self.next < len(self.rows)
            and int(self.rows[self.next][1]) == t
            and (self.rows[self.next][0] == "TX") == sending
        ):
            self.next += 1
        return self.rows[begin : self.next]

    def call(self, row: list[str], t: int) -> None:
        kind, first = row[0], row[2]
        if kind == "NEW":
            seq, size, marker, rtp = map(int, row[2:6])
            self.sender.queue(100, seq, size, bool(marker), rtp, t)
        elif kind == "FB":
            self.sender.feedback(bytes.fromhex(first), t)
        elif kind == "RATE":
            decision = self.sender.controller.decision(100, now=t / HZ)
            rate = -1.0 if decision.keyframe_wanted else decision.target_bps
            assert abs(rate - float(first)) <= tolerance("target_bps", first), f"rate at {t}"
        else:
            assert kind == "ST"
            self.check_state(row[2:9], t)

    def check_state(self, values: list[str], t: int) -> None:
        stats = self.sender.controller.stats(100)
        have = {
            "ref_wnd": stats.extra["ref_wnd_bytes"],
            "bytes_in_flight": stats.bytes_in_flight,
            "target_bps": stats.target_bps,
            "queue_delay": stats.queue_delay or 0.0,
            "srtt": stats.srtt or 0.0,
            "l4s_alpha": stats.extra["l4s_alpha_ratio"],
            "pace_interval": stats.extra["pace_interval_seconds"],
        }
        for (column, value), want in zip(have.items(), values, strict=True):
            assert abs(value - float(want)) <= tolerance(column, want), f"{column} at {t}"


@pytest.mark.parametrize(("name", "profile"), extra_cases(FOLDER, ".trace.csv"))
def test_conformance_call_trace(name: str, profile: str) -> None:
    """Each packet leaves in the step in which the reference sends it, and the state agrees."""
    Replay(name, profile).run()


@pytest.mark.parametrize(("name", "profile"), extra_cases(FOLDER, ".trace.csv"))
def test_conformance_feedback_packets(name: str, profile: str) -> None:
    """The receiver makes every RTCP packet of the trace, byte for byte."""
    with (FOLDER / f"{name}.{profile}.trace.csv").open(newline="") as file:
        wanted = [row[2] for row in csv.reader(file) if row[0] == "FB"]
    simulation = Simulation(SCENARIOS[name], profile)
    for _ in simulation.rows(4.0):
        pass
    made = [data.hex() for _, data in simulation.reports]
    assert made[: len(wanted)] == wanted


@pytest.mark.parametrize("profile", PROFILES)
def test_conformance_skipped_steps_change_nothing(profile: str) -> None:
    """The simulation leaves out steps by `next_timeout`; asking in every step gives the same."""
    scenario = {
        "ecn": "ect1",
        "rate_bps": [[0, 4_000_000], [1, 1_500_000]],
        "rtt_s": 0.02,
        "limit_packets": 60,
        "loss": 0.02,
        "max_bps": 10_000_000,
        "l4s_step_s": 0.001,
        "outage_s": [2, 2.7],
    }
    quick = list(Simulation(scenario, profile).rows(4.0))
    slow = list(Simulation(scenario, profile, every_step=True).rows(4.0))
    assert quick == slow
    assert quick[-1]["link_drops"] > 0
