"""Each file for a spreadsheet takes one of the project's shares of exports, on pages as by the API."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx2

from msgsvc_core.api.exports import Exports
from msgsvc_core.kernel.errors import RateLimitProject
from msgsvc_devkit.fixtures import ServiceFactory
from tests.dashboard.walking import at, pages_of
from tests.hostile.place import Place, furnish

Ask = Callable[[], Awaitable[httpx2.Response]]


@contextmanager
def no_share_left(place: Place) -> Iterator[None]:
    """All exports that the project may have at a time are under way."""
    exports, project_id = place.service.get(Exports), place.tenant.project.project_id
    with ExitStack() as stack:
        while True:
            try:
                stack.enter_context(exports.slot(project_id))
            except RateLimitProject:
                break
        yield


def asked(place: Place) -> dict[str, Ask]:
    """What can be asked for, by its name: every GET, and the form of the list of subscribers."""
    found: dict[str, Ask] = {}
    for endpoint in place.service.endpoints:
        path = place.path(endpoint.path)
        if endpoint.method == "GET" and endpoint.path.startswith("/v1/"):
            found[f"GET {endpoint.path}"] = lambda path=path: place.tenant.client.get(path)
    for page in pages_of(place.service):
        walk = at(page, place.tenant.project.project_id, place.ids)
        who = place.operator if "/operator/" in walk.url else place.owner
        if page.method == "GET" and "/stream" not in page.path:
            found[str(walk)] = lambda who=who, url=walk.url: who.client.get(url)
    chosen = {"who": "chosen", "id": [place.ids["subscriber_id"]], "action": "export"}
    found["POST /subscribers/bulk"] = lambda: place.owner.post("/subscribers/bulk", chosen)
    return found


async def test_no_file_is_made_beyond_the_shares_of_a_project(
    make_service: ServiceFactory, make_tenant: Any
) -> None:
    place = await furnish(make_service, make_tenant)
    files: dict[str, Ask] = {}
    for name, ask in asked(place).items():
        answer = await ask()
        if answer.headers.get("content-type", "").startswith("text/csv"):
            files[name] = ask
    with no_share_left(place):
        refused = {name: (await ask()).status_code for name, ask in files.items()}
    again = {name: (await ask()).status_code for name, ask in files.items()}

    assert {name.split(" ")[1] for name in files} >= {
        "/v1/subscribers/export",
        "/v1/people/imports/{import_id}/report",
        "/v1/forms/{form_id}/submissions/export",
        "/subscribers/export",
        "/subscribers/bulk",
        "/billing/ledger/export",
    }
    assert refused == dict.fromkeys(files, 429)
    assert again == dict.fromkeys(files, 200)
