"""The pages every daemon serves: metrics, health, readiness, configuration."""

import asyncio
from collections.abc import Callable, Iterator
from html import escape
from http import HTTPStatus

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric as Family
from prometheus_client.registry import Collector

from streamd import __version__
from streamd.observability.http import Page, Response

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_FAMILIES_PER_TURN = 4
"""Metric families formatted between two turns of the loop: packets must not wait for a scrape."""


def pages(
    *,
    role: str,
    registry: CollectorRegistry,
    missing: Callable[[], list[str]],
    config_text: str,
) -> dict[str, Page]:
    """`missing` lists what is not ready; an empty list means ready."""

    async def metrics() -> Response:
        return Response(await render_metrics(registry), content_type=METRICS_TYPE)

    async def healthy() -> Response:
        return Response(b"healthy\n")

    async def ready() -> Response:
        waiting = missing()
        if not waiting:
            return Response(b"ready\n")
        text = "".join(f"{what}\n" for what in waiting)
        return Response(b"not ready:\n" + text.encode(), HTTPStatus.SERVICE_UNAVAILABLE)

    async def config() -> Response:
        return Response(config_text.encode())

    async def landing() -> Response:
        return Response(_landing(role).encode(), content_type="text/html; charset=utf-8")

    return {
        "/": landing,
        "/metrics": metrics,
        "/-/healthy": healthy,
        "/-/ready": ready,
        "/config": config,
    }


class _Single(Collector):
    """Lets one family be formatted by itself."""

    def __init__(self, family: Family) -> None:
        self._family = family

    def collect(self) -> Iterator[Family]:
        yield self._family


async def render_metrics(registry: CollectorRegistry) -> bytes:
    """All metrics in text form, made in small steps that let the loop run in between."""
    parts = []
    for number, family in enumerate(registry.collect(), 1):
        parts.append(generate_latest(_Single(family)))
        if number % _FAMILIES_PER_TURN == 0:
            await asyncio.sleep(0)
    return b"".join(parts)


def _landing(role: str) -> str:
    links = "".join(
        f'<li><a href="{path}">{path}</a> {text}</li>'
        for path, text in (
            ("/metrics", "metrics for Prometheus"),
            ("/-/healthy", "whether the process lives"),
            ("/-/ready", "whether it streams, and if not, what is missing"),
            ("/config", "the configuration in force"),
        )
    )
    title = f"streamd {escape(role)} {escape(__version__)}"
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{title}</title></head>'
        f"<body><h1>{title}</h1><ul>{links}</ul></body></html>\n"
    )
