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
