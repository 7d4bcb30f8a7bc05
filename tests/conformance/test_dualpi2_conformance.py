"""Replays the DualPI2 reference: exact files row by row, seeded statistics within their bounds."""

from math import sqrt
from pathlib import Path as FilePath

import pytest
from dualpi2_vectors import (
    CONFIGS,
    FOLDER,
    MARK_LABELS,
    TRACES,
    arrivals_in,
    arrivals_of,
    files,
    load_trace,
    metrics_of,
    open_loop,
    read,
    run_statistics,
    scenario_of,
    simulate,
)

SEEDS = 16
OPEN_LOOP_SEEDS = 4
"""Seeds count from 1, as the reference's do."""
REFERENCE_SEEDS = {"linux": 100, "fork": 40}
OPEN_LOOP_REFERENCE_SEEDS = 30
ROUNDED = 0.5e-5
"""Relative rounding of the statistics files: six digits."""
MODES = {"linux_stats.csv": "linux", "fork_stats.csv": "fork"}

MISSING = pytest.param(
    None, marks=pytest.mark.skip(reason=f"no reference files in {FOLDER} (STREAMD_VECTORS)")
)


def cases(pattern: str) -> list[object]:
    found = [pytest.param(path, id=path.stem) for path in files(pattern)]
    return list(found) or [MISSING]


def scenarios(name: str) -> list[object]:
    """One case per scenario of a statistics file."""
    path = FOLDER / name
    if not path.is_file():
        reason = f"{path} is missing (STREAMD_VECTORS)"
        return [pytest.param(name, "", marks=pytest.mark.skip(reason=reason), id=name)]
    names = dict.fromkeys(row["scenario"] for row in read(path))
    return [pytest.param(name, scenario, id=f"{path.stem}-{scenario}") for scenario in names]


def config_of(mode: str) -> object:
    if mode not in CONFIGS:
        pytest.skip(f"no parameters are stated for mode {mode!r}")
    return CONFIGS[mode]


def known(scenario: str) -> str:
    if arrivals_of(scenario) is None:
        pytest.skip(f"neither a packet file nor the name tells the arrivals of {scenario!r}")
    return scenario


@pytest.mark.parametrize("path", cases("rfc*_packets.csv"))
def test_conformance_every_packet(path: FilePath) -> None:
    mode, _ = scenario_of(path)
    config_of(mode)
    rows = read(path)
    run = simulate(arrivals_in(rows), CONFIGS[mode])
    ours = [
        (str(run.departed_us.get(i, "")), MARK_LABELS[packet.mark], run.drops.get(i, ""))
        for i, packet in enumerate(run.packets)
    ]
    # A mark is listed for what was delivered only.
    ours = [(dep, "" if drop else mark, drop) for dep, mark, drop in ours]
    theirs = [(row["dep_us"], row["mark"], row["drop"]) for row in rows]
    different = [i for i, pair in enumerate(zip(ours, theirs, strict=True)) if pair[0] != pair[1]]
    assert not different, f"row {different[0]}: {ours[different[0]]} != {theirs[different[0]]}"


@pytest.mark.parametrize("path", cases("rfc*_prob.csv"))
def test_conformance_every_update(path: FilePath) -> None:
    mode, scenario = scenario_of(path)
    config_of(mode)
    arrivals = arrivals_of(known(scenario))
    assert arrivals is not None
    rows = read(path)
    run = simulate(arrivals, CONFIGS[mode], update_us=[int(row["t_us"]) for row in rows])
    assert len(run.updates) == len(rows)
    for ours, row in zip(run.updates, rows, strict=True):
        at = row["t_us"]
        assert ours["packets_l4s"] == int(row["l_pkts"]), at
        assert ours["packets_classic"] == int(row["c_pkts"]), at
        assert round(ours["delay_l4s"] * 1e6) == int(row["qdelay_l_us"]), at
        assert round(ours["delay_classic"] * 1e6) == int(row["qdelay_c_us"]), at
        for name in ("p", "p_c", "p_cl"):
            assert ours[name] == pytest.approx(float(row[name]), abs=1e-6), at


@pytest.mark.parametrize(
    ("name", "scenario"), scenarios("linux_stats.csv") + scenarios("fork_stats.csv")
)
def test_conformance_seeded_statistics(name: str, scenario: str) -> None:
    mode = MODES[name]
    runs = [run_statistics(known(scenario), mode, seed)[0] for seed in range(1, SEEDS + 1)]
    rows = {row["metric"]: row for row in read(FOLDER / name) if row["scenario"] == scenario}
    for metric, row in rows.items():
        within(metric, [run[metric] for run in runs], row, REFERENCE_SEEDS[mode])
    for metric in set(runs[0]) - set(rows) - {"arrived"}:
        # Left out there because it was 0 in every run.
        assert [run[metric] for run in runs] == [0] * SEEDS, metric


def within(metric: str, ours: list[float], row: dict[str, str], reference_seeds: int) -> None:
    """The reference's own bound; without spread there, equality to the printed digits."""
    mean, expected, sd = sum(ours) / len(ours), float(row["mean"]), float(row["sd"])
    rounding = abs(expected) * ROUNDED
    if sd == 0:
        assert ours == [pytest.approx(expected, abs=rounding)] * len(ours), metric
        return
    slack = 1e-6 if metric.startswith("p_") else 0.5
    bound = 4 * sd * sqrt(1 / len(ours) + 1 / reference_seeds) + slack + rounding
    assert abs(mean - expected) <= bound, f"{metric}: {mean} against {expected}, bound {bound}"


@pytest.mark.parametrize(("name", "scenario"), scenarios("linux_prob_mean.csv"))
def test_conformance_mean_probability(name: str, scenario: str) -> None:
    runs = [run_statistics(known(scenario), "linux", seed) for seed in range(1, SEEDS + 1)]
    rows = [row for row in read(FOLDER / name) if row["scenario"] == scenario]
    spread = 5 * sqrt(1 / SEEDS + 1 / REFERENCE_SEEDS["linux"])
    for i, row in enumerate(rows):
        p = sum(p[i] for _, p, _ in runs) / SEEDS
        delay = sum(delay[i] for _, _, delay in runs) / SEEDS
        at = row["t_us"]
        assert abs(p - float(row["p_mean"])) <= spread * float(row["p_sd"]) + 1e-6, at
        bound = spread * float(row["qdelay_sd_us"]) + 1.0
        assert abs(delay - float(row["qdelay_mean_us"])) <= bound, at


@pytest.mark.parametrize(("name", "scenario"), scenarios("rfc_summary.csv"))
def test_conformance_summary(name: str, scenario: str) -> None:
    mode, plain = ("rfcramp", scenario[5:]) if scenario.startswith("ramp_") else ("rfc", scenario)
    arrivals = arrivals_of(known(plain))
    assert arrivals is not None
    ours = metrics_of(simulate(arrivals, CONFIGS[mode]))
    (row,) = (row for row in read(FOLDER / name) if row["scenario"] == scenario)
    stated = {key: float(value) for key, value in row.items() if key != "scenario" and value}
    assert {key: ours[key] for key in stated} == stated


def open_loop_cases(name: str) -> list[object]:
    path = FOLDER / name
    if not path.is_file() or load_trace("Verizon-LTE-short.up") is None:
        reason = f"needs {path} and the Verizon-LTE-short.up trace in {TRACES}"
        return [pytest.param("", 0.0, "", "", marks=pytest.mark.skip(reason=reason))]
    keys = dict.fromkeys(
        (r["flow"], float(r["rate_mbps"]), r["mode"], r["gain"]) for r in read(path)
    )
    return [pytest.param(*key, id="-".join(map(str, key))) for key in keys]


@pytest.mark.parametrize(("flow", "mbps", "mode", "gain"), open_loop_cases("verizon_open_loop.csv"))
def test_conformance_open_loop_run(flow: str, mbps: float, mode: str, gain: str) -> None:
    """The single runs to the last digit: our draws come in the stated order."""
    (row,) = open_loop_rows("verizon_open_loop.csv", flow, mbps, mode, gain)
    ours = open_loop(flow, mbps, mode, gain, seed=1)
    metrics = [key for key in row if key not in ("flow", "rate_mbps", "mode", "gain")]
    assert {key: ours[key] for key in metrics} == {key: float(row[key]) for key in metrics}


@pytest.mark.parametrize(
    ("flow", "mbps", "mode", "gain"), open_loop_cases("verizon_open_loop_stats.csv")
)
def test_conformance_open_loop_statistics(flow: str, mbps: float, mode: str, gain: str) -> None:
    rows = open_loop_rows("verizon_open_loop_stats.csv", flow, mbps, mode, gain)
    runs = [open_loop(flow, mbps, mode, gain, seed) for seed in range(1, OPEN_LOOP_SEEDS + 1)]
    for row in rows:
        metric = row["metric"]
        within(metric, [run[metric] for run in runs], row, OPEN_LOOP_REFERENCE_SEEDS)


def open_loop_rows(name: str, flow: str, mbps: float, mode: str, gain: str) -> list[dict[str, str]]:
    return [
        row
        for row in read(FOLDER / name)
        if (row["flow"], float(row["rate_mbps"]), row["mode"], row["gain"])
        == (flow, mbps, mode, gain)
    ]
