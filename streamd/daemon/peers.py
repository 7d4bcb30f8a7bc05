"""The peer's name: resolved at the start, and again while the peer is silent.

A container that restarts, or a host that moves, keeps its name and changes its
address; whoever streams to it must notice without being restarted.
"""

import asyncio
from collections.abc import Callable

from streamd.config.units import HostPort
from streamd.datagram import Address
from streamd.errors import StreamdError
from streamd.io.address import resolve
from streamd.observability import logs

log = logs.get_logger("streamd.daemon.peer")

LOOK_INTERVAL = 0.5


class PeerName:
    """`HOST:PORT` and the task that looks it up again."""

    def __init__(self, name: HostPort) -> None:
        self._name = name
        self._address: Address | None = None
        self._task: asyncio.Task[None] | None = None

    async def resolve(self) -> Address:
        """The address now; StartupError or ConfigError when there is none."""
        self._address = await resolve(self._name.host, self._name.port)
        return self._address

    def look_again(self, moved: Callable[[Address], None]) -> None:
        """Resolve twice a second until `stop_looking`; calls `moved` with each new address."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._look(moved))

    def stop_looking(self) -> None:
        """The peer is heard again."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    close = stop_looking

    async def _look(self, moved: Callable[[Address], None]) -> None:
        before = self._address
        while True:
            await asyncio.sleep(LOOK_INTERVAL)
            try:
                address = await self.resolve()
            except StreamdError as error:
                log.debug("peer_unresolved", error=str(error))
                continue
            if address != before:
                before = address
                moved(address)
