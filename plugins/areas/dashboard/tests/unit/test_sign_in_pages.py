"""The pages of who is not signed in yet, built from fakes."""

from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import Response

from msgsvc_core.dashboard import PostedForm
from msgsvc_core.kernel.errors import Forbidden, NotFound, Unavailable
from msgsvc_core.members.models import AddMemberBody
from msgsvc_dashboard import plugin
from msgsvc_dashboard.accounts import Audit, MessengerSignIn, Team
from msgsvc_dashboard.accounts.models import CodeNeeded, SignedIn
from msgsvc_dashboard.frame.branding import InstallationBrand
from msgsvc_dashboard.frame.gate import Gate, Places
from msgsvc_dashboard.settings import AccountSettings
from msgsvc_dashboard.sign_in import SignInPages
from msgsvc_dashboard.sign_in.cookies import Cookies
from msgsvc_dashboard.sign_in.entering import Entering
from msgsvc_dashboard.sign_in.forms import Forms
from msgsvc_dashboard.sign_in.invitations import InvitationPages
from msgsvc_dashboard.sign_in.links import LinkPages
from msgsvc_dashboard.sign_in.messengers import MessengerPages
from msgsvc_dashboard.sign_in.rendering import Rendering
from msgsvc_dashboard.sign_in.tools import PageTools
from msgsvc_devkit import FakeContext, plugin_context
from msgsvc_devkit.fakes import PROJECT, FakeTx, fake_secrets, fake_settings
from plugins.areas.dashboard.tests.unit.browsers import (
    ANN,
    cookies_of,
    request,
    session,
    text,
    to,
    value_of,
)
from plugins.areas.dashboard.tests.unit.signing import HOME, PASSWORD, SETTINGS, Signing

COOKIES = Cookies(base_url="http://msgsvc.test", session_days=14)
SECURE = Cookies(base_url="https://msgsvc.test", session_days=14)
DONE = SignedIn(session(), "secret", "device")


class Pages(Signing):
    """Ann, and the pages by which she signs in."""

    def __init__(self, **config: Any) -> None:
        super().__init__()
        self.core: FakeContext = plugin_context(
            plugin=plugin, clock=self.clock, config=fake_settings(**config)
        )
        self.forms = Forms(secrets=fake_secrets(), cookies=COOKIES)
        self.messenger_sign_in = MessengerSignIn(
            clock=self.clock, settings=SETTINGS, channels=self.core.channels
        )
        self.team = Team(
            members=self.core.members, accounts=self.accounts, account_links=self.links
        )

    def rendering(self) -> Rendering:
        texts = self.core.texts
        return Rendering(
            texts=texts,
            cookies=COOKIES,
            forms=self.forms,
            default_lang="en",
            brand=InstallationBrand(),
        )

    def entering(self) -> Entering:
        return Entering(accounts=self.accounts, cookies=COOKIES)

    def gate(self) -> Gate:
        core = self.core
        places = Places(billing=core.billing, projects=core.projects, members=core.members)
        return Gate(
            clock=self.clock,
            db=self.db,
            secrets=fake_secrets(),
            texts=core.texts,
            accounts=self.accounts,
            places=places,
            settings=core.config,
            timezone="UTC",
        )

    def tools(self) -> PageTools:
        return PageTools(
            gate=self.gate(),
            cookies=COOKIES,
            forms=self.forms,
            rendering=self.rendering(),
            entering=self.entering(),
        )

    def messengers(self) -> MessengerPages:
        return MessengerPages(
            db=self.db,
            accounts=self.accounts,
            sign_in=self.sign_in(),
            messenger_sign_in=self.messenger_sign_in,
            throttle=self.throttle,
            tools=self.tools(),
        )

    def invitations(self) -> InvitationPages:
        return InvitationPages(
            db=self.db,
            projects=self.core.projects,
            accounts=self.accounts,
            audit=Audit(clock=self.clock),
            sign_in=self.sign_in(),
            passwords=self.password_changes(),
            team=self.team,
            tools=self.tools(),
        )

    def link_pages(self) -> LinkPages:
        return LinkPages(
            db=self.db,
            accounts=self.accounts,
            account_links=self.links,
            sign_in=self.sign_in(),
            passwords=self.password_changes(),
            invitations=self.invitations(),
            tools=self.tools(),
        )

    def pages(self) -> SignInPages:
        return SignInPages(
            db=self.db,
            channels=self.core.channels,
            accounts=self.accounts,
            sign_in=self.sign_in(),
            messenger_sign_in=self.messenger_sign_in,
            tools=self.tools(),
            messengers=self.messengers(),
            links=self.link_pages(),
        )

    def sent(
        self, path: str = "/dashboard/sign-in", token: str = "", also: Any = (), **typed: str
    ) -> Request:
        """A form of ours that a browser sends, with the cookies `also`."""
        nonce, csrf = self.forms.begin(request())
        cookies = {"msgsvc_form": nonce, **dict(also)}
        params = {"token": token} if token else {}
        return request(path, form={"_csrf": csrf, **typed}, cookies=cookies, **params)


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
    forms = Forms(secrets=fake_secrets(), cookies=COOKIES)
    shown, csrf = forms.begin(request())
    given = {"_csrf": token.format(token=csrf)}
    cookies = {"msgsvc_form": nonce.format(nonce=shown)}

    with pytest.raises(Forbidden):
        await forms.read(request(form=given, cookies=cookies, headers=headers))


async def test_a_second_page_of_the_browser_does_not_spoil_the_form_of_the_first() -> None:
    forms = Forms(secrets=fake_secrets(), cookies=COOKIES)
    nonce, token = forms.begin(request())
    cookies = {"msgsvc_form": nonce}
    assert forms.begin(request(cookies=cookies))[0] == nonce
    read = await forms.read(request(form={"_csrf": token, "email": "a"}, cookies=cookies))

    assert read.text("email") == "a"


def test_a_page_speaks_the_language_of_its_address_before_the_browsers() -> None:
    rendering = Pages().rendering()
    russian = {"accept-language": "ru"}

    assert rendering.lang(request(headers=russian)) == "ru"
    assert rendering.lang(request(headers=russian, query={"lang": "en"})) == "en"
    assert rendering.lang(request(query={"lang": "xx"})) == "en"


def test_a_page_has_the_token_of_its_cookie_and_the_way_to_the_other_language() -> None:
    asked = request(query={"next": "/dashboard/x"})
    shown = Pages().rendering().told(asked, "Gone", "<b>It is gone.</b>", 404)

    assert shown.status_code == 404
    assert "&lt;b&gt;It is gone." in text(shown)
    assert "/dashboard/sign-in?next=%2Fdashboard%2Fx&amp;lang=ru" in text(shown)
    assert value_of(shown, "msgsvc_form")
    assert shown.headers["referrer-policy"] == "no-referrer"


def test_who_tried_too_often_is_told_the_minutes_to_wait() -> None:
    values = {"next": "", "email": "", "by_messenger": False}
    shown = Pages().rendering().too_many(request(), "password.html", 61, **values)

    assert (shown.status_code, shown.headers["retry-after"]) == (429, "61")
    assert "wait 2 minutes" in text(shown)


@pytest.mark.parametrize("wanted", ["", "https://evil.example", "//evil.example", "/elsewhere"])
async def test_nobody_is_led_to_another_site(wanted: str) -> None:
    entering = Pages().entering()
    inside = await entering.go_on(request(), DONE, PostedForm(), "/dashboard/x?a=b")
    outside = await entering.go_on(request(), DONE, PostedForm(), wanted)

    assert to(inside) == "/dashboard/x?a=b"
    assert to(outside) == "/dashboard"


async def test_a_code_is_asked_for_on_the_way() -> None:
    entering = Pages().entering()
    response = await entering.go_on(request(), CodeNeeded("ticket"), PostedForm(), "/dashboard/x")

    assert to(response) == "/dashboard/sign-in/code?next=/dashboard/x"
    assert value_of(response, "msgsvc_ticket") == "ticket"
    assert "msgsvc_session" not in cookies_of(response)


@pytest.mark.parametrize(
    ("chosen", "browsers", "kept"),
    [
        (None, "Europe/Berlin", "Europe/Berlin"),
        ("Asia/Tokyo", "Europe/Berlin", "Asia/Tokyo"),
        (None, "Nowhere/Else", None),
    ],
)
async def test_a_time_zone_is_learnt_from_the_browser_by_who_has_chosen_none(
    chosen: str | None, browsers: str, kept: str | None
) -> None:
    ann = Pages()
    await ann.accounts.change(FakeTx(), ANN.account_id, timezone=chosen)
    done = SignedIn(session(ann.accounts.by_id[ANN.account_id]), "secret", "device")
    await ann.entering().go_on(request(), done, PostedForm({"timezone": [browsers]}), "")

    assert ann.accounts.by_id[ANN.account_id].timezone == kept


# ---- password and code -----------------------------------------------------------------------------


async def test_the_password_leads_to_where_somebody_wanted_to_go() -> None:
    ann = Pages()
    await ann.set_password()
    typed = {"email": ANN.email, "password": PASSWORD, "next": "/dashboard/account"}
    response = await ann.pages().password(ann.sent(**typed))

    assert to(response) == "/dashboard/account"
    assert value_of(response, "msgsvc_session") in ann.accounts.sessions


async def test_a_wrong_password_keeps_the_email_and_says_no_more_than_that() -> None:
    ann = Pages()
    response = await ann.pages().password(ann.sent(email="x@y.example", password="wrong"))

    assert response.status_code == 403
    assert "Wrong email or password." in text(response)
    assert "x@y.example" in text(response)
    assert "msgsvc_session" not in cookies_of(response)


async def test_who_is_in_already_is_led_on_and_the_home_is_the_only_project() -> None:
    ann = Pages()
    ann.accounts.sessions["token"] = session()
    cookies = {"msgsvc_session": "token"}
    pages = ann.pages()

    assert to(await pages.password(request(cookies=cookies))) == "/dashboard"
    assert to(await pages.begin(request())) == "/dashboard/sign-in"
    assert to(await pages.begin(request(cookies=cookies))) == "/dashboard/account/projects"
    await ann.accounts.create_project(FakeTx(), ANN, "Cafe")
    [project] = await ann.accounts.projects_of(FakeTx(), ANN.account_id)
    home = await pages.begin(request(cookies=cookies))
    assert to(home) == f"/dashboard/projects/{project.project_id}"
    await ann.accounts.create_project(FakeTx(), ANN, "Bakery")
    assert to(await pages.begin(request(cookies=cookies))) == "/dashboard/account/projects"


async def test_the_code_is_for_who_has_shown_the_password() -> None:
    ann = Pages()
    await ann.set_password()
    _, codes = await ann.enrol()
    asked = await ann.pages().password(ann.sent(email=ANN.email, password=PASSWORD))
    ticket = [("msgsvc_ticket", value_of(asked, "msgsvc_ticket"))]
    wrong = await ann.pages().code(ann.sent(also=ticket, code="000000"))
    right = await ann.pages().code(ann.sent(also=ticket, code=codes[0]))

    assert to(await ann.pages().code(ann.sent(code=codes[1]))) == "/dashboard/sign-in"
    assert (wrong.status_code, to(right)) == (403, "/dashboard")
    assert "msgsvc_session" in cookies_of(right)


async def test_signing_out_ends_this_browsers_session_by_a_form_of_ours_alone() -> None:
    ann = Pages()
    ann.accounts.sessions["token"] = session()
    cookies = {"msgsvc_session": "token"}
    with pytest.raises(Forbidden):
        await ann.pages().sign_out(request(form={}, cookies=cookies))
    form = {"_csrf": ann.gate().token(session())}
    left = await ann.pages().sign_out(request(form=form, cookies=cookies))

    assert to(left) == "/dashboard/sign-in"
    assert ann.accounts.sessions == {}


# ---- one-time links --------------------------------------------------------------------------------


async def test_looking_at_a_link_uses_nothing_up_and_pressing_its_button_signs_in() -> None:
    ann = Pages()
    token = await ann.links.for_account(FakeTx(), ANN.account_id, "sign_in")
    looked = await ann.link_pages().page(request(token=token))
    assert looked.status_code == 200
    assert token in ann.links.by_token
    pressed = await ann.link_pages().page(ann.sent(token=token))

    assert value_of(pressed, "msgsvc_session") in ann.accounts.sessions
    with pytest.raises(NotFound):
        await ann.link_pages().page(ann.sent(token=token))


async def test_a_new_password_by_a_link_ends_every_other_way_in() -> None:
    ann = Pages()
    await ann.accounts.open_session(FakeTx(), ANN.account_id, ip="", user_agent="")
    token = await ann.links.for_account(FakeTx(), ANN.account_id, "password")
    short = await ann.link_pages().page(ann.sent(token=token, password="short"))
    assert (short.status_code, token in ann.links.by_token) == (400, True)
    # Messengers, what waits for one, and that again with the password.
    ann.db.answers += [1, 0, 0]
    done = await ann.link_pages().page(ann.sent(token=token, password=PASSWORD))

    assert [*ann.accounts.sessions] == [value_of(done, "msgsvc_session")]
    assert "DELETE FROM dashboard_account_messengers" in ann.db.statements[0][0]
    kept = ann.credentials.by_id[ANN.account_id].password_hash
    assert await ann.passwords.fits(kept, PASSWORD)


async def test_a_disabled_account_is_not_opened_by_a_link() -> None:
    ann = Pages()
    await ann.accounts.change(FakeTx(), ANN.account_id, status="disabled")
    token = await ann.links.for_account(FakeTx(), ANN.account_id, "sign_in")

    with pytest.raises(NotFound, match="can't sign in"):
        await ann.link_pages().page(ann.sent(token=token))


async def invited(ann: Pages, email: str) -> str:
    body = AddMemberBody(name="New", email=email, role="agent")
    _, token = await ann.team.invite(FakeTx(), PROJECT, body, by="owner")
    return token


async def test_who_is_invited_and_has_no_account_gets_one() -> None:
    ann = Pages()
    token = await invited(ann, "new@shop.example")
    ann.db.answers += [0]
    shown = await ann.link_pages().page(request(token=token))
    assert "new@shop.example" in text(shown)
    before = set(ann.accounts.by_id)
    done = await ann.link_pages().page(ann.sent(token=token, name="Nina", password=PASSWORD))

    [account_id] = ann.accounts.by_id.keys() - before
    assert ann.accounts.by_id[account_id].name == "Nina"
    assert [*ann.core.members.accounts.values()] == [account_id]
    assert value_of(done, "msgsvc_session") in ann.accounts.sessions
    assert ann.noted == ["team.joined", "account.signed_in"]


async def test_an_invitation_opens_no_account_that_is_there() -> None:
    ann = Pages()
    token = await invited(ann, ANN.email)
    path = f"/dashboard/link/{token}"
    sent = await ann.link_pages().page(ann.sent(path, token, password=PASSWORD))
    assert to(sent) == f"/dashboard/sign-in?next={path}"
    assert token in ann.links.by_token
    ann.accounts.sessions["token"] = session()
    joined = await ann.link_pages().page(ann.sent(path, token, {"msgsvc_session": "token"}))

    assert to(joined) == f"/dashboard/projects/{PROJECT}"
    assert [*ann.core.members.accounts.values()] == [ANN.account_id]
    assert ann.noted == ["team.joined"]


async def test_somebody_elses_invitation_is_refused_on_its_page() -> None:
    ann = Pages()
    token = await invited(ann, "bob@shop.example")
    ann.accounts.add("bob@shop.example")
    ann.accounts.sessions["token"] = session()
    pages, sent = ann.invitations(), ann.sent("/x", token, {"msgsvc_session": "token"})

    with pytest.raises(Forbidden, match="another email"):
        await pages.join(sent, await ann.links.find(FakeTx(), token), token, PostedForm())
    assert ann.core.members.accounts == {}


# ---- by a messenger ----------------------------------------------------------------------------------


def waiting(status: str, account_id: str | None = None, purpose: str = "sign_in") -> Any:
    return {
        "digest": "d",
        "purpose": purpose,
        "account_id": account_id,
        "status": status,
        "ip": "",
        "user_agent": "",
        "created_at_ms": 0,
        "expires_at_ms": 10**15,
        "number": 47,
    }


async def test_the_browser_gets_the_link_of_the_bot_and_the_number() -> None:
    ann = Pages()
    begun = await ann.messengers().page(ann.sent(next="/dashboard/x"))
    kept = {"msgsvc_waiting": value_of(begun, "msgsvc_waiting")}
    ann.db.answers.append([waiting("pending")])
    shown = await ann.messengers().page(request(cookies=kept))

    assert to(begun) == "/dashboard/sign-in/messenger?next=/dashboard/x"
    token, _, secret = kept["msgsvc_waiting"].partition(".")
    assert token in text(shown)
    assert "47" in text(shown)
    assert secret not in text(shown)


async def test_while_no_bot_is_ready_nobody_waits_for_one() -> None:
    ann = Pages(channels={})

    with pytest.raises(Unavailable, match="no bot can be opened"):
        await ann.messengers().page(ann.sent())


async def test_there_is_no_such_page_where_the_operator_has_switched_it_off() -> None:
    ann = Pages()
    off = AccountSettings(messenger_sign_in=False)
    channels = ann.core.channels
    ann.messenger_sign_in = MessengerSignIn(clock=ann.clock, settings=off, channels=channels)
    for asked in (request(), ann.sent()):
        with pytest.raises(NotFound):
            await ann.messengers().page(asked)

    assert "/dashboard/sign-in/messenger" not in text(await ann.pages().password(request()))


async def test_who_picked_the_number_is_in_and_cancel_ends_it() -> None:
    ann = Pages()
    confirmed = waiting("confirmed", ANN.account_id)
    ann.db.answers += [[confirmed], [confirmed], 1]
    done = await ann.messengers().page(request(query={"next": "/dashboard/x"}))
    ann.db.answers += [[waiting("denied")]]
    denied = await ann.messengers().page(request())

    assert to(done) == "/dashboard/x"
    assert value_of(done, "msgsvc_session") in ann.accounts.sessions
    assert denied.status_code == 403


@pytest.mark.parametrize("rows", [[], [waiting("confirmed", ANN.account_id, "link")]])
async def test_what_is_no_sign_in_begins_anew(rows: list[Any]) -> None:
    ann = Pages()
    ann.db.answers.append(rows)

    assert to(await ann.messengers().page(request())) == "/dashboard/sign-in"
    assert ann.accounts.sessions == {}


async def test_the_pages_script_hears_how_it_stands() -> None:
    ann = Pages()
    ann.db.answers += [[waiting("pending")], []]
    answers = [await ann.messengers().status(request()) for _ in range(2)]

    assert [text(each) for each in answers] == ['{"status":"pending"}', '{"status":"ended"}']


async def test_one_address_begins_no_more_than_its_tries() -> None:
    ann = Pages()
    for _ in range(SETTINGS.tries_per_address):
        await ann.throttle.request(HOME)
    refused = await ann.messengers().page(ann.sent())

    assert refused.status_code == 429
    assert ann.db.rows["dashboard_account_requests"] == []
