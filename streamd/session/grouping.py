"""Frames of a stream without our header extension: by timestamp, marker and numbers.

Any other sender: packets of one timestamp that follow each other without a gap are a
frame, ended by the marker or by the next timestamp. Whether a frame is whole is only
known when the packet before it is there too, so a packet that stays missing holds
everything up; it is given up once `MAX_WAIT` packets or `MAX_AGE` seconds have passed it.
What a gap cost is at least one frame: numbers skip one, and decoding waits for a key frame.
"""

from streamd.errors import WireError
from streamd.wire.payload import PayloadFormat

MAX_WAIT = 256
"""Packets behind a missing one after which it is given up."""
MAX_AGE = 0.5
"""So it is when the oldest packet behind it has waited for so long (s)."""
MAX_HELD = 4096
"""Packets held at all; a frame of more cannot be."""


class GroupedFrame:
    """A whole frame."""

    __slots__ = ("data", "keyframe", "number", "rtp_time")

    def __init__(self, number: int, rtp_time: int, data: bytes, keyframe: bool) -> None:
        self.number = number
        self.rtp_time = rtp_time
        self.data = data
        self.keyframe = keyframe


class FrameGrouper:
    """Takes packets of one stream in any order."""

    def __init__(self, form: PayloadFormat) -> None:
        self._form = form
        self._held: dict[int, tuple[int, bool, bytes, float]] = {}
        self._next: int | None = None
        """Number of the packet the next frame begins with."""
        self._number = 0
        self.gaps = 0
        """Times packets were given up."""

    @property
    def frames_seen(self) -> int:
        """Frames that are known to exist."""
        return self._number

    def add(
        self, seq: int, timestamp: int, marker: bool, payload: bytes, now: float
    ) -> list[GroupedFrame]:
        """Take a packet with its unwrapped number; the frames it completes, in order.

        Raises WireError for a frame that contradicts itself; it counts as a gap.
        """
        if self._next is None:
            self._next = seq
        if seq < self._next:
            return []
        self._held[seq] = (timestamp, marker, payload, now)
        frames = []
        while (frame := self._take()) is not None:
            frames.append(frame)
        if self._held and self._overdue(now):
            self._give_up()
            while (frame := self._take()) is not None:
                frames.append(frame)
        return frames

    def _take(self) -> GroupedFrame | None:
        """The next frame if it is whole."""
        held, seq = self._held, self._next
        first = held.get(seq) if seq is not None else None
        if seq is None or first is None:
            return None
        timestamp, end = first[0], seq
        while (packet := held.get(end)) is not None:
            if packet[0] != timestamp:
                return self._join(seq, end, timestamp)
            end += 1
            if packet[1]:
                return self._join(seq, end, timestamp)
        return None

    def _join(self, begin: int, end: int, timestamp: int) -> GroupedFrame:
        parts = [self._held.pop(seq)[2] for seq in range(begin, end)]
        self._next = end
        number, self._number = self._number, self._number + 1
        try:
            keyframe = any(self._form.describe(part).keyframe for part in parts)
            return GroupedFrame(number, timestamp, self._form.join(parts), keyframe)
        except WireError:
            self.gaps += 1
            raise

    def _overdue(self, now: float) -> bool:
        held = self._held
        oldest = min(entry[3] for entry in held.values()) if len(held) <= MAX_WAIT else now
        return len(held) > MAX_WAIT or now - oldest > MAX_AGE

    def _give_up(self) -> None:
        """Go on at the first frame that begins after the missing packet."""
        held = sorted(self._held)
        start = self._next or 0
        if held[0] == start and len(held) < MAX_HELD and held[-1] - start + 1 == len(held):
            return  # nothing is missing: a large frame, or a slow one
        self.gaps += 1
        self._number += 1
        missing = next(seq for seq in range(start, held[-1]) if seq not in self._held)
        for seq in held:
            if seq < missing:
                del self._held[seq]
        after = [seq for seq in held if seq > missing]
        begin = self._beginning(after)
        for seq in after:
            if seq < begin:
                del self._held[seq]
        self._next = begin

    def _beginning(self, seqs: list[int]) -> int:
        """The first of these numbers that begins a frame, or the one after the last."""
        for before, seq in zip([None, *seqs], seqs, strict=False):
            if before is None or seq != before + 1:
                continue
            earlier, here = self._held[before], self._held[seq]
            if earlier[1] or earlier[0] != here[0]:
                return seq
        return seqs[-1] + 1
