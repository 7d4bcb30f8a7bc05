"""The peer's name: looked up again while it is silent, whatever the answers."""

import asyncio
import socket
from collections.abc import Iterator

import pytest

from streamd.config.units import HostPort
from streamd.daemon import peers
from streamd.daemon.peers import PeerName
from streamd.datagram import Address
from streamd.errors import ConfigError, StartupError, StreamdError

pytestmark = pytest.mark.asyncio

PATIENCE = 20.0
OLD: Address = ("192.0.2.1", 5004)
NEW: Address = ("192.0.2.2", 5004)


class Names:
    """Stands in for the resolver: one answer per question, the last one for ever."""

    def __init__(self, *answers: Address | StreamdError) -> None:
        self._answers: Iterator[Address | StreamdError] = iter(answers)
        self._last: Address | StreamdError = OLD
        self.asked: list[tuple[str, int, int]] = []
        self._again = asyncio.Event()

    async def resolve(self, host: str, port: int, *, family: int) -> Address:
        self.asked.append((host, port, family))
        self._again.set()
        self._last = next(self._answers, self._last)
        if isinstance(self._last, StreamdError):
            raise self._last
        return self._last

    async def until_asked(self, times: int) -> None:
        async with asyncio.timeout(PATIENCE):
            while len(self.asked) < times:
                self._again.clear()
                await self._again.wait()


def install(monkeypatch: pytest.MonkeyPatch, names: Names) -> None:
    monkeypatch.setattr(peers, "resolve", names.resolve)
    monkeypatch.setattr(peers, "LOOK_INTERVAL", 0)


async def test_silence_tells_the_configured_address_once_and_every_new_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = Names(OLD, OLD, OLD, StartupError("no such host"), OLD, NEW, NEW)
    install(monkeypatch, names)
    peer = PeerName(HostPort("receiver", 5004))
    assert await peer.resolve() == OLD
    told: list[tuple[Address, bool]] = []
    peer.look_again(lambda address, new: told.append((address, new)))
    peer.look_again(lambda address, new: told.append((address, new)))
    await names.until_asked(10)
    peer.stop_looking()
    peer.stop_looking()
    assert told == [(OLD, False), (NEW, True)]
    # The next silence begins from what is known by then.
    asked = len(names.asked)
    peer.look_again(lambda address, new: told.append((address, new)))
    await names.until_asked(asked + 2)
    peer.close()
    assert told[2:] == [(NEW, False)]


async def test_an_address_our_socket_cannot_reach_is_tried_again_and_no_crash(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = Names(OLD, ("2001:db8::1", 5004, 0, 0), ("2001:db8::1", 5004, 0, 0), NEW)
    install(monkeypatch, names)
    peer = PeerName(HostPort("receiver", 5004))
    await peer.resolve()
    reached: list[Address] = []

    def moved(address: Address, _new: bool) -> None:
        if ":" in address[0]:
            raise ConfigError("an IPv4 socket cannot reach it")
        reached.append(address)

    peer.look_again(moved)
    await names.until_asked(6)
    peer.close()
    assert reached == [NEW]


@pytest.mark.parametrize(
    ("listen", "family"),
    [
        (None, socket.AF_UNSPEC),
        (HostPort("", 5004), socket.AF_UNSPEC),
        (HostPort("::1", 5004), socket.AF_UNSPEC),
        (HostPort("127.0.0.1", 0), socket.AF_INET),
    ],
)
async def test_only_addresses_of_a_family_we_can_reach_are_asked_for(
    monkeypatch: pytest.MonkeyPatch, listen: HostPort | None, family: int
) -> None:
    names = Names(OLD)
    install(monkeypatch, names)
    await PeerName(HostPort("receiver", 5004), listen=listen).resolve()
    assert names.asked == [("receiver", 5004, family)]
