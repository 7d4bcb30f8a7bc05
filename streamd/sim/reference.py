"""Writes docs/scenarios.md from the models: `python -m streamd.sim.reference FILE`."""

import sys
from collections.abc import Iterator
from pathlib import Path

from streamd.config.docs import metavar, written_default
from streamd.sim.model import FlowSpec, PathSpec, Scenario, Table

_HEAD = """# Scenarios

Generated from the code by `make docs`; do not edit.

A scenario is a TOML file that says what is simulated: paths, the flows over them, and for how
long.

```toml
name = "l4s-12mbps"
duration = "30s"

[paths.up]
capacity = "12Mbps"
queue = "dualpi2"
queue_options = { packets = 100, mode = "linux" }
delay = "10ms"

[paths.down]
delay = "10ms"

[[flows]]
name = "video"
up = "up"
down = "down"
ecn = "ect1"
source = "synthetic"
fps = 50
```

`streamd sim FILE [--seed N] [--json FILE]` runs it, prints a table and writes the results.
Everything in them is a function of the scenario, the seed and the version of streamd:
`events_sha256` is the digest of every frame, packet, decision and report of the run. With synthetic
frames it is the same on every supported Python; video also depends on the codec library, and
`encode_time = "measured"` on the moment.

Values take units as in [config.md](config.md): `12Mbps`, `20ms`, `1%`; a bare number is in bit/s,
seconds or bytes. A trace is found as from where the command runs. Unknown keys are errors; all
that is wrong is reported at once, with file and line.

A run: each flow's source starts and stops at its time, or at the end of the scenario; then its
sender drains for up to two seconds, says BYE, and a quarter of a second later its receiver ends.
Encoding takes the modelled time, on one thread per flow: a frame that is still being encoded at
the next tick costs that tick. Everything else takes no time, but for `wake_time`. Flows share a
path by naming it.
Every random choice draws from a generator of its own, named after the seed and its place: another
flow or path does not change what the others draw.

The warm-up is left out of rates, percentiles and freezes; counts of frames, packets, marks and
drops are of the whole run.

In Python: `load_scenario(path)` or `Scenario.model_validate(dict)` from `streamd.sim.scenario`,
then `simulate(scenario, seed=1)` from `streamd.sim.world`. The result has `summary` (as the JSON
file) and `tables()`, columns of `frames`, `packets`, `marks`, `drops`, `decisions`, `feedback`
and a `series` of 100 ms bins. `streamd.sim.live.run` runs a scenario of one flow as real
processes and gives the same summary.

## Results

`scenario`, `seed`, `events_sha256`; `flows` by name, with the keys of [results.md](results.md)
and the ones below; `paths` by name, with queue delay (`queue_delay_p50_s`, ...) of the media of
all flows and the link's counts.

| key of a flow | meaning |
|---|---|
| `queue_delay_tool_p50_s`, `_p95_s` | the queue delay as the SCReAM BW tool prints it: an \
average with weight 0.98 on the past per tick (100 ms, in profile 2026-03-04 50 ms), taken every \
2 s in whole ms. Never to be compared with true sojourn |
| `delivered_bps` | IP bits of media that left the link, per second |
| `link_loss_ratio` | the flow's own packets dropped on its uplink over those it sent; drops and \
marks by cause are the link's |
| `duration_s` | from the first frame to the end of the source |
| `packets_count`, `feedback_reports_count` | media packets sent, reports taken |
| `circuit_breaker_count` | times the circuit breaker bounded the rate |
| `frames_skipped_count` | ticks without a picture because the encoder was busy |
| `encode_mean_s` | modelled or measured time per encoded frame |
| `exit_codes` | empty: there are no processes |
"""


def reference() -> str:
    """The whole page."""
    parts = [_HEAD]
    for title, model in (
        ("The scenario", Scenario),
        ("`[paths.NAME]`: one direction of a link", PathSpec),
        ("`[[flows]]`: a sender and its receiver", FlowSpec),
    ):
        parts.append("\n".join(_section(title, model)))
    return "\n".join(parts)


def _section(title: str, model: type[Table]) -> Iterator[str]:
    yield f"## {title}\n"
    yield "| key | value | default | meaning |"
    yield "|---|---|---|---|"
    for key, field in model.model_fields.items():
        if key in ("paths", "flows"):
            continue
        if field.is_required():
            default = "needed"
        elif field.default_factory is not None or field.default is None:
            default = ""
        else:
            default = f"`{written_default(field)}`"
        form = "table" if field.default_factory is not None else metavar(field)
        yield _row(f"`{key}`", form, default, field.description or "")
    yield ""


def _row(*cells: str) -> str:
    escaped = (cell.replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(escaped)} |"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(reference(), encoding="utf-8")
