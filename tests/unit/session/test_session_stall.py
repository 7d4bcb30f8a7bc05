"""When a stalled receiver asks for a key frame."""

from streamd.session.frames import FrameAssembler
from streamd.session.stall import StallWatch


def stalled(*, started: bool, since: float) -> FrameAssembler:
    """An assembler with frames that cannot leave since `since`."""
    assembler = FrameAssembler()
    if started:
        assembler.add((0x80, 0, 0, 1), True, 0, b"key", since - 1.0)
        assert len(list(assembler.poll(since - 1.0))) == 1
    assembler.add((0, 2, 0, 1), False, 0, b"delta", since)
    assert list(assembler.poll(since)) == []
    return assembler


def test_patience_without_and_with_a_picture() -> None:
    assert not StallWatch().request_due(stalled(started=False, since=5.0), 5.09375)
    assert StallWatch().request_due(stalled(started=False, since=5.0), 5.109375)
    assert not StallWatch().request_due(stalled(started=True, since=5.0), 5.28125)
    assert StallWatch().request_due(stalled(started=True, since=5.0), 5.3125)


def test_requests_double_their_distance_up_to_two_seconds() -> None:
    watch, assembler = StallWatch(), stalled(started=False, since=0.0)
    asked = [step / 16 for step in range(160) if watch.request_due(assembler, step / 16)]
    assert asked == [0.125, 0.625, 1.625, 3.625, 5.625, 7.625, 9.625]


def test_progress_starts_over() -> None:
    watch, assembler = StallWatch(), stalled(started=False, since=0.0)
    assert watch.request_due(assembler, 1.0)
    assert not watch.request_due(assembler, 1.25)
    watch.on_progress()
    assert watch.request_due(assembler, 1.25)
    assert not watch.request_due(assembler, 1.6875)
    assert watch.request_due(assembler, 1.75)


def test_nothing_is_asked_without_a_stall() -> None:
    assert not StallWatch().request_due(FrameAssembler(), 100.0)
