"""Writes docs/metrics.md from the code: `python -m streamd.observability.reference FILE`."""

import sys
from collections.abc import Iterator
from pathlib import Path

from streamd.observability.names import ALL, Metric

_HEAD = """# Metrics

Generated from the code by `make docs`; do not edit.

Every daemon serves `/metrics` in Prometheus' text format, on 127.0.0.1 unless `metrics_host` says
otherwise: the sender on port 9464, the receiver on 9465, the bottleneck on 9466. Beside it are
`/-/healthy` (200 while the process lives), `/-/ready` (200 when it does its work, else 503 and
a list of what is missing) and `/config` (the configuration in force).

Rates are in bytes per second, as Prometheus has it; dashboards multiply by 8. Counters start
at 0 with the process. Besides these there are the usual `process_*` and `python_*` metrics.
A congestion controller may add gauges of its own, named `streamd_cc_<name>` and labelled
`controller`.
"""

_GROUPS = (
    ("Every daemon", ("build", "session", "event_loop", "invalid", "socket")),
    ("Sender", ("sender", "cc")),
    ("Receiver", ("receiver",)),
    ("Bottleneck", ("link",)),
)
_SHOWN_KIND = {"info": "gauge, always 1"}


def reference() -> str:
    """The whole page."""
    parts = [_HEAD]
    for title, prefixes in _GROUPS:
        wanted = tuple(f"streamd_{prefix}" for prefix in prefixes)
        metrics = [metric for metric in ALL if metric.name.startswith(wanted)]
        parts.append("\n".join(_group(title, metrics)))
    return "\n".join(parts)


def _group(title: str, metrics: list[Metric]) -> Iterator[str]:
    yield f"## {title}\n"
    yield "| metric | kind | labels | meaning |"
    yield "|---|---|---|---|"
    for metric in metrics:
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        kind = _SHOWN_KIND.get(metric.kind, metric.kind)
        yield f"| `{metric.exposed}` | {kind} | {labels} | {metric.help} |"
    yield ""


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(reference(), encoding="utf-8")
