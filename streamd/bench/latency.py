"""Latency of a frame over an idle link, and how punctual the bottleneck is.

Real VP9 straight from sender to receiver on loopback, 30 fps: capture to
decoded picture. And a trace of one opportunity per millisecond (12 Mbps) under
11 Mbps of load: scheduled departure against the moment it was handed to the
socket. `python -m streamd.bench.latency`.
"""

import argparse
import asyncio
import tempfile
from pathlib import Path

from streamd.bench.direct import direct
from streamd.bench.link import spread
from streamd.bench.table import machine, print_table
from streamd.stack.chain import Chain, ChainPlan
from streamd.stack.process import Record


async def frame_latency(seconds: float, codec: str) -> Record:
    """The receiver's summary of one stream without a bottleneck."""
    options = ("--source", "medium", "--codec", codec, "--ecn", "ect1", "--max-rate", "2Mbps")
    async with direct(*options) as pair:
        await asyncio.sleep(seconds)
    return pair.results["receiver"]


async def lateness(seconds: float) -> Record:
    """The bottleneck's summary under steady load."""
    with tempfile.TemporaryDirectory(prefix="streamd-bench-") as folder:
        trace = Path(folder) / "12mbps.trace"
        trace.write_text("1\n")
        plan = ChainPlan(
            "lateness",
            sender=("--source", "synthetic", "--fps", "50", "--rate", "11Mbps"),
            bottleneck=("--uplink", str(trace), "--delay", "10ms", "--queue", "droptail"),
        )
        chain = Chain(plan, Path(folder))
        try:
            await chain.start()
            await asyncio.sleep(seconds)
            return (await chain.finish()).bottleneck
        finally:
            await chain.kill()


async def main(runs: int, seconds: float) -> None:
    """Print both tables."""
    print(machine())
    rows = []
    for codec in ("vp9", "vp8", "h264"):
        results = [await frame_latency(seconds, codec) for _ in range(runs)]
        columns = ("frame_latency_p50_s", "frame_latency_p95_s", "frame_latency_p99_s")
        rows.append([codec, *(spread([r[key] for r in results], 1e3, 1) for key in columns)])
    print_table(
        f"Capture to decoded over an idle link, 30 fps, up to 2 Mbps, ms: median (range) of {runs}",
        ("codec", "p50", "p95", "p99"),
        rows,
    )
    late = [(await lateness(seconds))["lateness_p99_s"] for _ in range(runs)]
    print_table(
        f"Departures behind the trace, 12 Mbps, ms: median (range) of {runs}",
        ("p99",),
        [[spread(late, 1e3, 3)]],
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=12.0)
    options = parser.parse_args()
    asyncio.run(main(options.runs, options.seconds))
