"""The hosted page and the mini app."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from starlette.responses import Response

from msgsvc_auth.clients import Client
from msgsvc_auth.hosted.cookies import Tickets
from msgsvc_auth.hosted.models import BrowserSignIn, Messenger, Site, Ticket, Visit
from msgsvc_auth.hosted.rendering import PageTemplates, Shown
from msgsvc_auth.hosted.service import HostedSignIn
from msgsvc_auth.hosted.sites import Sites
from msgsvc_auth.links import StaticLinks
from msgsvc_auth.mini_app.models import MiniAppSignInBody
from msgsvc_auth.mini_app.service import MiniAppSignIn
from msgsvc_auth.models import StaticLink
from msgsvc_auth.requested.pages import RequestedPages
from msgsvc_auth.service import SignIn
from msgsvc_auth.settings import AuthSettings
from msgsvc_core.channels import Capabilities, ChannelKind, ChannelUser, InvalidMiniApp, MiniAppUser
from msgsvc_core.config.sections import Section
from msgsvc_core.db import Tx
from msgsvc_core.kernel.errors import NotFound, RateLimitProject, ValidationFailed
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.projects.models import Project
from msgsvc_devkit import FakeClock, MemoryCore, memory_core
from msgsvc_devkit.channel import RecordingChannel
from msgsvc_devkit.core import PROJECT
from plugins.areas.auth.tests.unit.signing_in import (
    CALLBACK,
    TOKEN,
    add_link,
    begin,
    confirm,
    request,
)

SECRET = "s" * 43
TICKET = Ticket(SECRET, TOKEN)
VISIT = Visit("state", "en")
FIREFOX = Client(ip="203.0.113.7", user_agent="Firefox")
LINK = StaticLink(PROJECT, "lnk_1", "shop", "Shop", CALLBACK, False, 0)
SITE = Site(LINK, Project(PROJECT, "Shop", "active", 0))

#: The name of the cookie of `VISIT`.
COOKIE = f"msgsvc-login-{VISIT.key(SITE)}"
HELD = {COOKIE: str(TICKET)}


def cookies_of(response: Response) -> str:
    return response.headers.get("set-cookie", "")


def text(response: Response) -> str:
    return bytes(response.body).decode()


def hosted(core: MemoryCore) -> HostedSignIn:
    return HostedSignIn(
        clock=core.clock,
        db=core.db,
        limiter=core.limiter,
        settings=core.settings(AuthSettings),
        channels=core.channels,
        sign_in=core.get(SignIn),
    )


def sites(core: MemoryCore) -> Sites:
    requested = RequestedPages(
        clock=core.clock,
        settings=core.settings(AuthSettings),
        base_url="http://msgsvc.test",
        sign_in=core.get(SignIn),
    )
    return Sites(
        db=core.db, projects=core.projects, links=core.get(StaticLinks), requested=requested
    )


# ---- the cookie ------------------------------------------------------------------------------------


def test_over_https_a_cookie_is_this_hosts_alone() -> None:
    plain, secure = Response(), Response()
    Tickets("http://msgsvc.test").write(plain, request(), SITE, "k", TICKET, 60)
    Tickets("https://msgsvc.test").write(secure, request(), SITE, "k", TICKET, 60)

    assert "Path=/login/shop;" in cookies_of(plain)
    assert cookies_of(secure) == (
        f"__Host-msgsvc-login-k={TICKET}; HttpOnly; Max-Age=60; Path=/; SameSite=lax; Secure"
    )


@pytest.mark.parametrize("value", ["", "x", f"{SECRET}.short", f"{SECRET}.{TOKEN}.undone"])
def test_a_cookie_that_is_none_of_ours_is_none(value: str) -> None:
    tickets, key = Tickets("http://msgsvc.test"), VISIT.key(SITE)

    assert tickets.read(request(cookies={COOKIE: value}), key) is None
    assert tickets.read(request(cookies=HELD), key) == TICKET
    assert tickets.read(request(cookies=HELD), f"{key}; other") is None


def test_tabs_of_other_states_do_not_disturb_each_other() -> None:
    other = Site(replace(LINK, link_id="lnk_2"), SITE.project)

    assert len({VISIT.key(SITE), Visit("other", "en").key(SITE), VISIT.key(other)}) == 3
    assert VISIT.key(SITE) == Visit("state", "ru", "messenger_a").key(SITE)


# ---- the rules -------------------------------------------------------------------------------------


async def test_there_is_no_page_of_a_disabled_project(core: MemoryCore, tx: Tx) -> None:
    await add_link(core, tx)
    before = await sites(core).get("shop")
    await core.projects.switch(tx, PROJECT, active=False)

    assert before.name == "Shop"
    with pytest.raises(NotFound):
        await sites(core).get("shop")


@pytest.mark.parametrize("path", ["button.js", "x" * 49])
async def test_what_is_no_slug_is_not_looked_up(core: MemoryCore, path: str) -> None:
    await core.db.disconnect()

    with pytest.raises(NotFound):
        await sites(core).get(path)


async def test_one_address_opens_so_many_an_hour_and_what_is_refused_takes_no_slot() -> None:
    async with memory_core(plugins=["auth"], auth={"pages_per_hour_per_address": 1}) as core:
        page = hosted(core)
        with pytest.raises(ValidationFailed):
            await page.open(SITE, Visit("", "en", "pigeon"), FIREFOX)
        await page.open(SITE, VISIT, FIREFOX)

        with pytest.raises(RateLimitProject):
            await page.open(SITE, VISIT, FIREFOX)


async def test_a_ticket_opens_nothing_on_another_sites_page(core: MemoryCore) -> None:
    other = Site(replace(LINK, link_id="lnk_2"), SITE.project)
    page = hosted(core)
    opened = await page.open(SITE, VISIT, FIREFOX)

    assert await page.find(SITE, opened.ticket) == opened
    assert await page.find(other, opened.ticket) is None
    assert await page.find(SITE, None) is None


async def test_the_code_goes_to_the_callback_that_is_registered_now(
    core: MemoryCore, tx: Tx
) -> None:
    await add_link(core, tx)
    site = Site(replace(LINK, callback_url="https://new.example/back"), SITE.project)
    done = await confirm(core, tx, callback_url=CALLBACK, state="a b")
    waits = (await begin(core, tx)).session

    location = hosted(core).location(site, BrowserSignIn(done.session, TICKET))
    assert location == f"https://new.example/back?code={done.code}&state=a+b"
    assert hosted(core).location(site, BrowserSignIn(waits, TICKET)) is None


async def test_a_code_of_a_key_that_is_gone_has_run_out(core: MemoryCore, tx: Tx) -> None:
    done = (await confirm(core, tx)).session
    of_another_key = replace(done, code_hash="unknown")

    assert hosted(core).status(BrowserSignIn(of_another_key, TICKET)) == "expired"
    assert hosted(core).status(BrowserSignIn(done, TICKET)) == "confirmed"


async def test_the_bot_asks_in_the_language_of_the_page_as_long_as_it_asks(
    core: MemoryCore,
) -> None:
    page, russian = hosted(core), Visit("state", "ru")
    opened = await page.open(SITE, VISIT, FIREFOX)
    async with core.db.transaction() as tx:
        done = BrowserSignIn((await confirm(core, tx, lang="en")).session, TICKET)
    changed = await page.set_language(opened, russian)

    assert changed.session.lang == "ru"
    assert await page.find(SITE, opened.ticket) == changed
    assert await page.set_language(done, russian) == done
    assert await page.set_language(changed, russian) == changed


# ---- templates -------------------------------------------------------------------------------------


def test_a_page_shows_the_number_and_how_to_answer_and_escapes_names(
    core: MemoryCore,
) -> None:
    site = Site(LINK, replace(SITE.project, name="<b>Shop</b>"))
    messengers = [Messenger("messenger_a", "Messenger A", "https://a.example/x", "start K7QF2M9X")]
    shown = Shown("pending", messengers, number=47, expires_in_s=61, page="p1")
    response = PageTemplates(core.texts).sign_in(request(), site, VISIT, shown)

    assert "&lt;b&gt;Shop" in text(response)
    assert "<b>Shop" not in text(response)
    for part in ("47", "Messenger A", "start K7QF2M9X", "shop.example"):
        assert part in text(response)
    assert response.headers["referrer-policy"] == "no-referrer"


def test_a_problem_says_how_long_to_wait(core: MemoryCore) -> None:
    error = RateLimitProject("too many", retry_after_s=61)
    response = PageTemplates(core.texts).problem(request(query="lang=en"), error)

    assert (response.status_code, response.headers["retry-after"]) == (429, "61")
    assert "2 min." in text(response)


def test_a_refusal_is_a_page_in_the_readers_language(core: MemoryCore) -> None:
    error = NotFound("there is no sign-in page at this address")
    response = PageTemplates(core.texts).problem(request(query="lang=ru"), error)

    assert response.status_code == 404
    assert 'lang="ru"' in text(response)


# ---- mini apps -------------------------------------------------------------------------------------


class SigningChannel(RecordingChannel):
    """Takes data that begins with its name for signed: `name|user|seconds ago|start payload`."""

    capabilities = Capabilities(mini_app=True)

    def verify_mini_app(self, init_data: str) -> MiniAppUser:
        name, user_id, ago_s, payload = init_data.split("|")
        if name != self.name:
            raise InvalidMiniApp("signed by another bot")
        at_ms = FakeClock().now_ms() - int(ago_s) * 1000
        return MiniAppUser(ChannelUser(user_id, "Anna"), at_ms, payload, chat_id="c1")


class Signing:
    """Registers the channel kind `signing`."""

    @hookimpl
    def register_channel_kinds(self) -> Sequence[ChannelKind]:
        return [ChannelKind("signing", Section, lambda _core, of, _own: SigningChannel(of))]


@pytest.mark.parametrize(
    ("init_data", "fields", "why"),
    [
        ("pigeon|7|0|auth_shop", {}, "no bot of the project"),
        ("messenger_b|7|0|auth_shop", {"channel": "messenger_a"}, "no bot of the project"),
        ("messenger_a|7|0|auth_shop", {"channel": "pigeon"}, "must be one of"),
        ("messenger_a|7|601|auth_shop", {}, "10 minutes"),
        ("messenger_a|7|0|", {}, "auth_shop"),
        ("messenger_a|7|0|auth_other", {}, "auth_shop"),
    ],
)
async def test_what_was_not_signed_for_this_link_signs_nobody_in(
    init_data: str, fields: dict[str, str], why: str
) -> None:
    bots = {name: {"plugin": "signing"} for name in ("messenger_a", "messenger_b")}
    body = MiniAppSignInBody(init_data=init_data, **fields)
    async with (
        memory_core(
            plugins=["auth"], extra_plugins=[("signing", Signing())], channels=bots
        ) as core,
        core.db.transaction() as tx,
    ):
        await add_link(core, tx)
        # It only reads, and so does not wait for the open transaction: anybody may post anything.
        with pytest.raises(ValidationFailed, match=why):
            await core.get(MiniAppSignIn).sign_in("shop", body)
