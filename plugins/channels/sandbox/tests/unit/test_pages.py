"""The pages."""

import re
from collections.abc import Callable
from typing import Literal

import httpx2
import pytest
from starlette.routing import Router

from msgsvc_devkit import MemoryCore
from msgsvc_sandbox.admission import Admission
from msgsvc_sandbox.pages import COOKIE, SandboxPages
from msgsvc_sandbox.service import Messenger

Browser = Callable[..., httpx2.AsyncClient]


@pytest.fixture
def browser(core: MemoryCore, messenger: Messenger) -> Browser:
    """Makes browsers on this machine, at the pages alone."""

    def make(who: Literal["local", "everyone"] = "local") -> httpx2.AsyncClient:
        pages = SandboxPages(messenger, core.texts)
        app = Router(routes=pages.routes(Admission(who, "http://localhost")))
        transport = httpx2.ASGITransport(app, client=("127.0.0.1", 1))
        return httpx2.AsyncClient(transport=transport, base_url="http://localhost")

    return make


async def test_a_stranger_is_shown_that_they_are_refused(browser: Browser) -> None:
    refused = await browser("everyone").get("/sandbox", headers={"host": "evil.example"})

    assert refused.status_code == 403
    assert "Anna" not in refused.text


async def test_whoever_opened_the_last_link_here_is_offered_first(browser: Browser) -> None:
    cookie = {"cookie": f"{COOKIE}=per_anna"}
    page = await browser().get("/sandbox/open/shop?start=x", headers=cookie)

    assert page.status_code == 200
    assert 0 < page.text.index("Anna") < page.text.index("Boris")


@pytest.mark.parametrize("path", ["/sandbox", "/sandbox/open/shop?start=x", "/sandbox/p/per_anna"])
async def test_people_are_listed_with_the_newest_first(browser: Browser, path: str) -> None:
    page = await browser().get(path)
    links = re.findall(r'(?:href="/sandbox/p/|value=")(per_\w+)"', page.text)

    assert links == ["per_boris", "per_anna"]


@pytest.mark.parametrize("path", ["/sandbox/open/other", "/sandbox/open/shop?start=no%20payload"])
async def test_a_link_that_leads_to_no_bot_is_a_page_that_says_so(
    browser: Browser, path: str
) -> None:
    assert (await browser().get(path)).status_code == 404


async def test_a_form_that_is_not_filled_in_well_is_shown_again_with_what_was_typed(
    browser: Browser,
) -> None:
    page = await browser().post("/sandbox", data={"name": "", "username": "kept_name"})

    assert page.status_code == 400
    assert "kept_name" in page.text


async def test_a_person_is_remembered_and_may_run_no_foreign_script(browser: Browser) -> None:
    opened = await browser().post(
        "/sandbox/open/shop", data={"person_id": "per_anna", "start": "x"}
    )

    assert opened.status_code == 303
    assert opened.headers["location"] == "/sandbox/p/per_anna#shop"
    assert f"{COOKIE}=per_anna" in opened.headers["set-cookie"]
    assert "HttpOnly" in opened.headers["set-cookie"]
    assert "script-src 'self'" in opened.headers["content-security-policy"]
