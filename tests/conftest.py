"""What all tests share: the event loop is uvloop, as in the daemons."""

import asyncio
from collections.abc import Callable, Mapping

import pytest
import uvloop


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Tests of the socket shell run on the standard loop as well: both are supported."""
    factories: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
        "uvloop": uvloop.new_event_loop
    }
    if item.path.name.startswith("test_io_"):
        factories["asyncio"] = asyncio.new_event_loop
    return factories
