"""The codec benchmark: how the encoders follow their rate, and what they cost.

`python -m streamd.bench.codec [--quick] [--json FILE] [--start N] [--clips DIR]`
measures targets 1 to 9 of the codec facts on the built-in clips and, where a
folder has them, on recorded ones.  Everything but target 8 and memory is counted
in frames and the same on every machine; CPU figures carry no verdict.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from streamd.bench.child import run_child
from streamd.bench.codec_figures import Figure, figures, measure, up_figures
from streamd.bench.codec_inputs import CIF, built_in, recorded, recorded_folder
from streamd.bench.codec_steps import (
    FPS,
    SEGMENT,
    Pictures,
    Step,
    chain_targets,
    encode_all,
    encode_with,
    steps_of,
)
from streamd.bench.table import machine, print_table
from streamd.media.libvpx import VpxEncoder
from streamd.media.pyav_codec import PyavDecoder, X264Encoder

CODECS = ("vp9", "vp8")
START = 29
"""Encoding is the same at every run; another start frame is another sample."""
LARGE = (704, 576)
LARGE_RATES = (1_000_000.0, 2_000_000.0, 5_000_000.0)
H264_RATES = (600_000.0, 150_000.0, 1_500_000.0, 300_000.0, 3_000_000.0)
CPU_FRAMES = 300
CPU_BPS = 1_000_000.0
RATE_CHANGES = 2000


def rate_figures(codec: str, clips: dict[str, Pictures]) -> list[Figure]:
    """Targets 1 to 7 over all clips of one set."""
    steady = {name: clip for name, clip in clips.items() if name not in ("bikes", "low")}
    return list(figures(codec, measure(codec, clips, steady)))


def large_figures(codec: str, clips: dict[str, Pictures]) -> list[Figure]:
    """Up steps to 5 Mbit/s, which take more than CIF to be filled."""
    steps: list[Step] = []
    for clip in clips.values():
        tally = encode_with(codec, clip, chain_targets(LARGE_RATES))
        steps += [s for s in steps_of(tally) if s.to_bps == LARGE_RATES[-1]]
    return list(up_figures(3, steps, prefix="to_5mbps_", worst=0.8))


def cpu_figures(codec: str, clip: Pictures) -> Iterator[Figure]:
    """Median CPU seconds of one CIF frame at 1 Mbit/s, and of one change of the rate."""
    encoder = VpxEncoder(codec, *CIF, FPS, start_bps=CPU_BPS)
    tally = encode_all(encoder, clip, [CPU_BPS] * CPU_FRAMES)
    yield Figure(8, "encode_cpu_median_s", statistics.median(tally.encode_s))
    begin = time.thread_time()
    for number in range(RATE_CHANGES):
        encoder.set_rate(CPU_BPS + 1000 * (number % 2 + 1))
    yield Figure(8, "set_rate_cpu_mean_s", (time.thread_time() - begin) / RATE_CHANGES)
    encoder.close()
    yield Figure(8, "decode_cpu_median_s", _decode_cost(codec, clip))


def _decode_cost(codec: str, clip: Pictures) -> float:
    encoder = VpxEncoder(codec, *CIF, FPS, start_bps=CPU_BPS)
    decoder = PyavDecoder(codec)
    costs = []
    for number in range(CPU_FRAMES):
        frame = encoder.encode(clip[number % len(clip)], target_bps=CPU_BPS, keyframe=False)
        if frame is not None:
            begin = time.thread_time()
            decoder.decode(frame[0])
            costs.append(time.thread_time() - begin)
    encoder.close()
    return statistics.median(costs)


def memory_figures(codec: str, frames: int) -> Iterator[Figure]:
    """Target 9, and target 1's ten thousand changes of the rate."""
    counts = run_child("streamd.bench.codec_child", "memory", codec, str(frames))
    yield Figure(1, "rate_changes_count", counts["frames_count"])
    yield Figure(1, "rate_changes_keyframes_count", counts["keyframes_count"], low=1, high=1)
    yield Figure(9, "stream_growth_bytes", counts["stream_growth_bytes"], high=2e6)
    yield Figure(9, "cycle_growth_bytes", counts["cycle_growth_bytes"], high=2e6)


def h264_figures(clip: Pictures) -> Iterator[Figure]:
    """How libx264 follows the sequence of rates it was first measured with."""
    encoder = X264Encoder(*CIF, FPS, max_bps=5e6)
    decoder = PyavDecoder("h264")
    keyframes = 0
    encode_s: list[float] = []
    decode_s: list[float] = []
    late: dict[float, list[int]] = {rate: [] for rate in H264_RATES}
    for number in range(2 * SEGMENT * len(H264_RATES)):
        target = H264_RATES[number // (2 * SEGMENT)]
        marks = [time.thread_time()]
        frame = encoder.encode(clip[number % len(clip)], target_bps=target, keyframe=False)
        marks.append(time.thread_time())
        assert frame is not None  # libx264 never drops
        decoder.decode(frame[0])
        marks.append(time.thread_time())
        for costs, (begin, end) in zip((encode_s, decode_s), pairwise(marks), strict=True):
            costs.append(end - begin)
        keyframes += frame[1]
        if number % (2 * SEGMENT) >= FPS:
            late[target].append(len(frame[0]) * 8)
    yield Figure(0, "keyframes_count", keyframes, low=1, high=1)
    for rate, sizes in late.items():
        yield Figure(
            0, f"late_mean_{rate / 1000:.0f}kbps_ratio", statistics.fmean(sizes) * FPS / rate
        )
    yield Figure(0, "encode_cpu_median_s", statistics.median(encode_s))
    yield Figure(0, "decode_cpu_median_s", statistics.median(decode_s))


def show(title: str, prefix: str, measured: list[Figure], results: dict[str, float]) -> None:
    """One table; the figures also go into `results` with `prefix`."""
    verdicts: dict[bool | None, str] = {None: "", True: "holds", False: "MISSES"}
    rows = [
        (str(f.target or "-"), f.key, f"{f.value:.6g}", f.bounds, verdicts[f.holds])
        for f in measured
    ]
    print_table(title, ("target", "figure", "measured", "bounds", ""), rows)
    results.update({f"{prefix}_{f.key}": f.value for f in measured})


def run(options: argparse.Namespace) -> dict[str, float]:
    """Everything, with a table after each part."""
    results: dict[str, float] = {}
    print(machine())
    sets: dict[str, Callable[[tuple[int, int]], dict[str, Any]]] = {
        "built_in": lambda size: {
            name: built_in(name, size, options.start) for name in ("medium", "high", "low")
        },
        "recorded": lambda size: recorded(options.clips, size, options.start),
    }
    for name, load in sets.items():
        clips = load(CIF)
        if not clips:
            print(f"\nno recorded clips in {options.clips}: left out")
            continue
        if options.quick:
            clips = dict(list(clips.items())[:1])
        for codec in CODECS:
            title = f"{codec} on {name.replace('_', '-')} clips: {'; '.join(clips)}"
            show(title, f"{codec}_{name}", rate_figures(codec, clips), results)
        if not options.quick and name == "recorded":
            large = load(LARGE)
            for codec in CODECS:
                show(f"{codec} at 704x576", f"{codec}_{name}", large_figures(codec, large), results)
    _run_costs(options.quick, results)
    return results


def _run_costs(quick: bool, results: dict[str, float]) -> None:
    clip = built_in("medium")
    for codec in CODECS:
        show(f"{codec} cost on medium", codec, list(cpu_figures(codec, clip)), results)
        frames = 2000 if quick else 10_000
        show(f"{codec} memory", codec, list(memory_figures(codec, frames)), results)
    show("h264 on medium", "h264", list(h264_figures(clip)), results)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="one clip of each set, fewer frames")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    parser.add_argument("--start", type=int, default=START, help="first frame of every clip")
    parser.add_argument("--clips", type=Path, default=recorded_folder(), help="recorded clips")
    options = parser.parse_args()
    results = run(options)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
