"""Addresses as users write them."""

import socket

import pytest

from streamd.errors import ConfigError, StartupError
from streamd.io.address import for_family, format_address, parse_host_port, resolve


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("example.org:5004", ("example.org", 5004)),
        ("127.0.0.1:1", ("127.0.0.1", 1)),
        ("[::1]:65535", ("::1", 65535)),
        ("[fe80::1%eth0]:5004", ("fe80::1%eth0", 5004)),
    ],
)
def test_a_peer_is_host_and_port(text: str, expected: tuple[str, int]) -> None:
    assert parse_host_port(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [(":5004", ("", 5004)), ("[::]:0", ("::", 0)), ("0.0.0.0:5004", ("0.0.0.0", 5004))],
)
def test_a_listener_may_leave_out_the_host_and_the_port(
    text: str, expected: tuple[str, int]
) -> None:
    assert parse_host_port(text, listen=True) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("localhost", "address 'localhost' has no port: write HOST:PORT"),
        ("", "address '' has no port: write HOST:PORT"),
        ("::1:5004", "address '::1:5004': write an IPv6 address as [ADDRESS]:PORT"),
        ("[::1]", "address '[::1]': write an IPv6 address as [ADDRESS]:PORT"),
        ("[::1:5004", "address '[::1:5004': write an IPv6 address as [ADDRESS]:PORT"),
        ("h:65536", "address 'h:65536': port '65536' is not a number from 0 to 65535"),
        ("h:-1", "address 'h:-1': port '-1' is not a number from 0 to 65535"),
        ("h:", "address 'h:': port '' is not a number from 0 to 65535"),
        ("h:²", "address 'h:²': port '²' is not a number from 0 to 65535"),
        (":5004", "address ':5004' names no host"),
        ("h:0", "address 'h:0': a peer's port is 1 to 65535"),
    ],
)
def test_a_bad_peer_is_one_clear_line(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_host_port(text)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("address", "text"),
    [
        (("127.0.0.1", 5004), "127.0.0.1:5004"),
        (("::1", 5004, 0, 0), "[::1]:5004"),
        (("::ffff:192.0.2.1", 5004, 0, 0), "192.0.2.1:5004"),
        (("", 5004), ":5004"),
    ],
)
def test_format_for_people(address: tuple[object, ...], text: str) -> None:
    assert format_address(address) == text


def test_a_dual_stack_socket_takes_ipv4_in_mapped_form() -> None:
    assert for_family(("192.0.2.1", 7), socket.AF_INET6) == ("::ffff:192.0.2.1", 7, 0, 0)


def test_ipv6_addresses_get_the_spelling_the_kernel_reports() -> None:
    long = ("2001:DB8:0:0:0:0:0:1", 7)
    assert for_family(long, socket.AF_INET6) == ("2001:db8::1", 7, 0, 0)
    assert for_family(("fe80::1", 7, 0, 3), socket.AF_INET6) == ("fe80::1", 7, 0, 3)


def test_an_ipv4_socket_reaches_ipv4_only() -> None:
    assert for_family(("192.0.2.1", 7), socket.AF_INET) == ("192.0.2.1", 7)
    assert for_family(("::ffff:192.0.2.1", 7, 0, 0), socket.AF_INET) == ("192.0.2.1", 7)
    with pytest.raises(ConfigError, match=r"cannot reach \[2001:db8::1\]:7"):
        for_family(("2001:db8::1", 7, 0, 0), socket.AF_INET)


def test_a_name_is_no_address() -> None:
    with pytest.raises(ConfigError, match="'no:name' is not a numeric IPv6 address"):
        for_family(("no:name", 7), socket.AF_INET6)


@pytest.mark.asyncio
async def test_numeric_hosts_resolve_to_themselves() -> None:
    assert await resolve("127.0.0.1", 5004) == ("127.0.0.1", 5004)
    assert await resolve("::1", 5004) == ("::1", 5004, 0, 0)


@pytest.mark.asyncio
async def test_a_host_without_an_address_of_the_family_fails_at_startup() -> None:
    with pytest.raises(StartupError, match=r"cannot resolve host '127\.0\.0\.1'"):
        await resolve("127.0.0.1", 5004, family=socket.AF_INET6)


@pytest.mark.asyncio
@pytest.mark.parametrize("host", ["a" * 64, "a..b"])
async def test_a_host_that_cannot_be_a_name_is_the_users_error(host: str) -> None:
    with pytest.raises(ConfigError, match="is not a host name"):
        await resolve(host, 5004)
