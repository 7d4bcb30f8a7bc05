"""Frames of a stream without our header extension: by timestamp, marker and numbers.

Any other sender: packets of one timestamp that follow each other without a gap are a
frame, ended by the marker or by the next timestamp. Whether a frame is whole is only
known when the packet before it is there too, so a packet that stays missing holds
everything up; it is given up once `MAX_WAIT` packets or `MAX_AGE` seconds have passed it.
What a gap cost is at least one frame: numbers skip one, and decoding waits for a key frame.
Of the packets behind a gap nobody knows whether they begin a frame, so the rest of
that frame is skipped. Every packet is looked at once, whatever order they come in.
"""

from streamd.errors import WireError
from streamd.wire.payload import PayloadFormat

MAX_WAIT = 256
"""Packets behind a missing one after which it is given up."""
MAX_AGE = 0.2
"""So it is when the first packet behind it has waited for so long (s)."""
MAX_HELD = 16384
"""Packets held at all; a frame of more cannot be."""
MAX_BYTES = 16 * 1024 * 1024
"""Bytes held at all."""


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
        self._held: dict[int, tuple[int, bool, bytes]] = {}
        self._bytes = 0
        self._next: int | None = None
        """Number of the packet the next frame begins with."""
        self._end = 0
        """Packets from there up to this one are held and belong to that frame."""
        self._timestamp = 0
        self._skipping: int | None = None
        """Timestamp of a frame that is not whole: its packets are thrown away."""
        self._gap_since: float | None = None
        self._number = 0
        self._errors: list[WireError] = []
        self.gaps = 0
        """Times packets were given up."""

    @property
    def frames_seen(self) -> int:
        """Frames that are known to exist."""
        return self._number

    @property
    def bytes_held(self) -> int:
        """Payload of packets whose frame is not whole yet."""
        return self._bytes

    def add(
        self, seq: int, timestamp: int, marker: bool, payload: bytes, now: float
    ) -> list[GroupedFrame]:
        """Take a packet with its unwrapped number, once; the frames it completes, in order."""
        if self._next is None:
            self._open(seq, timestamp, payload)
        elif seq < self._next:
            return []
        self._held[seq] = (timestamp, marker, payload)
        self._bytes += len(payload)
        frames: list[GroupedFrame] = []
        end = self._end
        self._take(frames)
        if self._overdue(now, moved=self._end != end):
            self._give_up()
            self._take(frames)
        return frames

    def take_errors(self) -> list[WireError]:
        """What was wrong with frames that contradict themselves, since the last call."""
        errors, self._errors = self._errors, []
        return errors

    def _open(self, seq: int, timestamp: int, payload: bytes) -> None:
        """Who joins in the middle of a frame begins with the next one."""
        self._next = self._end = seq
        try:
            if not self._form.describe(payload).start:
                self._skipping = timestamp
        except WireError:
            self._skipping = timestamp

    def _take(self, frames: list[GroupedFrame]) -> None:
        """Move every frame that is whole to `frames`."""
        held = self._held
        while (packet := held.get(self._end)) is not None:
            timestamp, marker, payload = packet
            if self._end == self._next:
                self._timestamp = timestamp
                if timestamp == self._skipping:
                    self._skip(marker, len(payload))
                    continue
                self._skipping = None
            elif timestamp != self._timestamp:
                self._join(frames)
                continue
            self._end += 1
            if marker:
                self._join(frames)

    def _skip(self, marker: bool, size: int) -> None:
        """Throw one packet of a broken frame away."""
        del self._held[self._end]
        self._bytes -= size
        self._end += 1
        self._next = self._end
        if marker:
            self._skipping = None

    def _join(self, frames: list[GroupedFrame]) -> None:
        parts = [self._held.pop(seq)[2] for seq in range(self._next or 0, self._end)]
        self._next = self._end
        self._bytes -= sum(map(len, parts))
        number, self._number = self._number, self._number + 1
        form = self._form
        try:
            keyframe = any(form.describe(part).keyframe for part in parts)
            frames.append(GroupedFrame(number, self._timestamp, form.join(parts), keyframe))
        except WireError as error:
            self.gaps += 1
            self._errors.append(error)

    def _overdue(self, now: float, *, moved: bool) -> bool:
        """Whether to wait no longer for what is missing."""
        held = len(self._held)
        behind = held - (self._end - (self._next or 0))
        if not behind:
            self._gap_since = None
        elif self._gap_since is None or moved:
            self._gap_since = now
        since = self._gap_since
        return (
            behind > MAX_WAIT
            or (since is not None and now - since > MAX_AGE)
            or held > MAX_HELD
            or self._bytes > MAX_BYTES
        )

    def _give_up(self) -> None:
        """Go on behind the gap, or behind a frame that is larger than any can be."""
        self.gaps += 1
        self._number += 1
        held, gap = self._held, self._end
        for seq in range(self._next or 0, gap):
            self._bytes -= len(held.pop(seq)[2])
        self._skipping = self._timestamp
        self._gap_since = None
        if held:
            gap = min(held)
            self._skipping = held[gap][0]
        self._next = self._end = gap
