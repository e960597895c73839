"""The pages, built from fakes."""

import re
from typing import Literal

import httpx2
import pytest
from starlette.routing import Router

from msgsvc_core.config.sections import MediaSettings
from msgsvc_devkit import plugin_context
from msgsvc_devkit.fakes import FakeChannels
from msgsvc_sandbox import plugin
from msgsvc_sandbox.admission import Admission
from msgsvc_sandbox.faults import Faults
from msgsvc_sandbox.pages import COOKIE, SandboxPages
from msgsvc_sandbox.service import Messenger
from msgsvc_sandbox.wakeups import Wakeups

from .rows import ANNA, BORIS, tables, with_bot


def pages() -> SandboxPages:
    core = plugin_context(plugin=plugin)
    channels = FakeChannels(with_bot(), kinds=plugin.register_channel_kinds())
    db, wakeups = tables({"SELECT * FROM sandbox_people ORDER": [ANNA, BORIS]}), Wakeups()
    messenger = Messenger(
        clock=core.clock,
        db=db,
        secrets=core.secrets,
        texts=core.texts,
        media=MediaSettings(),
        channels=channels,
        faults=Faults(db, wakeups),
        wakeups=wakeups,
    )
    return SandboxPages(messenger, core.texts)


def browser(who: Literal["local", "everyone"] = "local") -> httpx2.AsyncClient:
    """A browser on this machine, at the pages alone."""
    app = Router(routes=pages().routes(Admission(who, "http://localhost")))
    transport = httpx2.ASGITransport(app, client=("127.0.0.1", 1))
    return httpx2.AsyncClient(transport=transport, base_url="http://localhost")


async def test_a_stranger_is_shown_that_they_are_refused() -> None:
    refused = await browser("everyone").get("/sandbox", headers={"host": "evil.example"})

    assert refused.status_code == 403
    assert "Anna" not in refused.text


async def test_whoever_opened_the_last_link_here_is_offered_first() -> None:
    cookie = {"cookie": f"{COOKIE}=per_anna"}
    page = await browser().get("/sandbox/open/shop?start=x", headers=cookie)

    assert page.status_code == 200
    assert 0 < page.text.index("Anna") < page.text.index("Boris")


@pytest.mark.parametrize("path", ["/sandbox", "/sandbox/open/shop?start=x", "/sandbox/p/per_anna"])
async def test_people_are_listed_with_the_newest_first(path: str) -> None:
    page = await browser().get(path)
    links = re.findall(r'(?:href="/sandbox/p/|value=")(per_\w+)"', page.text)

    assert links == ["per_boris", "per_anna"]


@pytest.mark.parametrize("path", ["/sandbox/open/other", "/sandbox/open/shop?start=no%20payload"])
async def test_a_link_that_leads_to_no_bot_is_a_page_that_says_so(path: str) -> None:
    assert (await browser().get(path)).status_code == 404


async def test_a_form_that_is_not_filled_in_well_is_shown_again_with_what_was_typed() -> None:
    page = await browser().post("/sandbox", data={"name": "", "username": "kept_name"})

    assert page.status_code == 400
    assert "kept_name" in page.text


async def test_a_person_is_remembered_and_may_run_no_foreign_script() -> None:
    opened = await browser().post(
        "/sandbox/open/shop", data={"person_id": "per_anna", "start": "x"}
    )

    assert opened.status_code == 303
    assert opened.headers["location"] == "/sandbox/p/per_anna#shop"
    assert f"{COOKIE}=per_anna" in opened.headers["set-cookie"]
    assert "HttpOnly" in opened.headers["set-cookie"]
    assert "script-src 'self'" in opened.headers["content-security-policy"]
