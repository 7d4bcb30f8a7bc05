"""The ground truth of a run: what happened to every frame and packet, in compact columns.

Theory of operation. A table collects rows as tuples; every few thousand of them
are turned into columns, which are hashed and kept. So the digest covers every row
of a run of any length, while what is kept is bounded. Rows stand in the order in
which they became known, which is the same in every run of the same scenario and
seed. Columns are hashed as little-endian bytes, texts by their number and once in
clear at the end.
"""

import hashlib
import sys
from array import array
from collections.abc import Mapping, Sequence
from typing import TypeAlias

Row = tuple[float | int, ...]
Column: TypeAlias = "array[float] | array[int]"

BLOCK = 4096
"""Rows hashed at a time."""
DEFAULT_LIMIT = 2_000_000
"""Rows kept of one table; later ones are hashed and counted."""


class EventTable:
    """Rows of one kind."""

    def __init__(self, name: str, columns: Mapping[str, str], *, limit: int) -> None:
        """`columns`: type codes of `array` by name."""
        self.name = name
        self._rows: list[Row] = []
        self.add = self._rows.append
        """Take one row; `settle` must be called now and then."""
        self._limit = limit
        self._columns: dict[str, Column] = {key: array(code) for key, code in columns.items()}
        self._digest = hashlib.sha256(f"{name}:{','.join(columns)}".encode())
        self.count = 0
        """Rows settled."""

    def settle(self, *, final: bool = False) -> None:
        """Hash and keep full blocks; with `final` also the rest."""
        rows = self._rows
        while len(rows) >= BLOCK or (final and rows):
            block = rows[:BLOCK]
            del rows[:BLOCK]
            self._take(block)

    def _take(self, block: Sequence[Row]) -> None:
        room = max(0, self._limit - self.count)
        self.count += len(block)
        for column, values in zip(self._columns.values(), zip(*block, strict=True), strict=True):
            packed = array(column.typecode, values)
            if sys.byteorder == "big":
                swapped = array(column.typecode, packed)
                swapped.byteswap()
                self._digest.update(swapped.tobytes())
            else:
                self._digest.update(packed.tobytes())
            column.extend(packed[:room])

    @property
    def not_kept(self) -> int:
        """Rows that are in the digest only."""
        return max(0, self.count - self._limit)

    def columns(self) -> dict[str, Column]:
        """The rows kept."""
        return dict(self._columns)

    def digest(self) -> bytes:
        """Of all rows settled."""
        return self._digest.digest()


class Names:
    """Texts by number, in the order in which they were first seen."""

    def __init__(self, first: Sequence[str] = ()) -> None:
        self._numbers = {name: number for number, name in enumerate(first)}

    def number(self, name: str) -> int:
        """The number of a text; a new one for a new text."""
        return self._numbers.setdefault(name, len(self._numbers))

    def texts(self) -> list[str]:
        """All of them, by number."""
        return list(self._numbers)


class EventLog:
    """All tables of a run. Times are seconds since its start, sizes IP bytes unless said."""

    def __init__(
        self, flows: Sequence[str], paths: Sequence[str], *, limit: int = DEFAULT_LIMIT
    ) -> None:
        self.flows = list(flows)
        self.paths = list(paths)
        self.fates = Names(("delivered",))
        self.marks = Names(("",))
        self.frames = self._table(
            "frames",
            limit,
            {
                **{"flow": "H", "frame": "q", "captured_at": "d", "queued_at": "d"},
                **{"size": "I", "keyframe": "B", "target_bps": "d"},
                **{"repair": "B", "quantizer": "b", "first_seq": "q", "packets": "I"},
            },
        )
        """Handed to the session; `frame` counts from 0, `size` is that of the bitstream. `repair`:
        predicted from a long-term reference alone. `quantizer` 0 to 63, -1 where unknown."""
        self.shown = self._table(
            "shown",
            limit,
            {"flow": "H", "frame": "q", "completed_at": "d", "decoded_at": "d", "pictures": "B"},
        )
        """Frames that went into the decoder."""
        self.packets = self._table(
            "packets",
            limit,
            {
                **{"flow": "H", "path": "B", "media": "B", "seq": "H", "size": "H"},
                **{"sent_at": "d", "dequeued_at": "d", "departed_at": "d", "ended_at": "d"},
                **{"ecn_in": "B", "ecn_out": "B", "mark": "H", "fate": "H"},
            },
        )
        """Out of a path or dropped; `ended_at` is when. `dequeued_at` of one dropped before the
        link is NaN. `seq` as on the wire, 0 unless `media`."""
        self.decisions = self._table(
            "decisions",
            limit,
            {
                **{"flow": "H", "time_s": "d", "target_bps": "d", "keyframe": "B"},
                **{"cwnd_bytes": "d", "in_flight_bytes": "q"},
            },
        )
        """Rate for the next frame; `cwnd_bytes` NaN where the controller has no window."""
        self.feedback = self._table(
            "feedback", limit, {"flow": "H", "time_s": "d", "rtt_s": "d", "queue_delay_s": "d"}
        )
        """Reports taken by the sender, and what its controller believes then; NaN for nothing."""
        self._tables = (self.frames, self.shown, self.packets, self.decisions, self.feedback)

    @staticmethod
    def _table(name: str, limit: int, columns: Mapping[str, str]) -> EventTable:
        return EventTable(name, columns, limit=limit)

    def settle(self, *, final: bool = False) -> None:
        """To be called now and then, and once at the end."""
        for table in self._tables:
            table.settle(final=final)

    @property
    def not_kept(self) -> dict[str, int]:
        """By table: rows that are only in the digest."""
        return {table.name: table.not_kept for table in self._tables if table.not_kept}

    def sha256(self) -> str:
        """The digest of everything that happened."""
        digest = hashlib.sha256(b"streamd events 1\n")
        for texts in (self.flows, self.paths, self.fates.texts(), self.marks.texts()):
            digest.update(("\n".join(texts) + "\n\n").encode())
        for table in self._tables:
            digest.update(table.digest())
        return digest.hexdigest()
