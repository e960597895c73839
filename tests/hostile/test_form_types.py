"""What is sent to a page and is no form of a browser's is answered with a page that says so."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from msgsvc_core.service import Service
from msgsvc_dashboard.frame.browser import CSRF_HEADER, csrf_token
from msgsvc_devkit.fixtures import ServiceFactory
from tests.dashboard.walking import at, pages_of
from tests.hostile.asking import FORM, Stranger
from tests.hostile.entry_points import public_pages
from tests.hostile.place import furnish

#: What programs send bodies to: they get JSON.
OF_PROGRAMS = re.compile(
    r"/hooks/|/compat/|/oidc/{project_id}/"
    r"(token|par|introspect|revoke|device_authorization|bc-authorize|register|userinfo)"
)

#: Content types, and whether the body is compressed.
BODIES: dict[str, tuple[bytes | None, bool]] = {
    "no type": (None, False),
    "JSON": (b"application/json", False),
    "text": (b"text/plain", False),
    "multipart without a boundary": (b"multipart/form-data", False),
    "compressed": (FORM, True),
}

#: By which forms tell a browser from a script of a site.
BROWSER = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}

_HEADING = re.compile(r"<h1[^>]*>(.*?)</h1>", re.DOTALL)


def paths(service: Service, body: str) -> Iterator[str]:
    for page in public_pages(service):
        # Sites post JSON to forms, and get JSON.
        takes_it = body == "JSON" and page.path == "/f/{form_id}"
        if "POST" in page.methods and not OF_PROGRAMS.match(page.path) and not takes_it:
            yield page.path


def wrong_with(status: int, content_type: str, html: str) -> str | None:
    """What a person would not understand about an answer."""
    if status in {302, 303}:
        return None
    if not content_type.startswith("text/html"):
        return f"{status} {content_type}: {html[:80]}"
    heading = _HEADING.search(html)
    if heading is None:
        return f"{status} without a heading"
    if status < 400 or (status < 500 and "on our side" not in html):
        return None
    return f"{status}: {heading[1]}"


@pytest.mark.parametrize("body", BODIES)
async def test_a_stranger_gets_a_page_that_does_not_blame_the_service(
    make_service: ServiceFactory, make_tenant: Any, body: str
) -> None:
    place = await furnish(make_service, make_tenant)
    stranger = Stranger(place.service.app, headers=BROWSER)
    content_type, is_compressed = BODIES[body]
    headers = [(b"content-encoding", b"gzip")] if is_compressed else []
    asked, odd = [*paths(place.service, body)], {}
    for path in asked:
        reply = await stranger.ask(
            "POST",
            place.path(path),
            body=b'{"a": 1}',
            content_type=content_type,
            headers=headers,
        )
        kind = reply.headers.get("content-type", "")
        if wrong := wrong_with(reply.status, kind, reply.body.decode()):
            odd[path] = wrong

    assert len(asked) > 15
    assert odd == {}


async def test_a_page_that_takes_forms_alone_is_explained_to_whoever_opens_it(
    make_service: ServiceFactory, make_tenant: Any
) -> None:
    """As by Enter in the address bar, after a form was sent."""
    place = await furnish(make_service, make_tenant)
    browser = Stranger(place.service.app, headers=BROWSER)
    program = Stranger(place.service.app)
    odd = {}
    posted = [
        page.path
        for page in public_pages(place.service)
        if "GET" not in page.methods and not OF_PROGRAMS.match(page.path)
    ]
    for path in posted:
        shown = await browser.ask("GET", place.path(path))
        told = await program.ask("GET", place.path(path))
        kind = shown.headers.get("content-type", "")
        if wrong := wrong_with(shown.status, kind, shown.body.decode()):
            odd[path] = wrong
        if shown.status == 405:
            assert shown.headers["allow"] == told.headers["allow"] == "POST"
            assert told.headers["content-type"] == "application/json"

    assert "/code/{token}/again" in posted
    assert odd == {}


@pytest.mark.parametrize("body", ["JSON", "text", "compressed"])
async def test_a_page_of_the_dashboard_that_gets_no_form_says_so(
    make_service: ServiceFactory, make_tenant: Any, body: str
) -> None:
    place = await furnish(make_service, make_tenant)
    content_type, is_compressed = BODIES[body]
    assert content_type is not None
    headers = {"content-type": content_type.decode()}
    if is_compressed:
        headers["content-encoding"] = "gzip"
    asked, odd = 0, {}
    for page in pages_of(place.service):
        walk = at(page, place.tenant.project.project_id, place.ids)
        if page.method != "POST":
            continue
        who = place.operator if "/operator/" in walk.url else place.owner
        token = csrf_token(place.service.secrets, who.session_id)
        answer = await who.client.post(
            walk.url, content=b'{"a": 1}', headers={**headers, CSRF_HEADER: token}
        )
        if answer.status_code == 303:
            # A page that reads no form, or redirects people who are signed in.
            continue
        asked += 1
        heading = _HEADING.search(answer.text)
        shown = heading[1] if heading else answer.text[:80]
        if (answer.status_code, shown) != (415, "This form can&#39;t be read"):
            odd[str(walk)] = (answer.status_code, shown)

    assert asked > 100
    assert odd == {}


async def test_the_page_is_in_the_language_of_the_browser(
    make_service: ServiceFactory, make_tenant: Any
) -> None:
    place = await furnish(make_service, make_tenant)
    stranger = Stranger(place.service.app, headers={"accept-language": "ru"})
    shown = [
        await stranger.ask(
            "POST",
            place.path(path),
            body=b"a=1",
            content_type=FORM,
            headers=[(b"content-encoding", b"gzip")],
        )
        for path in ("/preferences/{token}", "/code/{token}", "/sandbox")
    ]

    assert [each.status for each in shown] == [415] * 3
    for each in shown:
        assert "Не удалось прочитать форму" in each.body.decode()
