"""The HTTP server against clients good and bad, on real loopback sockets."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from streamd.config.units import HostPort
from streamd.errors import StartupError
from streamd.observability import http
from streamd.observability.http import HttpServer, Response

pytestmark = pytest.mark.asyncio


async def hello() -> Response:
    return Response(b"hello\n")


@asynccontextmanager
async def serving() -> AsyncIterator[HostPort]:
    server = HttpServer({"/": hello})
    address = await server.start("127.0.0.1", 0)
    try:
        yield address
    finally:
        await server.close()


async def exchange(address: HostPort, request: bytes, *, end: bool = True) -> bytes:
    """Everything the server says until it closes."""
    reader, writer = await asyncio.open_connection(*address)
    writer.write(request)
    if end:
        writer.write_eof()
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


GET = b"GET / HTTP/1.1\r\nHost: x\r\n"


async def test_a_page() -> None:
    async with serving() as address:
        answer = await exchange(address, GET + b"Connection: close\r\n\r\n")
    assert answer == (
        b"HTTP/1.1 200 OK\r\n"
        b"Content-Type: text/plain; charset=utf-8\r\n"
        b"Content-Length: 6\r\n"
        b"Connection: close\r\n"
        b"X-Content-Type-Options: nosniff\r\n\r\n"
        b"hello\n"
    )


async def test_head_has_no_body_but_its_length() -> None:
    async with serving() as address:
        answer = await exchange(address, b"HEAD / HTTP/1.0\r\n\r\n")
    assert b"Content-Length: 6\r\n" in answer
    assert answer.endswith(b"\r\n\r\n")


async def test_a_connection_is_kept_for_further_requests() -> None:
    async with serving() as address:
        answer = await exchange(address, (GET + b"\r\n") * 3)
    assert answer.count(b"HTTP/1.1 200 OK") == 3
    assert answer.count(b"Connection: keep-alive") == 3


async def test_a_query_does_not_change_the_page() -> None:
    async with serving() as address:
        answer = await exchange(address, b"GET /?a=b HTTP/1.0\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET /nothing HTTP/1.1\r\nConnection: close\r\n\r\n", 404),
        (b"GET /../etc/passwd HTTP/1.0\r\n\r\n", 404),
        (b"POST / HTTP/1.1\r\n\r\n", 405),
        (b"GET / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello", 413),
        (b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 413),
        (b"GET / HTTP/2.0\r\n\r\n", 400),
        (b"GET /\r\n\r\n", 400),
        (b"\r\n\r\n\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n folded: 1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nX: " + b"a" * 20000 + b"\r\n\r\n", 431),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\xff" * 200 + b"\r\n\r\n", 400),
    ],
    ids=lambda value: value if isinstance(value, int) else None,
)
async def test_bad_requests_are_answered_and_end_the_connection(
    request_bytes: bytes, status: int
) -> None:
    async with serving() as address:
        answer = await exchange(address, request_bytes)
        assert answer.startswith(f"HTTP/1.1 {status} ".encode())
        assert b"Connection: close\r\n" in answer
        assert answer.count(b"HTTP/1.1") == 1
        assert (await exchange(address, GET + b"\r\n")).startswith(b"HTTP/1.1 200 ")


async def test_garbage_gets_no_further_than_an_error() -> None:
    rng = random.Random(5)
    async with serving() as address:
        for _ in range(200):
            garbage = rng.randbytes(rng.randrange(1, 3000))
            answer = await exchange(address, garbage)
            assert answer == b"" or answer[:12] in (b"HTTP/1.1 400", b"HTTP/1.1 431")
        assert (await exchange(address, GET + b"\r\n")).startswith(b"HTTP/1.1 200 ")


async def test_a_client_that_breaks_off_is_forgotten() -> None:
    async with serving() as address:
        assert await exchange(address, b"GET / HT") == b""
        assert await exchange(address, b"") == b""
        assert (await exchange(address, GET + b"\r\n")).startswith(b"HTTP/1.1 200 ")


async def test_a_client_that_stalls_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "HEAD_TIMEOUT", 0.01)
    monkeypatch.setattr(http, "IDLE_TIMEOUT", 0.01)
    async with serving() as address:
        assert (await exchange(address, b"GET /", end=False)).startswith(b"HTTP/1.1 408 ")
        assert await exchange(address, b"", end=False) == b""


async def test_connections_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "MAX_CONNECTIONS", 2)
    async with serving() as address:
        held = [await asyncio.open_connection(*address) for _ in range(2)]
        for reader, writer in held:
            writer.write(GET + b"\r\n")
            assert (await reader.readuntil(b"hello\n")).startswith(b"HTTP/1.1 200 ")
        assert await exchange(address, GET + b"\r\n") == b""
        held[0][1].write_eof()
        assert await held[0][0].read() == b""
        held[0][1].close()
        assert (await exchange(address, GET + b"\r\n")).startswith(b"HTTP/1.1 200 ")
        reader, writer = held[1]
        writer.write(GET + b"\r\n")
        assert (await reader.readuntil(b"hello\n")).startswith(b"HTTP/1.1 200 ")
        writer.close()


async def test_closing_ends_what_is_open() -> None:
    server = HttpServer({"/": hello})
    address = await server.start("127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*address)
    writer.write(GET + b"\r\n")
    await reader.readuntil(b"hello\n")
    await server.close()
    assert await reader.read() == b""
    writer.close()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(*address)


async def test_a_port_in_use_is_one_clear_error() -> None:
    async with serving() as address:
        with pytest.raises(StartupError) as caught:
            await HttpServer({}).start("127.0.0.1", address.port)
    assert caught.value.exit_code == 3
    text = str(caught.value)
    assert text.startswith(f"HTTP endpoints: cannot bind 127.0.0.1:{address.port}: ")
    assert "address already in use" in text.lower()


async def test_a_server_never_started_can_be_closed() -> None:
    await HttpServer({}).close()
