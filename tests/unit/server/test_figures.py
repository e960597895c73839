"""The figures of a process that serves no API."""

import socket
from typing import Any

import httpx2
import pytest

from msgsvc_core.kernel.errors import SettingsError
from msgsvc_core.server import serving_metrics
from msgsvc_devkit.fixtures import ServiceFactory
from tests.expectations import failing


@pytest.fixture
async def service(make_service: ServiceFactory) -> Any:
    return await make_service(jobs={"runner": "none"})


async def test_a_worker_shows_its_figures_on_a_port_of_its_own(service: Any) -> None:
    async with (
        serving_metrics(service.metrics, service.settings, port=0) as port,
        httpx2.AsyncClient() as client,
    ):
        figures = await client.get(f"http://127.0.0.1:{port}/metrics")
        health = await client.get(f"http://127.0.0.1:{port}/healthz")
        other = await client.get(f"http://127.0.0.1:{port}/v1/project")

    assert figures.status_code == health.status_code == 200
    assert "\nmsgsvc_jobs{" in figures.text
    assert "\nprocess_resident_memory_bytes " in figures.text
    assert (other.status_code, other.json()["code"]) == (404, "not_found")


async def test_they_are_for_the_same_readers_as_those_of_the_api(service: Any) -> None:
    async with (
        serving_metrics(service.metrics, service.settings, port=0) as port,
        httpx2.AsyncClient() as client,
    ):
        url = f"http://127.0.0.1:{port}/metrics"
        answer = await client.get(url, headers={"X-Forwarded-For": "203.0.113.7"})

    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")


async def test_without_a_port_nothing_is_served(service: Any) -> None:
    async with serving_metrics(service.metrics, service.settings) as port:
        assert port == 0


async def test_the_port_is_free_again_afterwards(service: Any) -> None:
    async with serving_metrics(service.metrics, service.settings, port=0) as port:
        pass

    with socket.create_server(("127.0.0.1", port)):
        pass


async def test_a_taken_port_is_named(service: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        named = failing(SettingsError, match=f"metrics.worker_port: .*port {port}")
        async with named, serving_metrics(service.metrics, service.settings, port=port):
            pass
