"""The plugin's objects, as they are built together."""

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.routing import Route

from msgsvc_core.kernel.errors import ApiError
from msgsvc_core.kernel.ids import new_id
from msgsvc_devkit.core import MemoryCore
from msgsvc_oidc.composition.background import BackgroundJobs
from msgsvc_oidc.composition.endpoints import ClientEndpoints
from msgsvc_oidc.composition.pages import BrowserPages
from msgsvc_oidc.composition.records import Records
from msgsvc_oidc.composition.requests import Requests
from msgsvc_oidc.protocol.discovery import metadata
from plugins.areas.oidc.tests.unit.provider import BASE_URL


async def test_every_job_has_a_handler_and_all_ends(core: MemoryCore, records: Records) -> None:
    jobs = BackgroundJobs(core, records)
    every_s = {spec.name: spec.every_s for spec in jobs.specs()}

    assert len(every_s) == len(jobs.specs())
    assert {name: every for name, every in every_s.items() if every} == {
        "oidc.purge": 3600,
        "oidc.rotate_keys": 3600,
    }
    assert jobs.lanes()
    await jobs.close()


def routes_of(core: MemoryCore, records: Records, requests: Requests) -> list[Route]:
    endpoints = ClientEndpoints(core, records, requests).routes()
    pages = BrowserPages(core, records, requests).routes()
    return [route for route in (*endpoints, *pages) if isinstance(route, Route)]


@pytest.mark.parametrize("core", [{"registration": True}], indirect=True)
def test_every_endpoint_of_the_metadata_has_a_route(
    core: MemoryCore, records: Records, requests: Requests
) -> None:
    paths = {route.path for route in routes_of(core, records, requests)}
    found = metadata("/oidc/{project_id}", languages=["en"], registers=True)
    published = {
        value for name, value in found.items() if name == "jwks_uri" or name.endswith("_endpoint")
    }

    assert len(published) >= 10
    assert published <= paths


async def test_nothing_is_found_of_an_unknown_issuer(
    core: MemoryCore, records: Records, requests: Requests
) -> None:
    known, unknown = new_id("prj"), new_id("prj")
    async with core.db.transaction() as tx:
        await core.project(tx, known)
    routes = routes_of(core, records, requests)
    asked = [(route, method) for route in routes for method in sorted(route.methods or ())]
    transport = httpx2.ASGITransport(Starlette(routes=routes))
    async with httpx2.AsyncClient(transport=transport, base_url=BASE_URL) as http:

        async def statuses(project_id: str) -> set[int]:
            return {
                await status(http, method, route.path_format.replace("{project_id}", project_id))
                for route, method in asked
                if method in {"GET", "POST"}
            }

        there, gone = await statuses(known), await statuses(unknown)

    assert gone == {404}
    assert 404 not in there


async def status(http: httpx2.AsyncClient, method: str, path: str) -> int:
    try:
        return (await http.request(method, path)).status_code
    except ApiError as error:
        return error.status
