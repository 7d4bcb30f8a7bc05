"""RTP payload format for H.264 (RFC 6184): single NAL units, STAP-A and FU-A; Annex B in and out.

Small NAL units that stand together (parameter sets before a key picture) share a STAP-A;
one that is too large for a packet is cut into FU-A.
"""

from streamd.errors import WireError
from streamd.wire.payload import Part, pieces

_START = b"\x00\x00\x00\x01"
_STAP_A, _FU_A = 24, 28
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
        fragmented = False
        for payload in parts:
            kind = _kind(payload)
            begins = bool(payload[1:2] and payload[1] & _FU_START)
            if (kind == _FU_A and not begins) != fragmented:
                raise WireError("h264_payload", "a NAL unit without its beginning or end")
            if kind == _FU_A:
                fragmented = _append_fragment(out, payload)
            elif kind == _STAP_A:
                for unit in _aggregated(payload):
                    out += _START + unit
            elif 0 < kind < _STAP_A:
                out += _START + payload
            else:
                raise WireError("h264_payload", f"NAL unit type {kind}")
        if fragmented or not out:
            raise WireError("h264_payload", "a frame without its end")
        return bytes(out)

    def describe(self, payload: bytes) -> Part:
        """See `PayloadFormat`. Where a frame begins only timestamps tell: any part may."""
        kind = _kind(payload)
        if kind == _FU_A:
            if len(payload) < 2:
                raise WireError("h264_payload", "a fragment without its header")
            kind, start = payload[1] & _TYPE, bool(payload[1] & _FU_START)
            return Part(start, None, kind == _IDR)
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
        if at >= 0:
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


def _append_fragment(out: bytearray, payload: bytes) -> bool:
    """Add a fragment; whether more are to come."""
    if len(payload) < 2:
        raise WireError("h264_payload", "a fragment without its header")
    header = payload[1]
    if header & _FU_START:
        out += _START
        out.append(payload[0] & 0xE0 | header & _TYPE)
    out += payload[2:]
    return not header & _FU_END


def _aggregated(payload: bytes) -> list[bytes]:
    units = []
    at = 1
    while at < len(payload):
        size = int.from_bytes(payload[at : at + 2], "big")
        unit = payload[at + 2 : at + 2 + size]
        if not size or len(unit) < size:
            raise WireError("h264_payload", f"a unit of {size} bytes beyond the aggregate")
        units.append(unit)
        at += 2 + size
    if not units:
        raise WireError("h264_payload", "an aggregate of nothing")
    return units


def _kind(payload: bytes) -> int:
    if not payload:
        raise WireError("h264_payload", "empty")
    return payload[0] & _TYPE
