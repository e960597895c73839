"""The hosted page and the mini app, built from fakes."""

import json
from dataclasses import replace
from typing import Any

import pytest
from starlette.responses import Response
from starlette.routing import Route

from msgsvc_auth.clients import Client
from msgsvc_auth.errors import AuthMiniAppUsed
from msgsvc_auth.hosted.cookies import Tickets
from msgsvc_auth.hosted.models import BrowserSignIn, Messenger, Site, Ticket, Visit
from msgsvc_auth.hosted.pages import HostedPages
from msgsvc_auth.hosted.rendering import PageTemplates, Shown
from msgsvc_auth.mini_app.models import MiniAppSignInBody
from msgsvc_auth.settings import AuthSettings
from msgsvc_core.channels import (
    Capabilities,
    ChannelIdentity,
    ChannelKind,
    ChannelUser,
    InvalidMiniApp,
    MiniAppUser,
)
from msgsvc_core.config.settings import Section
from msgsvc_core.kernel.errors import BadRequest, NotFound, RateLimitProject, ValidationFailed
from msgsvc_core.security import digest
from msgsvc_devkit.channel import RecordingChannel
from msgsvc_devkit.fakes import PROJECT, FakeTx, fake_settings
from plugins.areas.auth.tests.unit.signing_in import (
    LINK,
    NOW_MS,
    SITE,
    TOKEN,
    Auth,
    confirmed,
    issued,
    pending,
    request,
    row_of,
)

SECRET = "s" * 43
TICKET = Ticket(SECRET, TOKEN)
VISIT = Visit("state", "en")
FIREFOX = Client(ip="203.0.113.7", user_agent="Firefox")

#: The name of the cookie of `VISIT`.
COOKIE = f"msgsvc-login-{VISIT.key(SITE)}"
HELD = {COOKIE: str(TICKET)}


def cookies_of(response: Response) -> str:
    return response.headers.get("set-cookie", "")


def text(response: Response) -> str:
    return bytes(response.body).decode()


class Hosted(Auth):
    """The page of the link "shop"."""

    def pages(self) -> HostedPages:
        return HostedPages(
            hosted=self.hosted(),
            sites=self.sites(),
            visits=self.visits(),
            questions=self.address_questions(),
            texts=self.core.texts,
            tickets=Tickets("http://msgsvc.test"),
            templates=PageTemplates(self.core.texts),
        )

    def found(self, *answers: Any) -> None:
        """What the database answers next, after the link itself."""
        self.core.db.answers += [[row_of(LINK)], *answers]

    @property
    def opened(self) -> list[dict[str, Any]]:
        return self.core.db.rows["auth_sessions"]


#: What finds the sign-in of a browser's ticket.
def held(session: Any) -> list[Any]:
    return [[{"session_id": session.session_id}], [row_of(session)]]


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


async def test_there_is_no_page_of_a_disabled_project_or_of_what_is_no_slug() -> None:
    shop = Hosted()
    await shop.core.projects.switch(FakeTx(), PROJECT, active=False)
    shop.found()
    for slug in ("shop", "button.js", "x" * 49):
        with pytest.raises(NotFound):
            await shop.sites().get(slug)

    assert len(shop.core.db.statements) == 1


async def test_the_database_has_neither_secret_of_the_browser() -> None:
    shop = Hosted()
    opened = await shop.hosted().open(SITE, VISIT, FIREFOX)

    [row] = shop.opened
    assert row["browser_digest"] == digest(f"lnk_1.{opened.ticket.secret}")
    assert row["token_digest"] == digest(opened.ticket.token)
    assert opened.ticket.secret not in str(row)
    assert (row["state"], row["lang"], row["match_number"]) == ("state", "en", None)


async def test_one_address_opens_so_many_an_hour_and_what_is_refused_takes_no_slot() -> None:
    shop = Hosted(AuthSettings(pages_per_hour_per_address=1))
    hosted = shop.hosted()
    with pytest.raises(ValidationFailed):
        await hosted.open(SITE, Visit("", "en", "pigeon"), FIREFOX)
    await hosted.open(SITE, VISIT, FIREFOX)

    with pytest.raises(RateLimitProject):
        await hosted.open(SITE, VISIT, FIREFOX)
    assert len(shop.opened) == 1


async def test_a_ticket_opens_nothing_on_another_sites_page() -> None:
    shop = Hosted()
    shop.core.db.answers += [[], []]
    other = Site(replace(LINK, link_id="lnk_2"), SITE.project)
    hosted = shop.hosted()

    assert await hosted.find(SITE, TICKET) is None
    assert await hosted.find(other, TICKET) is None
    assert await hosted.find(SITE, None) is None
    mine, others = [params["browser_digest"] for _, params in shop.core.db.statements]
    assert mine != others


async def test_the_code_goes_to_the_callback_that_is_registered_now() -> None:
    code = issued()
    site = Site(replace(LINK, callback_url="https://new.example/back"), SITE.project)
    session = confirmed(code, callback_url="https://old.example/back", state="a b")
    hosted = Hosted().hosted()

    location = hosted.location(site, BrowserSignIn(session, TICKET))
    assert location == f"https://new.example/back?code={code.code}&state=a+b"
    assert hosted.location(site, BrowserSignIn(pending(), TICKET)) is None


def test_a_code_of_a_key_that_is_gone_has_run_out() -> None:
    of_another_key = replace(confirmed(), code_hash="unknown")
    hosted = Hosted().hosted()

    assert hosted.status(BrowserSignIn(of_another_key, TICKET)) == "expired"
    assert hosted.status(BrowserSignIn(confirmed(), TICKET)) == "confirmed"


async def test_the_bot_asks_in_the_language_of_the_page_as_long_as_it_asks() -> None:
    shop = Hosted()
    shop.core.db.answers.append(1)
    hosted, russian = shop.hosted(), Visit("state", "ru")
    changed = await hosted.set_language(BrowserSignIn(pending(lang="en"), TICKET), russian)
    done = BrowserSignIn(confirmed(lang="en"), TICKET)

    assert changed.session.lang == "ru"
    assert await hosted.set_language(done, russian) == done
    assert await hosted.set_language(changed, russian) == changed


# ---- the pages -------------------------------------------------------------------------------------


async def shown(shop: Hosted, asked: Any) -> Response:
    """The page, or the one of what is wrong, as the route answers."""
    (endpoint,) = (
        each.endpoint
        for each in shop.pages().routes()
        if isinstance(each, Route) and each.path == "/login/{slug}"
    )
    response: Response = await endpoint(asked)
    return response


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        (request(method="HEAD"), 200),
        (request(headers={"sec-purpose": "prefetch;prerender"}), 503),
        (request(headers={"sec-fetch-dest": "iframe"}), 403),
    ],
)
async def test_nobody_signs_in_who_has_not_come(asked: Any, status: int) -> None:
    shop = Hosted()
    shop.found()
    response = await shown(shop, asked)

    assert (response.status_code, shop.opened) == (status, [])


async def test_the_first_visit_opens_a_sign_in_and_keeps_its_ticket() -> None:
    shop = Hosted()
    shop.found()
    response = await shown(shop, request(query="state=state&lang=en"))

    assert response.status_code == 200
    assert f"{COOKIE}=" in cookies_of(response)
    assert "Max-Age=900" in cookies_of(response)
    assert "https://messenger_a.example/bot?start=auth_s_" in text(response)
    assert len(shop.opened) == 1


async def test_a_browser_without_cookies_does_not_begin_one_after_another() -> None:
    shop = Hosted()
    shop.found()
    response = await shown(shop, request(query="state=state&resume=1"))

    assert response.status_code == 200
    assert shop.opened == []


async def test_a_confirmed_sign_in_leads_on_once() -> None:
    shop, code = Hosted(), issued()
    session = confirmed(code, lang="en", state="state")
    query = "state=state&lang=en"
    shop.found(*held(session))
    first = await shown(shop, request(cookies=HELD, query=query))
    shop.found(*held(session))
    back = await shown(shop, request(cookies={COOKIE: str(TICKET.done())}, query=query))

    assert (first.status_code, back.status_code) == (303, 200)
    assert first.headers["location"] == f"{LINK.callback_url}?code={code.code}&state=state"
    assert f"{TICKET.done()};" in cookies_of(first)


@pytest.mark.parametrize(("status", "opens"), [("denied", 1), ("pending", 0)])
async def test_try_again_is_for_what_has_ended(status: Any, opens: int) -> None:
    shop = Hosted()
    shop.found(*held(pending(stored_status=status)))
    response = await shown(shop, request(method="POST", cookies=HELD, query="state=state&lang=en"))

    assert (response.status_code, len(shop.opened)) == (303, opens)


async def test_a_refusal_is_a_page_in_the_readers_language() -> None:
    shop = Hosted()
    shop.core.db.answers.append([])
    response = await shown(shop, request(query="lang=ru"))

    assert response.status_code == 404
    assert 'lang="ru"' in text(response)


async def status_of(shop: Hosted, query: str, **options: Any) -> Response:
    asked = request(query=f"key={VISIT.key(SITE)}&{query}", cookies=HELD, **options)
    return await shop.pages().status(asked)


async def test_the_script_hears_what_became_of_its_own_page() -> None:
    shop, page = Hosted(), f"page={TICKET.page}"
    shop.found(*held(pending()))
    changed = await status_of(shop, "page=another")
    shop.found(*held(pending()), [row_of(pending())])
    waiting = await status_of(shop, page)
    shop.found(*held(confirmed()), [row_of(confirmed())])
    done = await status_of(shop, page)

    assert text(changed) == '{"status":"changed"}'
    assert text(waiting) == '{"status":"pending","expires_in":600}'
    assert '"redirect":"https://shop.example/back?code=' in text(done)
    assert f"{TICKET.done()};" in cookies_of(done)


async def test_a_browser_that_was_sent_on_is_not_given_the_code_again() -> None:
    shop, asked = Hosted(), f"key={VISIT.key(SITE)}&page={TICKET.page}"
    shop.found(*held(confirmed()), [row_of(confirmed())])
    sent_on = {COOKIE: str(TICKET.done())}
    response = await shop.pages().status(request(query=asked, cookies=sent_on))

    assert text(response) == '{"status":"done"}'
    assert cookies_of(response) == ""


@pytest.mark.parametrize("wait", ["26", "-1", "x", "9" * 5000])
async def test_nobody_waits_longer_than_a_poll_may(wait: str) -> None:
    shop = Hosted()
    shop.found(*held(pending()))

    with pytest.raises(BadRequest, match="wait"):
        await status_of(shop, f"page={TICKET.page}&wait={wait}")


async def test_a_browser_without_the_cookie_hears_nothing() -> None:
    shop = Hosted()
    shop.found()

    with pytest.raises(NotFound):
        await shop.pages().status(request(query=f"key={VISIT.key(SITE)}"))


async def test_the_button_of_sites_may_be_kept_and_says_nothing_of_anybody() -> None:
    response = await Hosted().pages().button(request("/login/button.js"))

    assert response.headers["cache-control"] == "public, max-age=3600"
    assert "Sign in through a messenger" in text(response)
    assert json.dumps("Войти через мессенджер") in text(response)


# ---- templates -------------------------------------------------------------------------------------


def templates() -> PageTemplates:
    return PageTemplates(Hosted().core.texts)


def test_a_page_shows_the_number_and_how_to_answer_and_escapes_names() -> None:
    site = Site(LINK, replace(SITE.project, name="<b>Shop</b>"))
    messengers = [Messenger("messenger_a", "Messenger A", "https://a.example/x", "start K7QF2M9X")]
    shown = Shown("pending", messengers, number=47, expires_in_s=61, page="p1")
    response = templates().sign_in(request(), site, VISIT, shown)

    assert "&lt;b&gt;Shop" in text(response)
    assert "<b>Shop" not in text(response)
    for part in ("47", "Messenger A", "start K7QF2M9X", "shop.example"):
        assert part in text(response)
    assert response.headers["referrer-policy"] == "no-referrer"


def test_a_problem_says_how_long_to_wait() -> None:
    error = RateLimitProject("too many", retry_after_s=61)
    response = templates().problem(request(query="lang=en"), error)

    assert (response.status_code, response.headers["retry-after"]) == (429, "61")
    assert "2 min." in text(response)


# ---- mini apps -------------------------------------------------------------------------------------


class SigningChannel(RecordingChannel):
    """Takes data that begins with its name for signed: `name|user|seconds ago|start payload`."""

    capabilities = Capabilities(mini_app=True)

    def verify_mini_app(self, init_data: str) -> MiniAppUser:
        name, user_id, ago_s, payload = init_data.split("|")
        if name != self.name:
            raise InvalidMiniApp("signed by another bot")
        at_ms = NOW_MS - int(ago_s) * 1000
        return MiniAppUser(ChannelUser(user_id, "Anna"), at_ms, payload, chat_id="c1")


SIGNING = ChannelKind("signing", Section, lambda _core, identity, _own: SigningChannel(identity))
BOTS = {name: {"plugin": "signing"} for name in ("messenger_a", "messenger_b")}


class MiniApps(Hosted):
    """The bots `messenger_a` and `messenger_b`, which serve all projects."""

    def __init__(self) -> None:
        super().__init__(kinds=[SIGNING], config=fake_settings(channels=BOTS))

    async def open(self, init_data: str, *answers: Any, **fields: Any) -> str:
        self.found(*answers)
        body = MiniAppSignInBody(init_data=init_data, **fields)
        return await self.mini_apps().sign_in("shop", body)


#: Data that is new, a chat that is entered, the Yes, and whose it is.
FRESH = (1, 1, [row_of(confirmed(subscriber_id=None))], 1)


async def test_signed_data_signs_in_and_leads_back_to_the_site() -> None:
    shop = MiniApps()
    location = await shop.open("messenger_b|7|0|auth_shop", *FRESH, state="s")

    assert location.startswith(f"{LINK.callback_url}?code=")
    assert location.endswith("&state=s")
    [person] = shop.core.subscribers.everybody
    assert (person.user_id, person.bot, person.chat_id) == ("7", "messenger_b", "c1")


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
    shop = MiniApps()

    with pytest.raises(ValidationFailed, match=why):
        await shop.open(init_data, **fields)
    # Only read: anybody may post anything.
    assert shop.core.db.commits == 0


async def test_a_projects_own_bot_needs_no_payload_but_takes_no_other_links() -> None:
    shop = MiniApps()
    shop.core.channels.register(ChannelIdentity("messenger_a", "own_a", PROJECT), "signing", {})
    await shop.open("messenger_a|7|0|", *FRESH)
    await shop.open("messenger_a|7|0|menu", *FRESH)

    with pytest.raises(ValidationFailed):
        await shop.open("messenger_a|7|0|auth_other")


async def test_the_same_data_signs_in_once() -> None:
    with pytest.raises(AuthMiniAppUsed):
        await MiniApps().open("messenger_a|7|0|auth_shop", 0)


async def test_there_is_no_mini_app_of_a_disabled_project() -> None:
    shop = MiniApps()
    await shop.core.projects.switch(FakeTx(), PROJECT, active=False)

    with pytest.raises(NotFound):
        await shop.open("messenger_a|7|0|auth_shop")
