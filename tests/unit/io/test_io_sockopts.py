"""Opening sockets, and options this system may not have."""

import errno
import socket
import struct
from typing import cast

import pytest

from streamd.errors import StartupError
from streamd.io import sockopts

LINUX_ONLY = pytest.mark.skipif(not sockopts.IS_LINUX, reason="an option of Linux")


class OptionSocket:
    """Knows the options it is told to know."""

    def __init__(self, known: dict[tuple[int, int], int] | None = None) -> None:
        self.family = socket.AF_INET
        self.known = known or {}
        self.set: list[tuple[int, int, int]] = []

    def setsockopt(self, level: int, name: int, value: int) -> None:
        if (level, name) not in self.known:
            raise OSError(errno.ENOPROTOOPT, "scripted")
        self.set.append((level, name, value))

    def getsockopt(self, level: int, name: int, size: int = 0) -> int | bytes:
        if (level, name) not in self.known:
            raise OSError(errno.ENOPROTOOPT, "scripted")
        value = self.known[level, name]
        return struct.pack("=9I", *[0] * 8, value)[:size] if size else value

    def getsockname(self) -> tuple[str, int]:
        return ("192.0.2.1", 1)

    def as_socket(self) -> socket.socket:
        return cast(socket.socket, self)


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ("6.9.0", True),
        ("6.18.44-fc", True),
        ("7.0", True),
        ("6.8.12", False),
        ("5.15.0-91-generic", False),
        ("odd", False),
    ],
)
def test_which_kernels_keep_ecn_apart(release: str, expected: bool) -> None:
    assert sockopts.gro_keeps_ecn(release) is expected


@LINUX_ONLY
def test_gro_follows_the_wish_and_else_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    sock = OptionSocket({(17, 104): 0}).as_socket()
    monkeypatch.setattr(sockopts, "gro_keeps_ecn", lambda release: False)
    assert not sockopts.ask_gro(sock, None)
    assert sockopts.ask_gro(sock, True)
    assert not sockopts.ask_gro(sock, False)
    monkeypatch.setattr(sockopts, "gro_keeps_ecn", lambda release: True)
    assert sockopts.ask_gro(sock, None)


@LINUX_ONLY
def test_on_loopback_gro_is_safe_on_any_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockopts, "gro_keeps_ecn", lambda release: False)
    with sockopts.open_socket(("127.0.0.1", 0)) as sock:
        assert sockopts.ask_gro(sock, None)


@LINUX_ONLY
def test_buffers_are_forced_where_permitted_and_asked_for_otherwise() -> None:
    known = {(1, socket.SO_RCVBUF): 8_000_000, (1, sockopts.SO_RCVBUFFORCE): 0}
    forced = OptionSocket(known)
    granted = sockopts.ask_buffer(
        forced.as_socket(), socket.SO_RCVBUF, sockopts.SO_RCVBUFFORCE, 4_000_000
    )
    assert granted == 4_000_000
    assert forced.set == [(1, sockopts.SO_RCVBUFFORCE, 4_000_000)]
    asked = OptionSocket({(1, socket.SO_RCVBUF): 425984})
    granted = sockopts.ask_buffer(
        asked.as_socket(), socket.SO_RCVBUF, sockopts.SO_RCVBUFFORCE, 4_000_000
    )
    assert granted == 212992
    assert asked.set == [(1, socket.SO_RCVBUF, 4_000_000)]


@LINUX_ONLY
def test_a_buffer_of_zero_leaves_the_systems_default() -> None:
    sock = OptionSocket({(1, socket.SO_RCVBUF): 425984})
    assert sockopts.ask_buffer(sock.as_socket(), socket.SO_RCVBUF, 33, 0) == 212992
    assert sock.set == []


@LINUX_ONLY
def test_drops_are_read_or_else_come_with_the_datagrams() -> None:
    readable = OptionSocket({(1, sockopts.SO_MEMINFO): 7})
    assert sockopts.ask_drop_counts(readable.as_socket())
    assert sockopts.read_drops(readable.as_socket()) == 7
    old = OptionSocket({(1, sockopts.SO_RXQ_OVFL): 0})
    assert not sockopts.ask_drop_counts(old.as_socket())
    assert old.set == [(1, sockopts.SO_RXQ_OVFL, 1)]


def test_a_system_without_any_of_it_still_gives_a_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockopts, "IS_LINUX", False)
    monkeypatch.setattr(sockopts, "IP_RECVTOS", None)
    monkeypatch.setattr(sockopts, "IPV6_RECVTCLASS", None)
    with sockopts.open_socket(("127.0.0.1", 0)) as sock:
        sockopts.ask_ecn(sock)
        assert not sockopts.ask_errors(sock)
        assert not sockopts.ask_timestamps(sock)
        assert not sockopts.ask_drop_counts(sock)
        assert not sockopts.has_gso(sock)
        assert not sockopts.ask_gro(sock, True)
        assert sockopts.read_drops(sock) is None
        assert sockopts.ask_buffer(sock, socket.SO_RCVBUF, 33, 65536) >= 65536


def test_a_port_in_use_is_one_clear_line() -> None:
    with sockopts.open_socket(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(StartupError) as caught:
            sockopts.open_socket(("127.0.0.1", port))
    assert str(caught.value) == f"cannot open UDP 127.0.0.1:{port}: Address already in use"
    assert caught.value.exit_code == 3


@pytest.mark.parametrize(
    ("local", "message"),
    [
        (("192.0.2.1", 5004), "cannot open UDP 192.0.2.1:5004: Cannot assign requested address"),
        (("localhost", 5004), "cannot open UDP localhost:5004: not a numeric address"),
        (("::zz", 5004), "cannot open UDP [::zz]:5004: not a numeric address"),
        (("127.0.0.1", 65536), "cannot open UDP 127.0.0.1:65536: ports are 0 to 65535"),
    ],
)
def test_a_bad_local_address_is_one_clear_line(local: tuple[str, int], message: str) -> None:
    with pytest.raises(StartupError) as caught:
        sockopts.open_socket(local)
    assert str(caught.value) == message


def test_every_address_means_ipv4_alone_where_there_is_no_ipv6(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = socket.socket

    def without_ipv6(family: int, kind: int) -> socket.socket:
        if family == socket.AF_INET6:
            raise OSError(errno.EAFNOSUPPORT, "scripted")
        return real(family, kind)

    monkeypatch.setattr(socket, "socket", without_ipv6)
    with sockopts.open_socket(("", 0)) as sock:
        assert sock.family == socket.AF_INET
        assert sock.getsockname()[0] == "0.0.0.0"
