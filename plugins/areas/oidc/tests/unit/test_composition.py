"""The plugin's objects are built from parts of the core, and from nothing else."""

from types import ModuleType

import pytest

from msgsvc_devkit import FakeContext, plugin_context
from msgsvc_oidc import plugin
from msgsvc_oidc.composition.background import BackgroundJobs
from msgsvc_oidc.composition.endpoints import ClientEndpoints
from msgsvc_oidc.composition.pages import BrowserPages
from msgsvc_oidc.composition.records import Records
from msgsvc_oidc.composition.requests import Requests
from msgsvc_oidc.protocol.discovery import metadata
from msgsvc_oidc.settings import OidcSettings


@pytest.fixture
def core() -> FakeContext:
    declared: ModuleType = plugin
    return plugin_context(plugin=declared, settings=[OidcSettings(registration=True)])


async def test_every_job_of_a_lane_has_a_handler_and_all_ends(core: FakeContext) -> None:
    jobs = BackgroundJobs(core, Records(core))
    names = [spec.name for spec in jobs.specs()]

    assert len(names) == len(set(names))
    assert {"oidc.purge", "oidc.rotate_keys"} < set(names)
    assert jobs.lanes()
    await jobs.close()


def test_every_endpoint_of_the_metadata_has_a_route(core: FakeContext) -> None:
    records = Records(core)
    requests = Requests(core, records)
    endpoints = ClientEndpoints(core, records, requests).routes()
    pages = BrowserPages(core, records, requests).routes()

    paths = {getattr(route, "path", "") for route in (*endpoints, *pages)}
    found = metadata("/oidc/{project_id}", languages=["en"], registers=True)
    published = {
        value for name, value in found.items() if name == "jwks_uri" or name.endswith("_endpoint")
    }
    assert len(published) >= 10
    assert published <= paths
