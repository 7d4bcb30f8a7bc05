"""How fast the simulator is, on one core: `python -m streamd.bench.sim [--json FILE]`.

The main case of the L4S video paper (140 s of an LTE-like uplink) with synthetic frames and
with real VP9 in CIF, encoded and decoded; and 25 hours at ten packets a second, in which
sequence numbers, media time and report time all go round.
"""

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from streamd.bench.table import machine, print_table
from streamd.sim.scenario import Scenario
from streamd.sim.world import simulate

HOURS = 25
PATHS: Mapping[str, Any] = {
    "up": {"capacity": "lte", "queue_options": {"packets": 100}, "delay": "10ms"},
    "down": {"delay": "10ms"},
}
SLOW: Mapping[str, Any] = {
    "up": {"capacity": "1Mbps", "delay": "10ms"},
    "down": {"delay": "10ms"},
}
FLOW: Mapping[str, Any] = {"name": "video", "up": "up", "down": "down", "ecn": "ect1"}
CASES: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any], str, float]] = {
    "lte-synthetic": (PATHS, {"source": "synthetic", "fps": 50}, "140s", 6.0),
    "lte-vp9": (PATHS, {"source": "medium"}, "140s", 45.0),
    "25-hours": (
        SLOW,
        {"fps": 5, "min_rate": "80kbps", "start_rate": "80kbps", "max_rate": "96kbps"},
        f"{HOURS}h",
        180.0,
    ),
}
"""Paths, flow, duration, and the seconds it may take."""


def scenario(name: str) -> Scenario:
    """The scenario of a case."""
    paths, flow, duration, _ = CASES[name]
    return Scenario.model_validate(
        {"name": name, "duration": duration, "paths": paths, "flows": [{**FLOW, **flow}]}
    )


def measure(name: str) -> dict[str, Any]:
    """Run a case once."""
    begin, cpu = time.perf_counter(), time.process_time()
    summary = simulate(scenario(name), seed=1).summary
    row = summary["flows"]["video"]
    return {
        "case": name,
        "seconds": time.perf_counter() - begin,
        "cpu_seconds": time.process_time() - cpu,
        "limit_seconds": CASES[name][3],
        "simulated_seconds": row["duration_s"],
        "packets": row["packets_count"],
        "frames_encoded": row["frames_encoded_count"],
        "frames_decoded": row["frames_decoded_count"],
        "events_sha256": summary["events_sha256"],
    }


def main(cases: Sequence[str], json_file: Path | None) -> None:
    """Measure and print."""
    print(machine())
    results = [measure(name) for name in cases]
    print_table(
        "Simulator, one process",
        ("case", "simulated s", "took s", "CPU s", "at most s", "packets", "frames", "decoded"),
        [
            (
                row["case"],
                f"{row['simulated_seconds']:.0f}",
                f"{row['seconds']:.1f}",
                f"{row['cpu_seconds']:.1f}",
                f"{row['limit_seconds']:.0f}",
                str(row["packets"]),
                str(row["frames_encoded"]),
                str(row["frames_decoded"]),
            )
            for row in results
        ],
    )
    if json_file is not None:
        json_file.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", default=",".join(CASES), help="comma-separated cases")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    main(options.cases.split(","), options.json)
