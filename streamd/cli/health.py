"""`streamd health`: what a container's health check runs; images have no curl."""

import http.client
import sys
from urllib.parse import urlsplit

import typer

from streamd.config.units import parse_duration

MAX_ANSWER_BYTES = 65536


def ask(url: str, timeout: str) -> int:
    """0 if the page answers 200 within `timeout`, else 1 with the reason on stderr."""
    parts = urlsplit(url)
    try:
        seconds = parse_duration(timeout)
        port = parts.port
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    if parts.scheme != "http" or not parts.hostname or seconds <= 0:
        raise typer.BadParameter(
            f"{url!r} is not an http:// address, or the timeout is not above 0"
        )
    # Straight to the host: a proxy from the environment has no business with our own health.
    connection = http.client.HTTPConnection(parts.hostname, port, timeout=seconds)
    try:
        connection.request("GET", parts.path or "/")
        answer = connection.getresponse()
        text = answer.read(MAX_ANSWER_BYTES).decode("utf-8", "replace").strip()
    except (OSError, http.client.HTTPException) as error:
        print(f"streamd health: {url}: {str(error) or type(error).__name__}", file=sys.stderr)
        return 1
    finally:
        connection.close()
    print(text, file=sys.stdout if answer.status == 200 else sys.stderr)
    return 0 if answer.status == 200 else 1
