"""Daemons as child processes: what they are started with."""

import asyncio
from pathlib import Path

import pytest

from streamd.errors import ConfigError
from streamd.stack.process import DaemonProcess


def test_settings_in_the_environment_do_not_reach_a_child(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # A variable nobody knows is refused by a daemon that sees it.
    monkeypatch.setenv("STREAMD_NO_SUCH_SETTING", "1")

    async def run() -> int:
        child = DaemonProcess(
            "receiver", ("--listen", "127.0.0.1:0", "--metrics-port", "0"), tmp_path / "r.json"
        )
        started = await child.start()
        assert started["role"] == "receiver"
        return await child.stop()

    assert asyncio.run(run()) == 0


def test_a_child_that_is_refused_its_settings_is_quoted(tmp_path: Path) -> None:
    async def run() -> None:
        child = DaemonProcess("receiver", ("--listen", "nowhere"), tmp_path / "r.json")
        try:
            await child.start()
        finally:
            await child.kill()

    with pytest.raises(ConfigError, match="'nowhere' is not HOST:PORT"):
        asyncio.run(run())
