"""Fragments into frames, frames into decoding order.

A frame is complete when every fragment is there. Frames leave strictly in order
while the chain of references is whole. When the next frame is not complete but
a *complete key frame* lies ahead, what lies before it is given up and decoding
goes on there; so it does at a complete *repair frame*, one predicted from a single
earlier frame that did leave. A frame whose reference is missing never leaves. Source:
specification of the BW tool's video mode; "Fake It No More" section 2.4.
"""

from collections import deque
from collections.abc import Iterator

from streamd.errors import WireError
from streamd.session.runs import Run
from streamd.wire.seq import nearest

MAX_FRAMES = 512
"""Frames in the making; beyond that the oldest are given up."""
MAX_BYTES = 64 * 1024 * 1024
MAX_REFERENCES = 256
"""Frames handed out that a repair frame may still refer to."""


class Frame:
    """A frame in the making."""

    __slots__ = (
        "completed_at",
        "count",
        "first_at",
        "keyframe",
        "mended",
        "parts",
        "refers",
        "rtp_time",
    )

    def __init__(
        self,
        count: int,
        keyframe: bool,
        rtp_time: int,
        first_at: float,
        refers: int | None = None,
    ) -> None:
        """`refers`: number of the one frame it is predicted from, if that is not the last."""
        self.refers = refers
        self.mended = False
        """A part of it came out of order: as a copy, most likely."""
        self.count = count
        self.keyframe = keyframe
        self.rtp_time = rtp_time
        self.first_at = first_at
        self.completed_at: float | None = None
        self.parts: dict[int, bytes] = {}

    def payloads(self) -> list[bytes]:
        """Its fragments in order; only of a complete one."""
        parts = self.parts
        return [parts[index] for index in range(self.count)]


class FrameAssembler:
    """The frames of one stream."""

    def __init__(self) -> None:
        self._frames: dict[int, Frame] = {}
        self._latest: Frame | None = None
        self._latest_id = 0
        """The frame of the last fragment, and its id on the wire: usually the next one's too."""
        self._bytes = 0
        self._newest: int | None = None
        self._next: int | None = None
        self._lowest = 0
        self._seen = 0
        self._jumped: int | None = None
        """The id far ahead that the last packet had."""
        self._chain = False
        self._left: deque[int] = deque(maxlen=MAX_REFERENCES)
        """Frames handed out that the decoder can have kept."""
        self._settled = False
        self._stalled_since: float | None = None
        self.completed = 0
        self.lost = 0
        """Frames given up that never became complete."""
        self.skipped = 0
        """Complete frames given up for a later key frame or repair frame."""
        self.repaired = 0
        """Times a repair frame mended the chain."""
        self.late_fragments = 0
        """Fragments of frames that had left or been given up."""

    def add(
        self,
        fields: tuple[int, int, int, int],
        keyframe: bool,
        rtp_time: int,
        payload: bytes,
        now: float,
        *,
        refers: int | None = None,
        mends: bool = False,
    ) -> Frame | None:
        """Take one fragment; `fields` as `parse_video_ext` gives them. The frame, if now complete.

        `refers`: the id on the wire of the only frame this one is predicted from. `mends`: the
        packet came out of order.

        Raises WireError when it contradicts an earlier fragment of its frame.
        """
        _, frame_id, index, count = fields
        frame = self._latest
        if frame is None or frame_id != self._latest_id:
            frame = self._find(frame_id, count, keyframe, rtp_time, now, refers)
            if frame is None:
                self.late_fragments += 1
                return None
        if frame.count != count or frame.keyframe != keyframe:
            raise WireError("video_mismatch", f"frame {frame_id}: {count} of {frame.count}")
        parts = frame.parts
        if index in parts:
            return None
        parts[index] = payload
        self._bytes += len(payload)
        if mends:
            frame.mended = True
        return self._whole(frame, now)

    def add_run(self, run: Run, now: float) -> Frame | None:
        """Take the consecutive fragments of a run; as `add` for each."""
        frame_id, index, count = run.frame_id, run.fragment, run.fragments
        payloads = run.payloads
        frame = self._latest
        if frame is None or frame_id != self._latest_id:
            frame = self._find(frame_id, count, run.keyframe, run.timestamp, now)
            if frame is None:
                self.late_fragments += len(payloads)
                return None
        if frame.count != count or frame.keyframe != run.keyframe:
            raise WireError("video_mismatch", f"frame {frame_id}: {count} of {frame.count}")
        parts = frame.parts
        numbers = range(index, index + len(payloads))
        if parts.keys().isdisjoint(numbers):
            parts.update(zip(numbers, payloads, strict=True))
            self._bytes += run.payload_bytes
        else:
            for number, payload in zip(numbers, payloads, strict=True):
                if number not in parts:
                    parts[number] = payload
                    self._bytes += len(payload)
        return self._whole(frame, now)

    def poll(self, now: float) -> Iterator[tuple[int, Frame]]:
        """Frames that may be decoded now, in order, with their unwrapped numbers."""
        while True:
            if not self._chain and not self._jump():
                break
            frame = self._frames.get(self._next) if self._next is not None else None
            if frame is None or frame.completed_at is None:
                if self._jump():
                    continue
                break
            number = self._next or 0
            self._discard(number)
            self._left.append(number)
            self._next = number + 1
            self._stalled_since = None
            yield number, frame
        if self._frames and self._stalled_since is None:
            self._stalled_since = now
        elif not self._frames:
            self._stalled_since = None

    def stalled_for(self, now: float) -> float:
        """Seconds since frames are there and none can be decoded."""
        return 0.0 if self._stalled_since is None else now - self._stalled_since

    @property
    def bytes_held(self) -> int:
        """Payload of the frames in the making."""
        return self._bytes

    @property
    def started(self) -> bool:
        """A key frame has been decoded and the chain holds."""
        return self._chain

    def break_chain(self) -> None:
        """The decoder failed: nothing before the next key frame can be decoded."""
        self._chain = False
        self._left.clear()

    def take_seen(self) -> int:
        """Frame numbers newly known to exist since the last call."""
        if self._newest is None:
            return 0
        seen = self._newest - self._lowest + 1
        new, self._seen = seen - self._seen, seen
        return new

    def close(self) -> None:
        """The stream is over: whatever is still in the making is given up."""
        if self._newest is not None and self._next is not None:
            self._give_up(self._newest + 1)

    def _whole(self, frame: Frame, now: float) -> Frame | None:
        """The frame if its last fragment has just come; keeps the memory bounded."""
        while self._bytes > MAX_BYTES:
            self._drop_oldest()
        complete = frame.completed_at is not None
        if complete or len(frame.parts) < frame.count or self._latest is not frame:
            return None
        frame.completed_at = now
        self.completed += 1
        return frame

    def _find(
        self,
        frame_id: int,
        count: int,
        keyframe: bool,
        rtp_time: int,
        now: float,
        refers: int | None = None,
    ) -> Frame | None:
        """The frame of this id, new if need be, as the latest; None: it is of the past."""
        frame_no = self._unwrap(frame_id)
        frame = self._frames.get(frame_no)
        if frame is None:
            if len(self._frames) >= MAX_FRAMES:
                self._drop_oldest()
            if self._settled and self._next is not None and frame_no < self._next:
                return None
            self._open_at(frame_no)
            earlier = None if refers is None else nearest(refers, frame_no)
            frame = self._frames[frame_no] = Frame(count, keyframe, rtp_time, now, earlier)
        self._latest, self._latest_id = frame, frame_id
        return frame

    def _unwrap(self, frame_id: int) -> int:
        if self._newest is None:
            self._newest = self._next = self._lowest = frame_id
            return frame_id
        frame_no = nearest(frame_id, self._newest)
        if frame_no > self._newest + MAX_FRAMES:
            # One damaged id must not make everything before it look lost.
            confirmed = self._jumped is not None and 0 <= frame_id - self._jumped <= 1
            self._jumped = frame_id
            if not confirmed:
                raise WireError("video_frame_id", f"{frame_no - self._newest} frames ahead")
        self._newest = max(self._newest, frame_no)
        return frame_no

    def _open_at(self, frame_no: int) -> None:
        if self._next is not None and frame_no < self._next:
            # Nothing has left yet: reordering at the very start of the stream.
            self._next = self._lowest = frame_no

    def _jump(self) -> bool:
        """Go on at the first complete frame that needs nothing missing; False: there is none."""
        ready = [n for n, f in self._frames.items() if f.completed_at is not None and self._free(f)]
        if not ready:
            return False
        number = min(ready)
        if not self._frames[number].keyframe:
            self.repaired += 1
        self._give_up(number)
        self._chain = True
        return True

    def _free(self, frame: Frame) -> bool:
        """Whether everything it is predicted from has left."""
        return frame.keyframe or (frame.refers is not None and frame.refers in self._left)

    def _give_up(self, until: int) -> None:
        """Drop every frame before `until`, seen or not."""
        start = until if self._next is None else self._next
        for number in range(start, until):
            frame = self._frames.get(number)
            if frame is not None and frame.completed_at is not None:
                self.skipped += 1
            else:
                self.lost += 1
            if frame is not None:
                self._discard(number)
        self._next = max(start, until)
        self._settled = True

    def _discard(self, number: int) -> None:
        frame = self._frames.pop(number)
        if frame is self._latest:
            self._latest = None
        self._bytes -= sum(map(len, frame.parts.values()))

    def _drop_oldest(self) -> None:
        """Keep state finite: give the oldest frame up, decoding waits for a key frame."""
        self._chain = False
        self._give_up(min(self._frames) + 1)
