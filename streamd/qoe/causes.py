"""Why the picture stood still, and why a frame was shown late.

Theory of operation. A freeze is judged by what happened while it lasted, the
strongest reason first:

* `decoder`: the decoder refused frames;
* `outage`: for at least half of it no packet came at all;
* `loss`: frames between the two pictures were lost or given up;
* `source`: the pictures themselves were captured so far apart;
* `delay`: none of these; the frames just came late.

A frame is late when it is shown more than `LATE` after its capture: by `repair` if a
part of it came as a copy or out of order, else by `delay`.
"""

from typing import Final, Literal

FreezeCause = Literal["decoder", "outage", "loss", "source", "delay"]
FREEZE_CAUSES: Final[tuple[FreezeCause, ...]] = ("decoder", "outage", "loss", "source", "delay")
LateCause = Literal["repair", "delay"]
LATE_CAUSES: Final[tuple[LateCause, ...]] = ("repair", "delay")
LATE: Final = 0.4
"""One-way delay (s) that ITU-T G.114 calls the limit for conversation."""


def freeze_cause(
    gap: float, *, refused: int, silence: float, missing: int, captured_gap: float | None
) -> FreezeCause:
    """The cause of a freeze of `gap` seconds.

    `refused` frames the decoder refused, `missing` frames between the two shown ones,
    `silence` the longest time (s) without a packet, `captured_gap` the time (s) between the
    captures of the two; None if unknown.
    """
    if refused:
        return "decoder"
    if silence >= gap / 2:
        return "outage"
    if missing:
        return "loss"
    if captured_gap is not None and captured_gap >= gap / 2:
        return "source"
    return "delay"
