"""What browsers are told with every answer: to come by https only, and what a page may use."""

from typing import Any

import pytest

from msgsvc_devkit.fixtures import ServiceFactory
from tests.hostile.asking import Stranger
from tests.hostile.entry_points import public_pages
from tests.hostile.place import furnish

#: What every page has; not `X-Frame-Options`, for a mini app is framed.
OF_PAGES = (
    "content-security-policy",
    "permissions-policy",
    "referrer-policy",
    "x-content-type-options",
)


@pytest.mark.parametrize(
    ("base_url", "server", "sent"),
    [
        ("https://msgsvc.example", {}, "max-age=31536000"),
        ("https://msgsvc.example", {"hsts_seconds": 60}, "max-age=60"),
        ("https://msgsvc.example", {"hsts_seconds": 0}, None),
        ("http://msgsvc.example", {}, None),
    ],
)
async def test_https_is_asked_for_by_every_kind_of_answer(
    make_service: ServiceFactory, base_url: str, server: dict[str, int], sent: str | None
) -> None:
    service = await make_service(base_url=base_url, server=server)
    stranger = Stranger(service.app)
    paths = ("/healthz", "/docs", "/docs/docs.css", "/nothing", "/v1/project", "/v1/send", "/\0")
    answers = [await stranger.ask("GET", path) for path in paths]

    assert {answer.headers.get("strict-transport-security") for answer in answers} == {sent}


async def test_every_page_says_what_it_may_use(
    make_service: ServiceFactory, make_tenant: Any
) -> None:
    place = await furnish(make_service, make_tenant)
    stranger = Stranger(place.service.app)
    lacking, pages = [], 0
    paths = [page.path for page in public_pages(place.service)]
    paths += [each.path for each in place.service.endpoints if each.media_type == "text/html"]
    for path in paths:
        reply = await stranger.ask("GET", place.path(path))
        if reply.headers.get("content-type", "").startswith("text/html"):
            pages += 1
            missing = [name for name in OF_PAGES if name not in reply.headers]
            lacking += [(path, missing)] if missing else []

    assert lacking == []
    assert pages > 10
    assert "/login/{slug}/app" in paths
