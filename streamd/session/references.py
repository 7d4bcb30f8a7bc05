"""Repair without a key frame: long-term references the receiver is known to have.

Theory of operation. The encoder keeps two pictures beside the last one, in slots 0 and
1. Every `STORE_FRAMES` frames one of them is replaced by the frame just encoded; the
other one stays. A stored frame is *confirmed* once every packet since the last frame
that needed nothing before it has been acknowledged: then the receiver can have decoded
it. After a loss that no retransmission mends, one frame is predicted from a confirmed
slot alone, and from there on the picture is whole again, at about twice the size of
an ordinary frame instead of a key frame's.

A *hole* is a packet that nobody waits for any more: given up, or thrown out of the
queue before it was sent. What is stored after a hole cannot be confirmed.
Source: libvpx reference flags; specification of the codecs, section 6.
"""

from dataclasses import dataclass

from streamd.media.model import EncodedFrame
from streamd.session.history import SentHistory
from streamd.session.queue import PacketQueue

STORE_FRAMES = 8
"""Frames between two stored ones: the younger a reference, the smaller the repair."""
MAX_AGE = 90
"""Frames after which a reference is too old to be worth more than a key frame."""


@dataclass(slots=True)
class Stored:
    """What a slot holds."""

    frame_no: int
    chain: int
    """First packet of the frame from which everything is needed."""
    last: int
    """Its own last packet."""
    confirmed: bool = False


class ReferenceTracker:
    """Follows what the encoder stored and what of it arrived."""

    def __init__(self, history: SentHistory, queue: PacketQueue) -> None:
        self._history = history
        self._queue = queue
        self._slots: list[Stored | None] = [None, None]
        self._chain: int | None = None
        self._hole: int | None = None
        self._frame_no = 0
        self._stored_at = 0

    def on_frame(self, frame: EncodedFrame, frame_no: int, first: int, last: int) -> None:
        """A frame was put into packets `first` to `last`."""
        self._frame_no = frame_no
        if frame.keyframe or frame.refer is not None:
            self._chain, self._hole = first, None
        if self._chain is None:
            return
        slots = (0, 1) if frame.keyframe else () if frame.store is None else (frame.store,)
        for slot in slots:
            self._slots[slot] = Stored(frame_no, self._chain, last)
            self._stored_at = frame_no

    def look(self) -> bool:
        """Note what was acknowledged or given up; True: a new hole breaks the picture."""
        before = self._hole
        for hole in (self._history.take_hole(), self._queue.take_hole()):
            if hole is not None and self._chain is not None and hole >= self._chain:
                self._hole = hole if self._hole is None else min(hole, self._hole)
        for stored in self._slots:
            if stored is not None and not stored.confirmed and self._pending(stored):
                stored.confirmed = stored.last <= self._history.highest_acked and (
                    self._history.arrived(stored.chain, stored.last)
                )
        return before is None and self._hole is not None

    def to_store(self) -> int | None:
        """The slot the next frame shall replace; None: not now."""
        if self._chain is None or self._hole is not None:
            return None
        if self._frame_no + 1 - self._stored_at < STORE_FRAMES:
            return None
        best = self.to_refer()
        slot = 0 if best is None else 1 - best
        waiting = self._slots[slot]
        if waiting is not None and not waiting.confirmed and self._pending(waiting):
            young = self._frame_no - waiting.frame_no < MAX_AGE
            return None if young else slot
        return slot

    def to_refer(self) -> int | None:
        """The slot with the youngest frame the receiver can have; None: there is none."""
        best: int | None = None
        newest = self._frame_no - MAX_AGE
        for slot, stored in enumerate(self._slots):
            if stored is not None and stored.confirmed and stored.frame_no > newest:
                best, newest = slot, stored.frame_no
        return best

    def frame_no(self, slot: int) -> int | None:
        """The frame in a slot."""
        stored = self._slots[slot]
        return None if stored is None else stored.frame_no

    def forget(self) -> None:
        """Another receiver: it has nothing."""
        self._slots = [None, None]
        self._chain = self._hole = None

    def _pending(self, stored: Stored) -> bool:
        """Whether it can still be confirmed."""
        hole = self._hole
        return stored.chain == self._chain and (hole is None or hole > stored.last)
