"""RTP header extension elements in their one-byte and two-byte forms (RFC 8285 section 4)."""

from collections.abc import Iterable
from typing import Final

from streamd.errors import LocalMisuse, WireError
from streamd.wire.buffer import Buffer

ONE_BYTE_PROFILE: Final = 0xBEDE
TWO_BYTE_PROFILE: Final = 0x1000
"""Its low four bits are for the application ("appbits")."""
ONE_BYTE_MAX_ID: Final = 14
"""Ids are 1 to 14; 15 is reserved and ends the extension."""

Element = tuple[int, bytes]
"""A local identifier and its data."""


def encode_elements(elements: Iterable[Element], *, two_byte: bool = False) -> tuple[int, bytes]:
    """(profile, extension data padded to 32 bits); LocalMisuse if an element does not fit the form.

    One-byte form: ids 1 to 14, 1 to 16 bytes each. Two-byte form: ids 1 to 255, 0 to 255 bytes.
    """
    max_id, sizes = (255, range(256)) if two_byte else (ONE_BYTE_MAX_ID, range(1, 17))
    out = bytearray()
    for identifier, value in elements:
        if not 1 <= identifier <= max_id or len(value) not in sizes:
            form = "two" if two_byte else "one"
            raise LocalMisuse(f"element {identifier} of {len(value)} bytes, {form}-byte form")
        if two_byte:
            out += bytes((identifier, len(value)))
        else:
            out.append(identifier << 4 | len(value) - 1)
        out += value
    out += bytes(-len(out) % 4)
    return (TWO_BYTE_PROFILE if two_byte else ONE_BYTE_PROFILE), bytes(out)


def decode_elements(profile: int, data: Buffer, start: int, end: int) -> list[Element]:
    """The elements in `data[start:end]`, which is what follows the extension's four header bytes.

    An extension of another profile has no elements. Raises WireError where an
    element reaches beyond the extension.
    """
    if profile == ONE_BYTE_PROFILE:
        return _decode_one_byte(data, start, end)
    if profile & 0xFFF0 == TWO_BYTE_PROFILE:
        return _decode_two_byte(data, start, end)
    return []


def _decode_one_byte(data: Buffer, position: int, end: int) -> list[Element]:
    elements: list[Element] = []
    while position < end:
        head = data[position]
        position += 1
        if not head:
            continue
        # Id 15, and id 0 with a length, end the extension without being an error (section 4.2).
        if head >= 0xF0 or head < 0x10:
            break
        following = position + (head & 0x0F) + 1
        _check(following, end)
        elements.append((head >> 4, bytes(data[position:following])))
        position = following
    return elements


def _decode_two_byte(data: Buffer, position: int, end: int) -> list[Element]:
    elements: list[Element] = []
    while position < end:
        identifier = data[position]
        position += 1
        if not identifier:
            continue
        _check(position + 1, end)
        following = position + 1 + data[position]
        _check(following, end)
        elements.append((identifier, bytes(data[position + 1 : following])))
        position = following
    return elements


def _check(following: int, end: int) -> None:
    if following > end:
        raise WireError("extension_element", f"ends {following - end} bytes beyond the extension")
