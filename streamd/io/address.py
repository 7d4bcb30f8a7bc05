"""Addresses as the user writes them, and as the socket module wants them."""

import asyncio
import re
import socket

from streamd.datagram import Address
from streamd.errors import ConfigError, StartupError

_BRACKETED = re.compile(r"\[([^\[\]]*)\]:([^:]*)\Z")
_MAPPED = "::ffff:"


def parse_host_port(text: str, *, listen: bool = False) -> tuple[str, int]:
    """Split `HOST:PORT`, `[IPV6]:PORT` or `:PORT`; ConfigError on anything else.

    An empty host (every address) and port 0 (any free one) make sense only to
    `listen` on; a peer needs both.
    """
    if match := _BRACKETED.match(text):
        host, port_text = match.groups()
    else:
        host, colon, port_text = text.rpartition(":")
        if not colon:
            raise ConfigError(f"address {text!r} has no port: write HOST:PORT")
        if ":" in host or "[" in host:
            raise ConfigError(f"address {text!r}: write an IPv6 address as [ADDRESS]:PORT")
    port = _port(port_text, text)
    if not listen and not host:
        raise ConfigError(f"address {text!r} names no host")
    if not listen and port == 0:
        raise ConfigError(f"address {text!r}: a peer's port is 1 to 65535")
    return host, port


def _port(port_text: str, text: str) -> int:
    if port_text.isascii() and port_text.isdigit() and len(port_text) <= 5:
        port = int(port_text)
        if port <= 65535:
            return port
    raise ConfigError(f"address {text!r}: port {port_text!r} is not a number from 0 to 65535")


def format_address(address: Address) -> str:
    """`HOST:PORT` for people, IPv6 in brackets and IPv4-mapped as plain IPv4."""
    host, port = str(address[0]), address[1]
    if host.startswith(_MAPPED) and "." in host:
        host = host.removeprefix(_MAPPED)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


async def resolve(host: str, port: int, *, family: int = socket.AF_UNSPEC) -> Address:
    """The first UDP address of `host` in the system's order of preference.

    ConfigError if `host` cannot be a name; StartupError if it has no address now.
    """
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, port, family=family, type=socket.SOCK_DGRAM)
    except (UnicodeError, ValueError) as error:
        raise ConfigError(f"{host!r} is not a host name: {error}") from None
    except OSError as error:
        raise StartupError(f"cannot resolve host {host!r}: {error.strerror or error}") from None
    if not found:
        raise StartupError(f"cannot resolve host {host!r}: it has no address")
    return found[0][4]


def for_family(address: Address, family: int) -> Address:
    """`address` as a socket of `family` sends to it and reports it; ConfigError if it cannot."""
    host, port = str(address[0]), address[1]
    scope = address[3] if len(address) > 3 else 0
    if family == socket.AF_INET6:
        if ":" not in host:
            return (_MAPPED + host, port, 0, 0)
        return (_canonical(host), port, 0, scope)
    if ":" not in host:
        return (host, port)
    if host.startswith(_MAPPED) and "." in host:
        return (host.removeprefix(_MAPPED), port)
    raise ConfigError(f"an IPv4 socket cannot reach {format_address(address)}")


def _canonical(host: str) -> str:
    """The one spelling the kernel's answers are written in; a zone stays with its scope number."""
    try:
        return socket.inet_ntop(socket.AF_INET6, socket.inet_pton(socket.AF_INET6, host))
    except OSError:
        raise ConfigError(f"{host!r} is not a numeric IPv6 address") from None
