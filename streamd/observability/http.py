"""A small HTTP/1.1 server for the daemon's own pages: GET and HEAD, nothing else.

Why not a library: prometheus_client's server runs threads of its own, which take
the interpreter from the packet loop for up to a switch interval (5 ms), and a web
framework is larger than the daemon. Everything a client sends is bounded in size and time.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus

from streamd.config.units import HostPort
from streamd.errors import StartupError

MAX_HEAD_BYTES = 8192
MAX_CONNECTIONS = 32
HEAD_TIMEOUT = 5.0
"""Longest time (s) from the first byte of a request to its last, and for sending an answer."""
IDLE_TIMEOUT = 75.0
"""Longest time (s) a kept connection waits for its next request."""

TEXT = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Response:
    """What a page answers."""

    body: bytes
    status: HTTPStatus = HTTPStatus.OK
    content_type: str = TEXT


Page = Callable[[], Awaitable[Response]]


class _Refused(Exception):
    """A request that gets an error and the end of its connection."""

    def __init__(self, status: HTTPStatus, *headers: str) -> None:
        super().__init__(status.phrase)
        self.status = status
        self.headers = headers


@dataclass(frozen=True, slots=True)
class _Request:
    head_only: bool
    path: str
    keep: bool


class HttpServer:
    """Serves pages by exact path."""

    def __init__(self, pages: Mapping[str, Page]) -> None:
        self._pages = pages
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def start(self, host: str, port: int) -> HostPort:
        """Bind and listen; gives the address bound. StartupError when it is not to be had."""
        try:
            self._server = await asyncio.start_server(
                self._connected, host or None, port, limit=MAX_HEAD_BYTES
            )
        except OSError as error:
            where = HostPort(host, port)
            reason = error.strerror or str(error)
            raise StartupError(f"HTTP endpoints: cannot bind {where}: {reason}") from error
        bound = self._server.sockets[0].getsockname()
        return HostPort(bound[0], bound[1])

    async def close(self) -> None:
        """Stop listening and end every connection."""
        if self._server is None:
            return
        self._server.close()
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await self._server.wait_closed()
        self._server = None

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._connections) >= MAX_CONNECTIONS:
            writer.transport.abort()
            return
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            # A client that vanishes, stalls or breaks off is none of our trouble.
            with contextlib.suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
                await self._serve(reader, writer)
        finally:
            self._connections.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        keep, extra = True, tuple[str, ...]()
        while keep:
            try:
                request = _parse(await _read_head(reader))
                response = await self._answer(request.path)
                head_only, keep = request.head_only, request.keep
            except _Refused as refused:
                response = Response(f"{refused}\n".encode(), refused.status)
                extra, head_only, keep = refused.headers, False, False
            writer.write(_format(response, extra, head_only=head_only, keep=keep))
            async with asyncio.timeout(HEAD_TIMEOUT):
                await writer.drain()

    async def _answer(self, path: str) -> Response:
        page = self._pages.get(path)
        if page is None:
            return Response(b"Not Found\n", HTTPStatus.NOT_FOUND)
        return await page()


async def _read_head(reader: asyncio.StreamReader) -> bytes:
    """Everything up to the empty line."""
    async with asyncio.timeout(IDLE_TIMEOUT):
        first = await reader.readexactly(1)
    try:
        async with asyncio.timeout(HEAD_TIMEOUT):
            return first + await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        raise _Refused(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE) from None
    except TimeoutError:
        raise _Refused(HTTPStatus.REQUEST_TIMEOUT) from None


def _parse(head: bytes) -> _Request:
    """The request of a head; _Refused when it is not one we serve."""
    start, *fields = head[:-4].decode("latin-1").split("\r\n")
    parts = start.split(" ")
    if len(parts) != 3 or parts[2] not in ("HTTP/1.1", "HTTP/1.0"):
        raise _Refused(HTTPStatus.BAD_REQUEST)
    method, target, version = parts
    headers = {}
    for field in fields:
        name, colon, value = field.partition(":")
        if not colon or not name or name != name.strip():
            raise _Refused(HTTPStatus.BAD_REQUEST)
        headers[name.lower()] = value.strip().lower()
    if method not in ("GET", "HEAD"):
        raise _Refused(HTTPStatus.METHOD_NOT_ALLOWED, "Allow: GET, HEAD")
    if headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
        raise _Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    keep = headers.get("connection", "keep-alive" if version == "HTTP/1.1" else "close")
    return _Request(method == "HEAD", target.partition("?")[0], keep == "keep-alive")


def _format(response: Response, extra: tuple[str, ...], *, head_only: bool, keep: bool) -> bytes:
    lines = (
        f"HTTP/1.1 {response.status.value} {response.status.phrase}",
        f"Content-Type: {response.content_type}",
        f"Content-Length: {len(response.body)}",
        f"Connection: {'keep-alive' if keep else 'close'}",
        "X-Content-Type-Options: nosniff",
        *extra,
        "\r\n",
    )
    return "\r\n".join(lines).encode("latin-1") + (b"" if head_only else response.body)
