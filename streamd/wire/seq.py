"""Serial number arithmetic and unwrapping (RFC 1982, RFC 3550 appendix A.1).

Every counter on the wire wraps: RTP sequence numbers after 65536 packets, RTP
time after 13 h 15 min at 90 kHz, report timestamps after 18 h 12 min. Each is
unwrapped where it enters, by the signed difference to a value known before; no
comparison further in ever sees the wrapped number.
"""

from typing import Final

SEQ_BITS: Final = 16
TIMESTAMP_BITS: Final = 32


def serial_diff(a: int, b: int, bits: int = SEQ_BITS) -> int:
    """`a - b` as the shortest way round the circle of `bits` bits, in [-half, half)."""
    half = 1 << bits - 1
    return (a - b + half & (half << 1) - 1) - half


def seq_diff(a: int, b: int) -> int:
    """`serial_diff` of two RTP sequence numbers: positive where `a` is the newer."""
    return (a - b + 0x8000 & 0xFFFF) - 0x8000


def seq_newer(a: int, b: int) -> bool:
    """Whether sequence number `a` comes after `b`."""
    return 0 < (a - b & 0xFFFF) < 0x8000


def nearest(value: int, reference: int, bits: int = SEQ_BITS) -> int:
    """The unwrapped number next to `reference` whose low `bits` bits are those of `value`.

    For numbers that name something already known, such as the begin_seq of a
    report against the highest sequence number sent.
    """
    half = 1 << bits - 1
    return reference + (value - reference + half & (half << 1) - 1) - half


class Unwrapper:
    """Turns a wrapping counter into one that does not wrap.

    The step from the previous value *as received*, late ones included, is taken
    into [-half, half). The first value stands as it is, so a late packet right
    after it may give a negative number.
    """

    __slots__ = ("_half", "_mask", "last")

    def __init__(self, bits: int) -> None:
        self._half = 1 << bits - 1
        self._mask = (1 << bits) - 1
        self.last: int | None = None
        """The last unwrapped value; None before the first."""

    def unwrap(self, value: int) -> int:
        """The unwrapped counterpart of `value`, which becomes the new reference."""
        last = self.last
        if last is None:
            self.last = value = value & self._mask
            return value
        half = self._half
        self.last = last = last + (value - last + half & self._mask) - half
        return last

    def reset(self) -> None:
        """Forget the reference: the next value stands as it is."""
        self.last = None


class SeqUnwrapper(Unwrapper):
    """16-bit RTP and transport-wide sequence numbers."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(SEQ_BITS)


class TimestampUnwrapper(Unwrapper):
    """32-bit RTP time and report timestamps."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(TIMESTAMP_BITS)
