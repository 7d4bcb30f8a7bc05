"""`streamd demo`: the same video over the same link, Classic and L4S, at the same time."""

import asyncio
import contextlib
import os
import signal
import tempfile
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from rich.live import Live

from streamd.errors import ConfigError
from streamd.media.factory import CLIPS
from streamd.observability.results import check_writable, write_json
from streamd.stack import demo_view
from streamd.stack.chain import Chain, ChainPlan
from streamd.stack.process import Record

REPORT_INTERVAL = 0.5
REFRESH = 0.5
LINE_EVERY = 5.0
"""Between lines where there is no terminal (s)."""
LEFT_ALONE = 60.0
"""Longer than the demo's time a daemon does not live: nobody else ends it if we are killed (s)."""
ECN = {"classic": "notect", "l4s": "ect1"}

T = TypeVar("T")


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
    report = (
        *("--report-interval", f"{REPORT_INTERVAL}s", "--seed", str(options.seed)),
        *("--duration", f"{options.seconds + LEFT_ALONE}s"),
    )
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
            receiver=(*_reference(options), *report),
        )
        for name, ecn in ECN.items()
    ]


def _reference(options: DemoOptions) -> tuple[str, ...]:
    """What the receiver compares with: a film it can open as well, which no device is."""
    film = options.source in CLIPS or Path(options.source).is_file()
    return ("--reference", options.source) if film else ()


async def demo(options: DemoOptions) -> dict[str, Record]:
    """Run both chains and return their results by name.

    StartupError or ConfigError, as from the daemon, if one does not start.
    """
    if options.seconds <= 0:
        raise ConfigError(f"a demo of {options.seconds} s shows nothing")
    with tempfile.TemporaryDirectory(prefix="streamd-demo-") as folder:
        chains = [Chain(plan, Path(folder)) for plan in plans(options)]
        try:
            await _together([chain.start() for chain in chains])
            await _watch(chains, options.seconds)
            results = await _together([chain.finish() for chain in chains])
        finally:
            await asyncio.gather(*(chain.kill() for chain in chains))
    return {
        chain.plan.name: result.joined(ecn_capable=ECN[chain.plan.name] != "notect")
        for chain, result in zip(chains, results, strict=True)
    }


def run(options: DemoOptions) -> int:
    """Run, print the table, write the JSON; the exit code. StreamdError if it cannot run.

    SIGTERM and SIGHUP end the daemons too before they end this process.
    """
    if options.json_file is not None:
        check_writable(options.json_file)
    ended_by: list[int] = []
    try:
        results = asyncio.run(_until_signal(demo(options), ended_by))
    except asyncio.CancelledError:
        for number in ended_by:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        raise
    demo_view.console().print(demo_view.final(results))
    if options.json_file is not None:
        write_json(options.json_file, results)
    return 1 if any(code for row in results.values() for code in row["exit_codes"].values()) else 0


async def _together(work: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """All results in order; when one fails the others are cancelled before its error comes out."""
    tasks = [asyncio.ensure_future(each) for each in work]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def _until_signal(work: Coroutine[Any, Any, T], ended_by: list[int]) -> T:
    """The result of `work`; SIGTERM and SIGHUP cancel it and are put into `ended_by`."""
    loop = asyncio.get_running_loop()
    task = loop.create_task(work)

    def end(number: int) -> None:
        ended_by.append(number)
        task.cancel()

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            loop.add_signal_handler(number, end, number)
    return await task


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
