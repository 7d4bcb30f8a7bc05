"""RTP payload format for H.264 (RFC 6184): single NAL units, STAP-A and FU-A; Annex B in and out.

Small NAL units that stand together (parameter sets before a key picture) share a STAP-A;
one that is too large for a packet is cut into FU-A.
"""

from streamd.errors import WireError
from streamd.wire.payload import Part, pieces

_START = b"\x00\x00\x00\x01"
_STAP_A, _FU_A = 24, 28
_MOST = 0xFFFF
"""Of a payload: no datagram has more, and the sizes within a STAP-A have 16 bits."""
_IDR, _SPS = 5, 7
_FU_START, _FU_END = 0x80, 0x40
_TYPE, _REFERENCE = 0x1F, 0x60
_NOTHING = b"\x09\xf0"
"""An access unit delimiter: stands for a frame without any NAL unit."""


class H264:
    """One access unit in packetization mode 1."""

    name = "h264"
    overhead = 2

    def cut(self, data: bytes, *, keyframe: bool, picture_id: int, size: int) -> list[bytes]:
        """See `PayloadFormat`. `data` is Annex B; without a start code it is one NAL unit."""
        size = min(size, _MOST)
        payloads: list[bytes] = []
        small: list[bytes] = []
        for unit in split(data):
            if 1 + sum(2 + len(item) for item in (*small, unit)) <= size:
                small.append(unit)
                continue
            payloads += _together(small)
            small = []
            if len(unit) <= size:
                small = [unit]
            else:
                payloads += _fragments(unit, size)
        return payloads + _together(small) or [_NOTHING]

    def join(self, parts: list[bytes]) -> bytes:
        """See `PayloadFormat`."""
        out = bytearray()
        unfinished = 0
        for payload in parts:
            kind = _kind(payload)
            if kind == _FU_A:
                unfinished = _append_fragment(out, payload, unfinished)
            elif unfinished:
                raise WireError("h264_payload", "a NAL unit without its end")
            elif kind == _STAP_A:
                for unit in _aggregated(payload):
                    out += _START + unit
            else:
                out += _START + payload
        if unfinished or not out:
            raise WireError("h264_payload", "a frame without its end")
        return bytes(out)

    def describe(self, payload: bytes) -> Part:
        """See `PayloadFormat`. Where a frame begins only timestamps tell: any part may."""
        kind = _kind(payload)
        if kind == _FU_A:
            header = _fragment_header(payload)
            return Part(bool(header & _FU_START), None, header & _TYPE == _IDR)
        kinds = [unit[0] & _TYPE for unit in _aggregated(payload)] if kind == _STAP_A else [kind]
        return Part(True, None, _IDR in kinds or _SPS in kinds)


def split(data: bytes) -> list[bytes]:
    """The NAL units of an Annex B stream, start codes of three or four bytes."""
    units = []
    at = data.find(b"\x00\x00\x01")
    if at < 0:
        return [data] if data else []
    while at >= 0:
        begin = at + 3
        at = data.find(b"\x00\x00\x01", begin)
        unit = data[begin : len(data) if at < 0 else at]
        # the zero of a longer start code, or trailing zeros: never part of a NAL unit
        unit = unit.rstrip(b"\x00")
        if unit:
            units.append(unit)
    return units


def _together(units: list[bytes]) -> list[bytes]:
    """One payload for units that fit into it."""
    if len(units) < 2:
        return units
    reference = max(unit[0] & _REFERENCE for unit in units)
    forbidden = max(unit[0] & 0x80 for unit in units)
    body = b"".join(len(unit).to_bytes(2, "big") + unit for unit in units)
    return [bytes((forbidden | reference | _STAP_A,)) + body]


def _fragments(unit: bytes, size: int) -> list[bytes]:
    indicator = unit[0] & 0xE0 | _FU_A
    kind = unit[0] & _TYPE
    parts = pieces(unit[1:], size - 2)
    last = len(parts) - 1
    return [
        bytes((indicator, kind | (_FU_START if not n else 0) | (_FU_END if n == last else 0)))
        + part
        for n, part in enumerate(parts)
    ]


def _fragment_header(payload: bytes) -> int:
    """Of an FU-A: start and end bit, and the type of the NAL unit (section 5.8)."""
    if len(payload) < 2:
        raise WireError("h264_payload", "a fragment without its header")
    header = payload[1]
    if not 0 < header & _TYPE < _STAP_A:
        raise WireError("h264_payload", f"fragments of type {header & _TYPE}")
    return header


def _append_fragment(out: bytearray, payload: bytes, unfinished: int) -> int:
    """Add a fragment to the NAL unit of type `unfinished`, 0 = none; the same thereafter."""
    header = _fragment_header(payload)
    kind = header & _TYPE
    if unfinished != (0 if header & _FU_START else kind):
        raise WireError("h264_payload", f"a fragment of type {kind} within {unfinished}")
    if header & _FU_START:
        out += _START
        out.append(payload[0] & 0xE0 | kind)
    out += payload[2:]
    return 0 if header & _FU_END else kind


def _aggregated(payload: bytes) -> list[bytes]:
    units = []
    at = 1
    while at < len(payload):
        size = int.from_bytes(payload[at : at + 2], "big")
        unit = payload[at + 2 : at + 2 + size]
        if not size or len(unit) < size:
            raise WireError("h264_payload", f"a unit of {size} bytes beyond the aggregate")
        if not 0 < unit[0] & _TYPE < _STAP_A:
            raise WireError("h264_payload", f"type {unit[0] & _TYPE} within an aggregate")
        units.append(unit)
        at += 2 + size
    if not units:
        raise WireError("h264_payload", "an aggregate of nothing")
    return units


def _kind(payload: bytes) -> int:
    """One of the types packetization mode 1 knows (section 5.4)."""
    if not payload:
        raise WireError("h264_payload", "empty")
    kind = payload[0] & _TYPE
    if kind != _FU_A and not 0 < kind <= _STAP_A:
        raise WireError("h264_payload", f"NAL unit type {kind}")
    return kind
