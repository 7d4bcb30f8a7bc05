"""Same scenario and seed, same events: in other processes, with other hashes of strings."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from streamd.sim.scenario import load_scenario
from streamd.sim.world import simulate

GOLDEN = Path(__file__).parents[1] / "golden"
SCENARIO = GOLDEN / "sim-short.toml"
PROGRAM = Path(__file__).with_name("sim_program.py")
HASH = (GOLDEN / "sim-short.sha256").read_text().strip()
"""Of seed 1. A change of the protocol, a controller or a queue changes it too: then write the new
one, printed by `python tests/sim/sim_program.py tests/golden/sim-short.toml 1`."""


@pytest.mark.parametrize("hash_seed", ["0", "4711"])
def test_a_process_with_another_hash_seed_gives_the_kept_digest(hash_seed: str) -> None:
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(SCENARIO), "1"],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == HASH


def test_another_seed_gives_other_events() -> None:
    scenario = load_scenario(SCENARIO)
    assert simulate(scenario, seed=2).summary["events_sha256"] != HASH


def test_summaries_are_equal_too_and_the_limit_of_rows_changes_nothing() -> None:
    scenario = load_scenario(SCENARIO)
    whole, short = simulate(scenario, seed=1), simulate(scenario, seed=1, event_limit=100)
    assert whole.summary == short.summary
    assert len(short.tables()["packets"]["seq"]) == 100
