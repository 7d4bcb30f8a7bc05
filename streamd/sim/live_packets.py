"""The packets of a live run, from the record its bottleneck writes."""

import csv
from array import array
from collections.abc import Iterable, Mapping
from math import nan
from pathlib import Path
from typing import Any

_TYPES = {
    **{"flow": "H", "path": "B", "media": "B", "size": "H"},
    **{"sent_at": "d", "dequeued_at": "d", "departed_at": "d", "ecn_in": "B", "ecn_out": "B"},
}


def read_packets(file: Path, *, path: int) -> dict[str, Any]:
    """The record as columns of the simulator's table `packets`; `path` is the uplink's number.

    Times are from the first packet's arrival at the bottleneck. What a daemon cannot know is
    no column: sequence numbers, when a packet arrived at the far side, which queue marked it.
    """
    with file.open(newline="", encoding="utf-8") as lines:
        return packet_columns(csv.DictReader(lines), path=path)


def packet_columns(rows: Iterable[Mapping[str, str]], *, path: int) -> dict[str, Any]:
    """As `read_packets`, of rows that are read already."""
    columns: dict[str, Any] = {name: array(kind) for name, kind in _TYPES.items()}
    fates: list[str] = []
    for row in rows:
        columns["flow"].append(0)
        columns["path"].append(path)
        columns["media"].append(row["media"] == "True")
        columns["size"].append(int(row["size_bytes"]))
        columns["sent_at"].append(float(row["arrived_s"]))
        columns["dequeued_at"].append(float(row["dequeued_s"] or nan))
        columns["departed_at"].append(float(row["departed_s"]))
        columns["ecn_in"].append(int(row["ecn_in"]))
        columns["ecn_out"].append(int(row["ecn_out"]))
        fates.append(row["fate"])
    begin = min(columns["sent_at"], default=0.0)
    for name in ("sent_at", "dequeued_at", "departed_at"):
        columns[name] = array("d", [value - begin for value in columns[name]])
    return {**columns, "fate": fates}
