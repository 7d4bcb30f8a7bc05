"""Fewer or smaller pictures when even the coarsest ones do not fit the rate.

Theory of operation. Rate control coarsens pictures until the quantizer is at its end. When
the encoder stays above its target there for `PATIENCE`, the ladder takes a step down: first
half of the pictures, then half of the width and height (VP9 scales its references in the
stream: no key frame; other codecs keep their size). It comes back a step when for
`QUIET` seconds the quantizer was at most `EASY` and the target is at least `HEADROOM` times what
it was at the step down, or at any target when the quantizer was at most `FREE`: then the content
has become easier. A step up that does not last makes the next one wait twice as long.

Pictures are only ever made smaller than at the start, at most by two per axis and step:
libvpx allows nothing else. Source: specification of the codecs, section 7.
"""

from collections import deque
from typing import Final, NamedTuple

from streamd.media.model import Picture

COARSEST: Final = 60
"""Of 0 to 63; rate control moves among the last few."""
EASY: Final = 45
FREE: Final = 36
"""A step up costs 10 to 20, so this ends below `COARSEST`."""
OVERSHOOT: Final = 1.1
PATIENCE: Final = 0.5
QUIET: Final = 3.0
MAX_QUIET: Final = 60.0
HEADROOM: Final = 1.5
_SMALLEST: Final = 64
"""Pixels per side below which nothing is halved."""


class Rung(NamedTuple):
    """A step of the ladder."""

    every: int
    """One picture of so many is encoded."""
    shrink: int
    """Width and height are divided by this."""


class Ladder:
    """Told of each encoded frame; says what to do with the next picture."""

    def __init__(self, width: int, height: int, *, resizes: bool) -> None:
        """The size at the start; `resizes`: the encoder can change it without a key frame."""
        self._size = (width, height)
        self._rungs = [Rung(1, 1), Rung(2, 1)]
        if resizes and min(width, height) >= 2 * _SMALLEST:
            self._rungs.append(Rung(2, 2))
        self._place = 0
        self._frames: deque[tuple[float, int, bool]] = deque()
        self._since: float | None = None
        """When it came to this rung."""
        self._easy_since: float | None = None
        self._free_since: float | None = None
        self._left_at: list[float] = []
        """Targets at which the rungs above were left."""
        self._quiet = QUIET
        self._raised_at = float("-inf")
        self.steps_down = 0
        self.steps_up = 0

    @property
    def rung(self) -> Rung:
        """Where it stands."""
        return self._rungs[self._place]

    @property
    def size(self) -> tuple[int, int]:
        """Of the pictures to encode; smaller ones are even.

        Rounded up: below exactly half the size libvpx makes a key frame of its own.
        """
        width, height = self._size
        unit = 2 * self.rung.shrink
        return self._size if unit == 2 else (-(-width // unit) * 2, -(-height // unit) * 2)

    def wants(self, tick: int) -> bool:
        """Whether the picture of this tick is to be encoded."""
        return not tick % self.rung.every

    def fit(self, picture: Picture) -> Picture:
        """The picture in the size of the rung."""
        width, height = self.size
        if (picture.width, picture.height) == (width, height):
            return picture
        return picture.reformat(width=width, height=height, interpolation="BILINEAR")

    def on_frame(self, size: int, quantizer: int, target_bps: float, now: float) -> bool:
        """A frame of `size` bytes came out at `quantizer` (0 to 63); True: the rung changed."""
        if self._since is None:
            self._since = now
        frames = self._frames
        frames.append((now, size, quantizer >= COARSEST))
        while frames and now - frames[0][0] >= PATIENCE:
            frames.popleft()
        self._easy_since = _since(self._easy_since, quantizer <= EASY, now)
        self._free_since = _since(self._free_since, quantizer <= FREE, now)
        if self._too_much(target_bps, now):
            return self._down(target_bps, now)
        if self._room(target_bps, now):
            return self._up(now)
        return False

    def _too_much(self, target_bps: float, now: float) -> bool:
        since = now if self._since is None else self._since
        if self._place + 1 == len(self._rungs) or now - since < PATIENCE:
            return False
        bits = 8 * sum(size for _, size, _ in self._frames)
        coarse = all(coarsest for _, _, coarsest in self._frames)
        return coarse and bits > OVERSHOOT * target_bps * PATIENCE

    def _room(self, target_bps: float, now: float) -> bool:
        if not self._place:
            return False
        more = target_bps >= HEADROOM * self._left_at[-1]
        since = self._easy_since if more else self._free_since
        return since is not None and now - since >= self._quiet

    def _down(self, target_bps: float, now: float) -> bool:
        self._place += 1
        self._left_at.append(target_bps)
        self.steps_down += 1
        failed = now - self._raised_at < self._quiet
        self._quiet = min(MAX_QUIET, 2 * self._quiet) if failed else QUIET
        return self._moved(now)

    def _up(self, now: float) -> bool:
        self._place -= 1
        self._left_at.pop()
        self.steps_up += 1
        self._raised_at = now
        return self._moved(now)

    def _moved(self, now: float) -> bool:
        self._frames.clear()
        self._since, self._easy_since, self._free_since = now, None, None
        return True


def _since(before: float | None, holds: bool, now: float) -> float | None:
    """Since when something holds; None: it does not."""
    if not holds:
        return None
    return now if before is None else before
