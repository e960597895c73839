"""The pages of people who are not signed in yet."""

from collections.abc import Mapping

import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match

from msgsvc_core.dashboard import PostedForm
from msgsvc_core.kernel.errors import Forbidden
from msgsvc_core.members.models import AddMemberBody
from msgsvc_core.security import SecretBox
from msgsvc_dashboard.accounts.models import BegunRequest, LinkedMessenger, RequestPurpose, SignedIn
from msgsvc_dashboard.accounts.request_store import link, settle
from msgsvc_dashboard.accounts.service import digest_of
from msgsvc_dashboard.frame.branding import InstallationBrand
from msgsvc_dashboard.sign_in import SignInPages
from msgsvc_dashboard.sign_in.cookies import Cookies
from msgsvc_dashboard.sign_in.entering import Entering
from msgsvc_dashboard.sign_in.forms import Forms
from msgsvc_dashboard.sign_in.rendering import Rendering
from msgsvc_devkit.core import PROJECT, MemoryCore
from plugins.areas.dashboard.tests.unit.browsers import (
    ANN,
    cookies_of,
    request,
    session,
    text,
    to,
    value_of,
)
from plugins.areas.dashboard.tests.unit.signing import HOME, PASSWORD, Ann

COOKIES = Cookies(base_url="http://msgsvc.test", session_days=14)
SECURE = Cookies(base_url="https://msgsvc.test", session_days=14)
SECRETS = SecretBox(["a-key-for-tests-only-a-key-for-tests-only"])
DONE = SignedIn(session(), "secret", "device")

SIGN_IN = "/dashboard/sign-in"


def rendering_of(core: MemoryCore) -> Rendering:
    return Rendering(
        texts=core.texts,
        cookies=COOKIES,
        forms=Forms(secrets=core.secrets, cookies=COOKIES),
        default_lang="en",
        brand=InstallationBrand(),
    )


async def answer(ann: Ann, asked: Request) -> Response:
    """What the page of that path answers."""
    for route in ann.plugin.get(SignInPages).routes():
        match, found = route.matches(asked.scope)
        if match is Match.FULL:
            response = await found["endpoint"](Request({**asked.scope, **found}, asked.receive))
            assert isinstance(response, Response)
            return response
    raise AssertionError(f"no page at {asked.url.path}")


async def opened(
    ann: Ann,
    path: str = SIGN_IN,
    *,
    cookies: Mapping[str, str] | None = None,
    query: Mapping[str, str] | None = None,
) -> Response:
    return await answer(ann, request(path, cookies=cookies, query=query))


async def sent(
    ann: Ann, path: str = SIGN_IN, cookies: Mapping[str, str] | None = None, **typed: str
) -> Response:
    """For a form of ours."""
    nonce, csrf = Forms(secrets=ann.core.secrets, cookies=COOKIES).begin(request())
    kept = {"msgsvc_form": nonce, **(cookies or {})}
    return await answer(ann, request(path, form={"_csrf": csrf, **typed}, cookies=kept))


async def signed_in(ann: Ann) -> dict[str, str]:
    """The cookie of a browser in which she is."""
    _, token = await ann.open_session()
    return {"msgsvc_session": token}


# ---- cookies, forms and pages ----------------------------------------------------------------------


def test_over_https_no_neighbour_can_plant_a_cookie() -> None:
    plain, secure = Response(), Response()
    COOKIES.enter(plain, request(), DONE)
    SECURE.enter(secure, request(), DONE)

    assert cookies_of(plain)["msgsvc_session"] == (
        "secret; HttpOnly; Max-Age=1209600; Path=/dashboard; SameSite=lax"
    )
    assert cookies_of(secure)["__Host-msgsvc_session"] == (
        "secret; HttpOnly; Max-Age=1209600; Path=/; SameSite=lax; Secure"
    )
    assert COOKIES.browser(request(cookies={"msgsvc_device": "d"})).device == "d"
    assert SECURE.browser(request(cookies={"msgsvc_device": "d"})).device == ""


def test_who_is_in_keeps_nothing_of_the_way_there_and_stays_known_when_they_leave() -> None:
    entered, left = Response(), Response()
    on_the_way = {"msgsvc_form": "f", "msgsvc_ticket": "t"}
    COOKIES.enter(entered, request(cookies=on_the_way), DONE)
    COOKIES.leave(left, request())

    assert cookies_of(entered).keys() == {
        "msgsvc_session",
        "msgsvc_device",
        "msgsvc_form",
        "msgsvc_ticket",
    }
    assert "Max-Age=0" in cookies_of(entered)["msgsvc_ticket"]
    assert cookies_of(left).keys() == {"msgsvc_session"}


@pytest.mark.parametrize(
    ("nonce", "token", "headers"),
    [
        ("", "{token}", {}),
        ("another", "{token}", {}),
        ("{nonce}", "", {}),
        ("{nonce}", "{token}x", {}),
        ("{nonce}", "{token}", {"sec-fetch-site": "cross-site"}),
        ("{nonce}", "{token}", {"origin": "https://evil.example"}),
    ],
)
async def test_a_form_counts_in_the_browser_that_a_page_of_ours_showed_it_to(
    nonce: str, token: str, headers: dict[str, str]
) -> None:
    forms = Forms(secrets=SECRETS, cookies=COOKIES)
    shown, csrf = forms.begin(request())
    given = {"_csrf": token.format(token=csrf)}
    cookies = {"msgsvc_form": nonce.format(nonce=shown)}

    with pytest.raises(Forbidden):
        await forms.read(request(form=given, cookies=cookies, headers=headers))


async def test_a_second_page_of_the_browser_does_not_spoil_the_form_of_the_first() -> None:
    forms = Forms(secrets=SECRETS, cookies=COOKIES)
    nonce, token = forms.begin(request())
    cookies = {"msgsvc_form": nonce}
    assert forms.begin(request(cookies=cookies))[0] == nonce
    read = await forms.read(request(form={"_csrf": token, "email": "a"}, cookies=cookies))

    assert read.text("email") == "a"


def test_a_page_speaks_the_language_of_its_address_before_the_browsers(core: MemoryCore) -> None:
    rendering = rendering_of(core)
    russian = {"accept-language": "ru"}

    assert rendering.lang(request(headers=russian)) == "ru"
    assert rendering.lang(request(headers=russian, query={"lang": "en"})) == "en"
    assert rendering.lang(request(query={"lang": "xx"})) == "en"


def test_a_page_has_the_token_of_its_cookie_and_the_way_to_the_other_language(
    core: MemoryCore,
) -> None:
    asked = request(query={"next": "/dashboard/x"})
    shown = rendering_of(core).told(asked, "Gone", "<b>It is gone.</b>", 404)

    assert shown.status_code == 404
    assert "&lt;b&gt;It is gone." in text(shown)
    assert "/dashboard/sign-in?next=%2Fdashboard%2Fx&amp;lang=ru" in text(shown)
    assert value_of(shown, "msgsvc_form")
    assert shown.headers["referrer-policy"] == "no-referrer"


def test_who_tried_too_often_is_told_the_minutes_to_wait(core: MemoryCore) -> None:
    values = {"next": "", "email": "", "by_messenger": False}
    shown = rendering_of(core).too_many(request(), "password.html", 61, **values)

    assert (shown.status_code, shown.headers["retry-after"]) == (429, "61")
    assert "wait 2 minutes" in text(shown)


@pytest.mark.parametrize(
    ("chosen", "browsers", "kept"),
    [
        (None, "Europe/Berlin", "Europe/Berlin"),
        ("Asia/Tokyo", "Europe/Berlin", "Asia/Tokyo"),
        (None, "Nowhere/Else", None),
    ],
)
async def test_a_time_zone_is_learnt_from_the_browser_by_who_has_chosen_none(
    ann: Ann, chosen: str | None, browsers: str, kept: str | None
) -> None:
    accounts = ann.parts.accounts
    async with ann.core.db.transaction() as tx:
        await accounts.change(tx, ann.account_id, timezone=chosen)
        done = SignedIn(session(await accounts.find(tx, ann.account_id)), "secret", "device")
    entering = Entering(accounts=accounts, cookies=COOKIES)
    await entering.go_on(request(), done, PostedForm({"timezone": [browsers]}), "")

    async with ann.core.db.read() as tx:
        assert (await accounts.find(tx, ann.account_id)).timezone == kept


# ---- password and code -----------------------------------------------------------------------------


async def test_who_is_in_already_is_led_on_and_the_home_is_the_only_project(ann: Ann) -> None:
    cookies = await signed_in(ann)

    async def home() -> str:
        return to(await opened(ann, "/dashboard", cookies=cookies))

    assert to(await opened(ann, cookies=cookies)) == "/dashboard"
    assert to(await opened(ann, "/dashboard")) == SIGN_IN
    assert await home() == "/dashboard/account/projects"
    async with ann.core.db.transaction() as tx:
        project = await ann.parts.accounts.create_project(tx, ann.account, "Cafe")
    assert await home() == f"/dashboard/projects/{project.project_id}"
    async with ann.core.db.transaction() as tx:
        await ann.parts.accounts.create_project(tx, ann.account, "Bakery")
    assert await home() == "/dashboard/account/projects"


async def test_the_code_is_for_who_has_shown_the_password(ann: Ann) -> None:
    await ann.set_password()
    _, codes = await ann.enrol()
    asked = await sent(ann, email=ANN.email, password=PASSWORD)
    ticket = {"msgsvc_ticket": value_of(asked, "msgsvc_ticket")}
    without = await sent(ann, f"{SIGN_IN}/code", code=codes[1])
    wrong = await sent(ann, f"{SIGN_IN}/code", ticket, code="000000")
    right = await sent(ann, f"{SIGN_IN}/code", ticket, code=codes[0])

    assert to(without) == SIGN_IN
    assert (wrong.status_code, to(right)) == (403, "/dashboard")
    assert "msgsvc_session" in cookies_of(right)


# ---- one-time links --------------------------------------------------------------------------------


async def test_a_new_password_by_a_link_ends_every_other_way_in(ann: Ann) -> None:
    parts = ann.parts
    await ann.open_session()
    async with ann.core.db.transaction() as tx:
        token = await parts.account_links.for_account(tx, ann.account_id, "password")
        await link(tx, LinkedMessenger("messenger_a", "7", ann.account_id, "Ann", 0))
    short = await sent(ann, f"/dashboard/link/{token}", password="short")
    assert (short.status_code, len(await ann.sessions())) == (400, 1)
    done = await sent(ann, f"/dashboard/link/{token}", password=PASSWORD)

    now = await parts.accounts.visit(value_of(done, "msgsvc_session"))
    assert await ann.sessions() == [now]
    async with ann.core.db.read() as tx:
        assert await parts.messenger_sign_in.linked(tx, ann.account_id) == []
    assert isinstance(await parts.sign_in.by_password(ANN.email, PASSWORD, HOME), SignedIn)


async def test_a_disabled_account_is_not_opened_by_a_link(ann: Ann) -> None:
    await ann.disable()
    async with ann.core.db.transaction() as tx:
        token = await ann.parts.account_links.for_account(tx, ann.account_id, "sign_in")
    refused = await sent(ann, f"/dashboard/link/{token}")

    assert (refused.status_code, "can&#39;t sign in" in text(refused)) == (404, True)
    assert await ann.sessions() == []


async def test_somebody_elses_invitation_is_refused_on_its_page(ann: Ann) -> None:
    team = ann.parts.team
    async with ann.core.db.transaction() as tx:
        await ann.parts.accounts.create(tx, email="bob@shop.example", name="Bob")
        body = AddMemberBody(name="Bob", email="bob@shop.example", role="agent")
        _, token = await team.invite(tx, PROJECT, body, by="owner")
    refused = await sent(ann, f"/dashboard/link/{token}", await signed_in(ann))

    assert (refused.status_code, "another email" in text(refused)) == (403, True)
    async with ann.core.db.read() as tx:
        assert await team.accounts_of(tx, PROJECT) == {}


# ---- by a messenger ----------------------------------------------------------------------------------

MESSENGER = f"{SIGN_IN}/messenger"


async def begin(ann: Ann, purpose: RequestPurpose) -> tuple[BegunRequest, dict[str, str]]:
    """What a browser waits for, and its cookie."""
    async with ann.core.db.transaction() as tx:
        begun = await ann.parts.messenger_sign_in.begin(tx, purpose, HOME, ann.account_id)
    return begun, {"msgsvc_waiting": f"{begun.token}.{begun.secret}"}


async def test_the_browser_gets_the_link_of_the_bot_and_the_number(ann: Ann) -> None:
    begun = await sent(ann, MESSENGER, next="/dashboard/x")
    waiting = value_of(begun, "msgsvc_waiting")
    token, _, secret = waiting.partition(".")
    shown = text(await opened(ann, MESSENGER, cookies={"msgsvc_waiting": waiting}))
    async with ann.core.db.read() as tx:
        asked = await ann.parts.messenger_sign_in.waiting(tx, secret)

    assert to(begun) == f"{MESSENGER}?next=/dashboard/x"
    assert asked is not None
    assert f'<p class="match-number">{asked.number}</p>' in shown
    assert token in shown
    assert secret not in shown


@pytest.mark.parametrize("core", [{"channels": {}}], indirect=True)
async def test_while_no_bot_is_ready_nobody_waits_for_one(ann: Ann) -> None:
    refused = await sent(ann, MESSENGER)

    assert (refused.status_code, "no bot can be opened" in text(refused)) == (503, True)
    assert "msgsvc_waiting" not in cookies_of(refused)


async def test_what_is_no_sign_in_begins_anew(ann: Ann) -> None:
    begun, cookies = await begin(ann, "link")
    async with ann.core.db.transaction() as tx:
        await settle(tx, digest_of(begun.token), "pending", "confirmed", None)

    assert to(await opened(ann, MESSENGER)) == SIGN_IN
    assert to(await opened(ann, MESSENGER, cookies=cookies)) == SIGN_IN
    assert await ann.sessions() == []


async def test_the_pages_script_hears_how_it_stands(ann: Ann) -> None:
    _, cookies = await begin(ann, "sign_in")
    answers = [await opened(ann, f"{MESSENGER}/status", cookies=each) for each in (cookies, None)]

    assert [text(each) for each in answers] == ['{"status":"pending"}', '{"status":"ended"}']


@pytest.mark.parametrize("core", [{"dashboard": {"tries_per_address": 1}}], indirect=True)
async def test_one_address_begins_no_more_than_its_tries(ann: Ann) -> None:
    begun, refused = [await sent(ann, MESSENGER) for _ in range(2)]
    async with ann.core.db.read() as tx:
        count = await tx.fetch_val("SELECT COUNT(*) FROM dashboard_account_requests")

    assert (begun.status_code, refused.status_code, count) == (303, 429, 1)
