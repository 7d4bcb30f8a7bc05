"""Payload formats: whatever is cut comes back, whatever comes in raises nothing but WireError."""

import contextlib
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamd.errors import WireError
from streamd.wire.payload import PayloadFormat
from streamd.wire.payload.h264 import H264
from streamd.wire.payload.raw import Raw
from streamd.wire.payload.vp8 import Vp8
from streamd.wire.payload.vp9 import Vp9

FORMATS: list[PayloadFormat] = [Raw(), Vp8(), Vp9(), H264()]


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
@given(
    data=st.binary(min_size=1, max_size=3000),
    keyframe=st.booleans(),
    picture_id=st.integers(0, 1 << 20),
    size=st.integers(8, 1300),
)
def test_a_frame_comes_back(
    form: PayloadFormat, data: bytes, keyframe: bool, picture_id: int, size: int
) -> None:
    if form.name == "h264":
        # one NAL unit of a legal type that holds no start code and does not end in zeros
        data = b"\x41" + data.replace(b"\x00", b"\x80")
    parts = form.cut(data, keyframe=keyframe, picture_id=picture_id, size=size)
    assert all(len(part) <= size for part in parts)
    whole = form.join(parts)
    assert whole == (b"\x00\x00\x00\x01" + data if form.name == "h264" else data)


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
@given(parts=st.lists(st.binary(max_size=40), max_size=5))
def test_anything_may_come_in(form: PayloadFormat, parts: list[bytes]) -> None:
    with contextlib.suppress(WireError):
        assert len(form.join(parts)) <= 5 * sum(map(len, parts)) + 5
    for part in parts:
        with contextlib.suppress(WireError):
            form.describe(part)


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
@given(
    data=st.binary(min_size=1, max_size=300),
    size=st.integers(8, 60),
    changes=st.lists(st.tuples(st.integers(0, 400), st.integers(0, 7), st.integers(0, 255))),
    order=st.randoms(use_true_random=False),
)
def test_what_was_cut_may_come_back_damaged(
    form: PayloadFormat,
    data: bytes,
    size: int,
    changes: list[tuple[int, int, int]],
    order: random.Random,
) -> None:
    parts = form.cut(data, keyframe=True, picture_id=7, size=size)
    for which, at, value in changes:
        damaged = bytearray(parts[which % len(parts)])
        if at < len(damaged):
            # near the front: where the descriptors are
            damaged[at] = value
        elif damaged:
            del damaged[-1]
        parts[which % len(parts)] = bytes(damaged)
    order.shuffle(parts)
    for part in parts:
        with contextlib.suppress(WireError):
            form.describe(part)
    with contextlib.suppress(WireError):
        assert len(form.join(parts)) <= 5 * sum(map(len, parts))


nal_units = st.builds(
    lambda head, body: bytes((head,)) + body.replace(b"\x00", b"\x80"),
    st.integers(1, 23),
    st.binary(max_size=200),
)


@given(
    units=st.lists(st.tuples(nal_units, st.sampled_from((3, 4))), min_size=1, max_size=12),
    zeros=st.integers(0, 3),
    size=st.integers(3, 250),
)
def test_nal_units_come_back_in_order(
    units: list[tuple[bytes, int]], zeros: int, size: int
) -> None:
    data = b"".join(b"\x00\x00\x00\x01"[-code:] + unit for unit, code in units)
    parts = H264().cut(data + bytes(zeros), keyframe=True, picture_id=0, size=size)
    assert max(map(len, parts)) <= size
    assert H264().join(parts) == b"".join(b"\x00\x00\x00\x01" + unit for unit, _ in units)


@pytest.mark.parametrize("form", [Vp8(), Vp9()], ids=lambda form: form.name)
@given(
    data=st.binary(min_size=20, max_size=400),
    picture_id=st.integers(0, 1 << 20),
    other=st.integers(1, (1 << 15) - 1),
    size=st.integers(8, 14),
)
def test_a_part_of_another_picture_is_told(
    form: PayloadFormat, data: bytes, picture_id: int, other: int, size: int
) -> None:
    parts = form.cut(data, keyframe=True, picture_id=picture_id, size=size)
    stranger = form.cut(data, keyframe=True, picture_id=picture_id + other, size=size)
    assert {form.describe(part).picture_id for part in parts} == {picture_id % (1 << 15)}
    with pytest.raises(WireError):
        form.join([*parts[:-1], stranger[-1]])


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
@given(payload=st.binary(max_size=40))
def test_what_cannot_be_described_cannot_be_joined(form: PayloadFormat, payload: bytes) -> None:
    try:
        form.describe(payload)
    except WireError:
        with pytest.raises(WireError):
            form.join([payload])
