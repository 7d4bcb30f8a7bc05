"""CPU cost of the daemons as shipped: seconds per Gbit of UDP payload, on loopback.

Two real daemon processes without a bottleneck: SCReAM runs on every report but
is held at a constant rate (minimum = maximum), ECT(1) is set and read on every
packet, metrics are scraped once a second. Start-up and the first two seconds
are left out. `python -m streamd.bench.cpu`.
"""

import argparse
import asyncio
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from streamd.bench.direct import Direct, direct
from streamd.bench.table import machine, print_table

SETTLE = 2.0
PAYLOAD = 1188
"""With 24 bytes of RTP header and extension: 1212-byte datagrams."""
_NANOSECONDS = 1e9


@dataclass(frozen=True, slots=True)
class CpuRun:
    """One run; seconds of CPU per Gbit."""

    sender: float
    receiver: float
    rate_bps: float
    lost: int
    frames_lost: int


def cpu_seconds(pid: int) -> float:
    """User and system time of all threads of a process so far."""
    total = 0.0
    for task in Path(f"/proc/{pid}/task").iterdir():
        total += int((task / "schedstat").read_text().split()[0]) / _NANOSECONDS
    return total


async def scrape(url: str) -> str:
    """The metrics page of a daemon."""

    def fetch() -> str:
        with urllib.request.urlopen(f"http://{url}/metrics", timeout=5) as answer:
            return str(answer.read().decode())

    return await asyncio.to_thread(fetch)


def value(page: str, name: str) -> float:
    """One unlabelled sample of a metrics page."""
    for line in page.splitlines():
        if line.startswith(f"{name} "):
            return float(line.split()[1])
    raise LookupError(f"no metric {name}")


async def run_once(rate: str, seconds: float, *, fps: int = 50) -> CpuRun:
    """Stream at a constant rate for `seconds` after settling."""
    options = (
        *("--source", "synthetic", "--fps", str(fps), "--ecn", "ect1", "--mss", str(PAYLOAD)),
        *("--min-rate", rate, "--start-rate", rate, "--max-rate", rate),
    )
    async with direct(*options) as pair:
        await asyncio.sleep(SETTLE)
        before = await _sample(pair)
        for _ in range(round(seconds)):
            await asyncio.sleep(1.0)
            await asyncio.gather(scrape(pair.sender_http), scrape(pair.receiver_http))
        after = await _sample(pair)
    sent, got = pair.results["sender"], pair.results["receiver"]
    gbit = 8 * (after[2] - before[2]) / 1e9
    return CpuRun(
        (after[0] - before[0]) / gbit,
        (after[1] - before[1]) / gbit,
        gbit * 1e9 / (after[3] - before[3]),
        round(sent["packets_count"] - got["packets_count"]),
        got["frames_lost_count"] + got["frames_skipped_count"] + got["frames_undecodable_count"],
    )


async def _sample(pair: Direct) -> tuple[float, float, float, float]:
    page = await scrape(pair.sender_http)
    at = asyncio.get_running_loop().time()
    sent = value(page, "streamd_sender_bytes_total")
    return cpu_seconds(pair.sender.pid), cpu_seconds(pair.receiver.pid), sent, at


async def main(runs: int, seconds: float) -> None:
    """The table for 50 and 200 Mbps."""
    print(machine())
    rows = []
    for rate, count in (("50Mbps", runs), ("200Mbps", 1)):
        results = [await run_once(rate, seconds) for _ in range(count)]
        senders = sorted(r.sender for r in results)
        receivers = sorted(r.receiver for r in results)
        rows.append(
            (
                rate,
                f"{median(senders):.2f} ({senders[0]:.2f}-{senders[-1]:.2f})",
                f"{median(receivers):.2f} ({receivers[0]:.2f}-{receivers[-1]:.2f})",
                f"{median(r.rate_bps for r in results) / 1e6:.1f}",
                str(sum(r.lost for r in results)),
                str(sum(r.frames_lost for r in results)),
            )
        )
    print_table(
        "CPU-seconds per Gbit of UDP payload, median (range)",
        ("rate", "sender", "receiver", "Mbps sent", "packets lost", "frames lost"),
        rows,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=10.0)
    options = parser.parse_args()
    asyncio.run(main(options.runs, options.seconds))
