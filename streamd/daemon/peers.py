"""The peer's name: resolved at the start, and again while the peer is silent.

A container that restarts, or a host that moves, keeps its name and changes its
address; whoever streams to it must notice without being restarted. And a peer
that had moved by itself and then fell silent may be back where it was configured.
"""

import asyncio
import socket
from collections.abc import Callable

from streamd.config.units import HostPort
from streamd.datagram import Address
from streamd.errors import StreamdError
from streamd.io.address import resolve
from streamd.observability import logs

log = logs.get_logger("streamd.daemon.peer")

LOOK_INTERVAL = 0.5

Moved = Callable[[Address, bool], None]


class PeerName:
    """`HOST:PORT` and the task that looks it up again."""

    def __init__(self, name: HostPort, *, listen: HostPort | None = None) -> None:
        """`listen`: where our socket is bound, as configured; only what it can reach is asked for.

        A socket of IPv6, or of no address in particular, reaches either family.
        """
        self._name = name
        ipv4 = listen is not None and bool(listen.host) and ":" not in listen.host
        self._family = socket.AF_INET if ipv4 else socket.AF_UNSPEC
        self._address: Address | None = None
        self._task: asyncio.Task[None] | None = None

    async def resolve(self) -> Address:
        """The address now; StartupError or ConfigError when there is none."""
        self._address = await resolve(self._name.host, self._name.port, family=self._family)
        return self._address

    def look_again(self, moved: Moved) -> None:
        """The peer is silent: resolve twice a second until `stop_looking`.

        Calls `moved` with the first address found, and with each new one: True if it is new.
        """
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._look(moved))

    def stop_looking(self) -> None:
        """The peer is heard again."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    close = stop_looking

    async def _look(self, moved: Moved) -> None:
        before, told = self._address, False
        while True:
            await asyncio.sleep(LOOK_INTERVAL)
            try:
                address = await self.resolve()
                if address != before or not told:
                    moved(address, address != before)
                    before, told = address, True
            except StreamdError as error:
                log.debug("peer_unresolved", error=str(error))
