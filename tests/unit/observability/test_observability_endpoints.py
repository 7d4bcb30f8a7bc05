"""The pages of a daemon."""

from http import HTTPStatus

import pytest
from prometheus_client import generate_latest

from streamd.histogram import Histogram
from streamd.observability.endpoints import pages, render_metrics
from streamd.observability.http import Page
from streamd.observability.metrics import new_registry

pytestmark = pytest.mark.asyncio


def daemon_pages(missing: list[str]) -> dict[str, Page]:
    return pages(
        role="sender",
        registry=new_registry(Histogram((1,))),
        missing=lambda: missing,
        config_text="fps = 30\n",
    )


async def test_health_does_not_depend_on_readiness() -> None:
    missing = ["media socket"]
    served = daemon_pages(missing)
    assert (await served["/-/healthy"]()).status == HTTPStatus.OK
    answer = await served["/-/ready"]()
    assert answer.status == HTTPStatus.SERVICE_UNAVAILABLE
    assert answer.body == b"not ready:\nmedia socket\n"
    missing.clear()
    answer = await served["/-/ready"]()
    assert (answer.status, answer.body) == (HTTPStatus.OK, b"ready\n")


async def test_metrics_and_configuration() -> None:
    served = daemon_pages([])
    metrics = await served["/metrics"]()
    assert metrics.content_type == "text/plain; version=0.0.4; charset=utf-8"
    assert b"streamd_build_info{" in metrics.body
    assert (await served["/config"]()).body == b"fps = 30\n"


async def test_the_landing_page_links_to_the_others() -> None:
    served = daemon_pages([])
    landing = (await served["/"]()).body.decode()
    assert all(f'href="{path}"' in landing for path in served if path != "/")


async def test_metrics_made_in_steps_are_those_made_at_once() -> None:
    registry = new_registry(Histogram((1,)))

    def names(text: bytes) -> list[str]:
        return [line for line in text.decode().splitlines() if line.startswith("#")]

    assert names(await render_metrics(registry)) == names(generate_latest(registry))
