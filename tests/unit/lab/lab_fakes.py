"""Experiments and runs that need no simulator."""

import os
import signal
from array import array
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

from streamd.lab.execute import Execute, Outcome, Output, attempt
from streamd.lab.experiment import Experiment, Kind, parse
from streamd.lab.grid import Choices, Grid, Job, build

EXPERIMENT = """\
name = "small"
title = "Classic <against> L4S"
runs = 3
compare = "mode"
metrics = ["tx_bps", "freeze_count"]

[default]
arm = ["weak"]

[scenario]
name = "s"
duration = "10s"

[scenario.paths.up]
capacity = "12Mbps"
queue_options = { mode = "mahimahi" }

[[scenario.flows]]
name = "video"
ecn = "notect"

[parameters.arm.right]
"paths.up.queue_options.gain" = 1

[parameters.arm.weak]
"paths.up.queue_options.gain" = 0.25

[parameters.mode.classic]
"flows.video.ecn" = "notect"

[parameters.mode.l4s]
"flows.video.ecn" = "ect1"

[[published]]
metric = "tx_bps"
at = { mode = "classic" }
value = 3e6

[[published]]
metric = "tx_bps"
at = { mode = "l4s" }
value = 1.7e6

[[figures]]
name = "boxes"
title = "Boxes"
kind = "boxes"
metrics = ["tx_bps"]

[[figures]]
name = "series"
title = "Series"
kind = "series"
panels = [{ label = "rate (Mbps)", columns = ["tx_bps", "rx_bps"], scale = 1e-6 }]
"""


def experiment(text: str = EXPERIMENT) -> Experiment:
    """The small experiment, or another from its text."""
    return parse(text, "small.toml", Path())


def accept(kind: Kind, config: dict[str, Any]) -> None:
    """A check that finds nothing wrong."""


def grid(choices: Choices | None = None, text: str = EXPERIMENT) -> Grid:
    """The grid of an experiment: three seeds of two modes, unless chosen otherwise."""
    return build(experiment(text), choices or Choices(), accept)


def run_fake(job: Job) -> Output:
    """Tx rates of 3.1, 3.2, 3.3 Mbps for Classic, 1.1, 1.2, 1.3 for L4S; no freezes known."""
    start = 3_000_000.0 if job.at["mode"] == "classic" else 1_000_000.0
    flow = {"tx_bps": start + 100_000.0 * job.seed, "freeze_count": None}
    summary = {"seed": job.seed, "events_sha256": f"{job.seed:064x}", "flows": {"video": flow}}
    series = {
        "time_s": array("d", [0.0, 0.1]),
        "tx_bps": [1e6, None],
        "rx_bps": array("d", [1e6, 2e6]),
    }
    return Output(summary, {"series": series, "drops": {"at_s": array("d")}})


def run_or_raise(job: Job) -> Output:
    """The second seed of L4S raises."""
    if (job.at["mode"], job.seed) == ("l4s", 2):
        raise ValueError("no such thing as seed 2")
    return run_fake(job)


def run_or_die(job: Job) -> Output:
    """The second seed of L4S takes its process with it."""
    if (job.at["mode"], job.seed) == ("l4s", 2):
        os.kill(os.getpid(), signal.SIGKILL)
    return run_fake(job)


def run_or_wait(job: Job) -> Output:
    """The third seed waits until somebody opens and closes the pipe named in the environment."""
    if job.seed == 3:
        Path(os.environ["LAB_TEST_FIFO"]).read_bytes()
    return run_fake(job)


class InLine:
    """A backend in this process that says what it was given."""

    def __init__(self, execute: Execute) -> None:
        self._execute = execute
        self.given: list[tuple[str, int]] = []
        self.closed = False

    def run(self, jobs: Sequence[Job]) -> Generator[Outcome, None, None]:
        """See `Backend.run`."""
        try:
            for job in jobs:
                self.given.append((job.at["mode"], job.seed))
                yield attempt(self._execute, job)
        finally:
            self.closed = True
