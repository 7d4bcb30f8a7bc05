"""`streamd demo`: the same video over the same link, Classic and L4S, at the same time."""

import asyncio
import contextlib
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.live import Live

from streamd.errors import ConfigError
from streamd.stack import demo_view
from streamd.stack.chain import Chain, ChainPlan
from streamd.stack.process import Record
from streamd.stack.result import join

REPORT_INTERVAL = 0.5
REFRESH = 0.5
LINE_EVERY = 5.0
"""Between lines where there is no terminal (s)."""
ECN = {"classic": "notect", "l4s": "ect1"}


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """What a user can choose; the defaults are the video paper's set-up."""

    seconds: float = 30.0
    trace: str = "lte"
    """A Mahimahi trace, a rate, or the name of a built-in trace."""
    source: str = "medium"
    codec: str = "vp9"
    controller: str = "scream"
    delay_ms: float = 10.0
    """One way; the round trip is twice this."""
    loss: float = 0.0
    queue: str = "dualpi2"
    queue_args: tuple[str, ...] = ("packets=100", "mode=linux")
    seed: int = 1
    json_file: Path | None = None


def plans(options: DemoOptions) -> list[ChainPlan]:
    """The command lines of both chains: equal but for the codepoint."""
    report = ("--report-interval", f"{REPORT_INTERVAL}s", "--seed", str(options.seed))
    queue_args = [part for arg in options.queue_args for part in ("--queue-arg", arg)]
    link = (
        *("--uplink", options.trace, "--delay", f"{options.delay_ms}ms"),
        *("--loss", str(options.loss), "--queue", options.queue, *queue_args),
        *report,
    )
    return [
        ChainPlan(
            name,
            sender=(
                *("--source", options.source, "--codec", options.codec, "--loop"),
                *("--controller", options.controller, "--ecn", ecn, *report),
            ),
            bottleneck=link,
            receiver=report,
        )
        for name, ecn in ECN.items()
    ]


async def demo(options: DemoOptions) -> dict[str, Record]:
    """Run both chains and return their results by name. StartupError if one does not start."""
    if options.seconds <= 0:
        raise ConfigError(f"a demo of {options.seconds} s shows nothing")
    with tempfile.TemporaryDirectory(prefix="streamd-demo-") as folder:
        chains = [Chain(plan, Path(folder)) for plan in plans(options)]
        try:
            await asyncio.gather(*(chain.start() for chain in chains))
            await _watch(chains, options.seconds)
            results = await asyncio.gather(*(chain.finish() for chain in chains))
        finally:
            for chain in chains:
                chain.kill()
    return {
        chain.plan.name: join(result, ecn_capable=ECN[chain.plan.name] != "notect")
        for chain, result in zip(chains, results, strict=True)
    }


def run(options: DemoOptions) -> int:
    """Run, print the table, write the JSON; the exit code. StreamdError if it cannot run."""
    results = asyncio.run(demo(options))
    demo_view.console().print(demo_view.final(results))
    if options.json_file is not None:
        options.json_file.write_text(json.dumps(results, indent=2) + "\n")
    return 0


async def _watch(chains: Sequence[Chain], seconds: float) -> None:
    """Show the figures until the time is over or a daemon ends."""
    loop = asyncio.get_running_loop()
    start = loop.time()
    console = demo_view.console()
    next_line = LINE_EVERY
    live = (
        Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None
    )
    with live if live is not None else contextlib.nullcontext():
        while (elapsed := loop.time() - start) < seconds:
            reports = {
                chain.plan.name: {role: process.report for role, process in chain.processes.items()}
                for chain in chains
            }
            if live is not None:
                live.update(demo_view.live(reports, elapsed, seconds), refresh=True)
            elif elapsed >= next_line:
                next_line += LINE_EVERY
                console.print(demo_view.line(reports, elapsed), highlight=False, soft_wrap=True)
            if not all(p.running for chain in chains for p in chain.processes.values()):
                return
            await asyncio.sleep(min(REFRESH, seconds - elapsed))
