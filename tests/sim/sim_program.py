"""Prints the digest of a scenario file: run in a process of its own by the determinism test."""

import sys
from pathlib import Path

from streamd.sim.scenario import load_scenario
from streamd.sim.world import simulate

if __name__ == "__main__":
    result = simulate(load_scenario(Path(sys.argv[1])), seed=int(sys.argv[2]))
    print(result.summary["events_sha256"])
