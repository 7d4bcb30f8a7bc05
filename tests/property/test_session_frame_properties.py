"""Frames from fragments: whole, once, in order, and every one counted, whatever arrives."""

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from streamd.session.frames import FrameAssembler


@dataclass
class Clip:
    """Frames and the fragments of them that arrive, in the order they do."""

    first: int
    keys: list[bool]
    counts: list[int]
    arrivals: list[tuple[int, int]] = field(default_factory=list)


@st.composite
def clips(draw: st.DrawFn, *, lossless: bool) -> Clip:
    """Any order, repetition and (unless lossless) loss of the fragments of up to 40 frames."""
    length = draw(st.integers(1, 40))
    keys = [True] + [draw(st.integers(0, 9)) == 0 and not lossless for _ in range(length - 1)]
    counts = [draw(st.integers(1, 4)) for _ in range(length)]
    first = draw(st.sampled_from([0, 5, 65_530]))
    clip = Clip(first, keys, counts)
    fragments = [(frame, part) for frame in range(length) for part in range(counts[frame])]
    if lossless:
        clip.arrivals = draw(st.permutations(fragments))
    else:
        jitter = draw(st.integers(0, 30))
        rng = draw(st.randoms(use_true_random=False))
        kept = [item for item in fragments if rng.random() > 0.15]
        kept += [item for item in fragments if rng.random() < 0.1]
        clip.arrivals = sorted(kept, key=lambda item: sum(item) + rng.uniform(0, jitter))
    return clip


def _assemble(clip: Clip) -> tuple[list[int], FrameAssembler]:
    """Feed a clip; frame indices in the order they came out."""
    assembler = FrameAssembler()
    out: list[int] = []
    base: int | None = None
    for index, part in clip.arrivals:
        frame_id = clip.first + index & 0xFFFF
        if base is None:
            base = frame_id - index
        assembler.add(
            (0, frame_id, part, clip.counts[index]),
            clip.keys[index],
            index,
            b"%d.%d;" % (index, part),
            0.0,
        )
        for number, frame in assembler.poll(0.0):
            index_out = number - base
            assert frame.rtp_time == index_out
            assert b"".join(frame.payloads()) == b"".join(
                b"%d.%d;" % (index_out, piece) for piece in range(clip.counts[index_out])
            )
            out.append(index_out)
    return out, assembler


@settings(deadline=None)
@given(clips(lossless=True))
def test_without_loss_every_frame_comes_out_once_and_in_order(clip: Clip) -> None:
    out, assembler = _assemble(clip)
    assert out == list(range(len(clip.keys)))
    assembler.close()
    assert assembler.bytes_held == 0
    assert (assembler.lost, assembler.skipped) == (0, 0)


@settings(deadline=None, max_examples=300)
@given(clips(lossless=False))
def test_whatever_arrives_only_whole_chains_come_out_and_the_counts_add_up(clip: Clip) -> None:
    out, assembler = _assemble(clip)
    assert out == sorted(set(out))
    arrived = set(clip.arrivals)
    for index in out:
        assert clip.keys[index] or index - 1 in out
        assert all((index, part) in arrived for part in range(clip.counts[index]))
    assembler.close()
    assert assembler.bytes_held == 0
    assert len(out) + assembler.lost + assembler.skipped == assembler.take_seen()
