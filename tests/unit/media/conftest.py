"""Pictures for the codec tests, drawn once."""

from typing import Any

import pytest

from streamd.bench.codec_inputs import built_in


@pytest.fixture(scope="session")
def medium() -> list[Any]:
    """The 300 pictures of the built-in clip "medium", 352x288."""
    return built_in("medium")


@pytest.fixture(scope="session")
def small(medium: list[Any]) -> list[Any]:
    """30 pictures of 176x144."""
    return [picture.reformat(176, 144) for picture in medium[:30]]
