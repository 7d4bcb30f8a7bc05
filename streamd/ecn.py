"""The two ECN bits of the IP header (RFC 3168 section 5, RFC 9331 section 4)."""

from enum import IntEnum


class Ecn(IntEnum):
    """ECN codepoints by their value on the wire."""

    NOT_ECT = 0
    ECT1 = 1
    ECT0 = 2
    CE = 3


# Plain ints for per-packet code: an enum member look-up costs more than the comparison.
NOT_ECT = 0
ECT1 = 1
ECT0 = 2
CE = 3

NAMES = ("not_ect", "ect1", "ect0", "ce")


def from_name(name: str) -> Ecn:
    """The codepoint of an option value `notect`, `ect0` or `ect1`; ValueError otherwise."""
    try:
        return {"notect": Ecn.NOT_ECT, "ect0": Ecn.ECT0, "ect1": Ecn.ECT1}[name]
    except KeyError:
        raise ValueError(f"unknown ECN mode {name!r}: use notect, ect0 or ect1") from None
