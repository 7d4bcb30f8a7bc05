"""Each cause of a freeze, and that the stronger one wins."""

from streamd.qoe.causes import FreezeCause, freeze_cause


def cause(
    *,
    refused: int = 0,
    silence: float = 0.1,
    missing: int = 0,
    captured_gap: float | None = 0.033,
) -> FreezeCause:
    """Of a freeze of half a second."""
    return freeze_cause(
        0.5, refused=refused, silence=silence, missing=missing, captured_gap=captured_gap
    )


def test_each_cause_alone() -> None:
    assert cause(refused=1) == "decoder"
    assert cause(silence=0.25) == "outage"
    assert cause(missing=1) == "loss"
    assert cause(captured_gap=0.25) == "source"
    assert cause() == "delay"
    assert cause(captured_gap=None) == "delay"


def test_the_order_of_causes() -> None:
    assert cause(refused=2, silence=0.5, missing=3, captured_gap=0.5) == "decoder"
    assert cause(silence=0.5, missing=3, captured_gap=0.5) == "outage"
    assert cause(silence=0.2, missing=3, captured_gap=0.5) == "loss"
