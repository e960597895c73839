"""Sign-in pages of other plugins: each for one request, whose code is the plugin's alone."""

import asyncio
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from msgsvc_core.channels.failures import ChannelNotReady
from msgsvc_core.kernel.errors import Unavailable, ValidationFailed
from msgsvc_core.plugins.sign_ins import PageSignIn
from msgsvc_devkit.channel import RecordingChannel
from plugins.areas.auth.tests.conftest import sign_ins_of
from plugins.areas.auth.tests.hosted import browsing

RETURN_URL = "https://msgsvc.example/oidc/return?via=page"
STATE = "a b&ё=#\"<'"


@pytest.fixture
async def browser(service):
    async with browsing(service) as opened:
        yield opened


@pytest.fixture
async def stranger(service):
    async with browsing(service, address="198.51.100.9") as opened:
        yield opened


@pytest.fixture
def sign_ins(service):
    """As other plugins have it, by `context.peers.sign_ins`."""
    return sign_ins_of(service)


@pytest.fixture
def request_page(service, sign_ins, tenant):
    """Opens a page for Grafana; returns its path."""

    async def request_page(**changed: Any) -> str:
        request = PageSignIn(
            project_id=tenant.project.project_id,
            source="oidc",
            source_id="req-1",
            requester_name="Grafana",
            requester_url="https://grafana.example/login/generic_oauth",
            return_url=RETURN_URL,
            state=STATE,
        )
        async with service.db.transaction() as tx:
            url = await sign_ins.open_page(tx, replace(request, **changed))
        return urlsplit(url).path

    return request_page


@pytest.fixture
def exchange(service, sign_ins, tenant):
    async def exchange(code: str, project_id: str = "") -> Any:
        async with service.db.transaction() as tx:
            return await sign_ins.exchange(tx, project_id or tenant.project.project_id, code)

    return exchange


def query_of(url: str) -> dict[str, list[str]]:
    return parse_qs(urlsplit(url).query)


async def code_on(browser: Any, person: Any, path: str, answer: str = "Yes") -> str:
    """The code with which the browser is led back."""
    await browser.open(path)
    await person.press(await person.open(browser.link()), answer)
    return query_of((await browser.reload()).headers["Location"])["code"][0]


async def test_page_names_the_requester_the_project_and_the_host_to_return_to(
    browser, request_page
):
    path = await request_page()
    page = await browser.open(path)

    assert path.startswith("/login/req_")
    assert browser.heading == "Sign in to Grafana"
    assert "with Shop" in page.text
    assert "You will return to grafana.example." in page.text
    assert "msgsvc.example" not in page.text
    assert page.headers["Referrer-Policy"] == "no-referrer"


async def test_yes_leads_back_with_code_and_the_requests_own_state(browser, request_page, ann):
    path = await request_page()
    await browser.open(path, params={"state": "forged", "channel": "messenger_b"})
    both = [browser.link(channel) for channel in ("messenger_a", "messenger_b")]
    await ann.press(await ann.open(both[0]), "Yes")

    sent_on = await browser.reload()

    assert sent_on.status_code == 303
    assert sent_on.headers["Location"].startswith(f"{RETURN_URL}&code=")
    assert query_of(sent_on.headers["Location"])["state"] == [STATE]


async def test_yes_is_told_to_the_waiting_script(browser, request_page, ann):
    await browser.open(await request_page())
    question = await ann.open(browser.link())

    waiting = asyncio.create_task(browser.status(wait=25))
    await ann.press(question, "Yes")
    answer = (await waiting).json()

    assert answer["redirect"].startswith(f"{RETURN_URL}&code=")


async def test_bot_names_the_requester_and_its_host_and_leads_nowhere(browser, request_page, ann):
    await browser.open(await request_page())
    question = await ann.open(browser.link())
    asked = question.message.text
    await ann.press(question, "Yes")

    assert asked.startswith("Sign in to Grafana with Shop?\n\nSite: grafana.example\n")
    assert ann.shown.message.text == (
        "You are signed in to Grafana. Go back to the page where you started."
    )
    assert not ann.shown.message.buttons


async def test_code_is_exchanged_once_for_the_person_and_the_request(
    browser, request_page, exchange, ann, service
):
    code = await code_on(browser, ann, await request_page())

    person = await exchange(code)

    assert (person.source, person.source_id, person.method) == ("oidc", "req-1", "button")
    assert person.subscriber.first_name == "Ann"
    assert person.confirmed_at_ms <= service.clock.now_ms()
    assert await exchange(code) is None


async def test_number_that_was_picked_is_told(browser, request_page, exchange, ann):
    await browser.open(await request_page(number_matching=True))
    number = browser.find(r'class="number">(\d\d)<')
    await ann.press(await ann.open(browser.link()), number)
    code = query_of((await browser.reload()).headers["Location"])["code"][0]

    assert (await exchange(code)).method == "number"


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_of_exchanges_at_once_one_gets_the_person(browser, request_page, exchange, ann):
    code = await code_on(browser, ann, await request_page())

    people = await asyncio.gather(*(exchange(code) for _ in range(20)))

    assert len([person for person in people if person is not None]) == 1


@pytest.mark.both_databases
async def test_codes_of_plugins_and_of_sites_are_not_taken_for_each_other(
    browser, request_page, exchange, sign_in, client, ann
):
    of_plugin = await code_on(browser, ann, await request_page())
    of_site = (await sign_in(ann))["code"]

    refused = await client.post("/v1/auth/verify", json={"code": of_plugin})
    none = await exchange(of_site)
    verified = await client.post("/v1/auth/verify", json={"code": of_site})

    assert refused.json()["code"] == "auth_code_invalid"
    assert none is None
    assert verified.status_code == 200
    assert await exchange(of_plugin) is not None
    used = await client.post("/v1/auth/verify", json={"code": of_plugin})
    assert used.json()["code"] == "auth_code_invalid"


async def test_code_of_another_project_is_none(browser, request_page, exchange, ann):
    code = await code_on(browser, ann, await request_page())

    assert await exchange(code, "prj_other") is None
    assert await exchange(code) is not None


async def test_api_shows_no_sign_in_of_a_plugin(browser, request_page, client, ann, service):
    await code_on(browser, ann, await request_page())
    async with service.db.read() as tx:
        session_id = await tx.fetch_val("SELECT session_id FROM auth_sessions")

    answer = await client.get(f"/v1/auth/session/{session_id}/status")

    assert answer.status_code == 404


async def test_another_browser_with_the_address_gets_no_code(browser, stranger, request_page, ann):
    path = await request_page()
    await browser.open(path)
    polled, link = browser.poll(), browser.link()
    await ann.press(await ann.open(link), "Yes")

    asked = await stranger.http.get(f"{path}/status", params=polled)
    await stranger.open(path)

    assert asked.status_code == 404
    assert stranger.link() != link


async def test_cookie_of_one_request_opens_nothing_on_the_page_of_another(
    browser, stranger, request_page
):
    first, second = await request_page(), await request_page(source_id="req-2")
    await browser.open(first)
    [(_, secret)] = browser.http.cookies.items()
    await stranger.open(second)
    [(name, _)] = stranger.http.cookies.items()

    stranger.http.cookies.clear()
    moved = {"Cookie": f"{name}={secret}"}
    answer = await stranger.http.get(f"{second}/status", params=stranger.poll(), headers=moved)

    assert answer.status_code == 404


async def test_cancel_offers_another_try_and_the_way_back(browser, request_page, ann, exchange):
    await browser.open(await request_page())
    await ann.press(await ann.open(browser.link()), "Cancel")

    await browser.reload()
    back = browser.find(r'href="([^"]+)" rel="noreferrer">Back to Grafana<')
    heading, denied = browser.heading, ann.shown.message.text
    await browser.try_again()
    await ann.press(await ann.open(browser.link()), "Yes")
    code = query_of((await browser.reload()).headers["Location"])["code"][0]

    assert heading == "Sign-in was cancelled"
    assert denied == "Cancelled. You are not signed in to Grafana."
    assert back.startswith(f"{RETURN_URL}&error=access_denied&")
    assert query_of(back)["state"] == [STATE]
    assert (await exchange(code)).source_id == "req-1"


async def test_sign_in_that_ran_out_with_its_request_offers_the_way_back_alone(
    browser, request_page, clock
):
    await browser.open(await request_page())
    clock.advance(600)

    page = await browser.reload()

    assert browser.heading == "Time is up"
    assert "Back to Grafana" in page.text
    assert "<form" not in page.text


async def test_sign_in_started_in_time_ends_after_its_request(
    browser, request_page, clock, ann, exchange
):
    path = await request_page()
    clock.advance(599)
    await browser.open(path)
    clock.advance(599)
    await ann.press(await ann.open(browser.link()), "Yes")
    code = query_of((await browser.reload()).headers["Location"])["code"][0]

    assert await exchange(code) is not None


async def test_nobody_starts_a_sign_in_on_a_page_that_ran_out(browser, request_page, clock):
    path = await request_page()
    clock.advance(600)

    page = await browser.open(path)

    assert page.status_code == 404
    assert browser.heading == "There is no sign-in here"
    assert "Set-Cookie" not in page.headers


@pytest.mark.parametrize("path", ["req_", "req_" + "x" * 22, "req_" + "x" * 21, "req_é", "arq_1"])
async def test_unknown_pages_are_not_there(browser, service, path):
    page = await browser.open(f"/login/{path}")

    assert page.status_code == 404
    assert browser.heading == "There is no sign-in here"


async def test_lost_sign_in_of_a_page_that_ran_out_cannot_be_tried_again(
    browser, request_page, clock
):
    await browser.open(await request_page())
    before = browser.find(r'http-equiv="refresh" content="\d+; url=([^"]+)"')
    clock.advance(600)
    browser.http.cookies.clear()
    page = await browser.open(before)

    assert browser.heading == "Sign-in not found"
    assert "<form" not in page.text


async def test_page_of_a_disabled_project_is_not_there(browser, request_page, service, tenant):
    path = await request_page()
    await service.projects.set_active(tenant.project.project_id, active=False)

    assert (await browser.open(path)).status_code == 404


async def test_page_and_question_speak_the_requested_language(browser, request_page, ann):
    await browser.open(await request_page(lang="ru"))
    question = await ann.open(browser.link())

    assert browser.heading == "Вход в Grafana"
    assert question.message.text.startswith("Войти в Grafana через Shop?")


async def test_language_of_the_address_goes_before_the_requested_one(browser, request_page):
    await browser.open(await request_page(lang="ru"), params={"lang": "en"})

    assert browser.heading == "Sign in to Grafana"


async def test_requested_channel_is_the_only_one(browser, request_page):
    page = await browser.open(await request_page(channel="messenger_b"))

    assert browser.link("messenger_b")
    assert "messenger_a" not in page.text


async def test_who_was_signed_in_is_not_asked_again_on_the_same_page(browser, request_page, ann):
    path = await request_page()
    await code_on(browser, ann, path)

    page = await browser.open(path)

    assert browser.heading == "You are signed in"
    assert "<form" not in page.text
    assert "Continue to grafana.example" in page.text


async def test_name_of_a_requester_is_text_and_one_line(browser, request_page, ann):
    page = await browser.open(await request_page(requester_name="<b>Gra\n\u202efana</b>"))
    question = await ann.open(browser.link())

    assert "<b>" not in page.text
    assert question.message.text.startswith("Sign in to <b>Gra fana</b> with Shop?\n")


async def test_requester_without_a_site_is_known_by_its_name(browser, request_page, ann):
    page = await browser.open(await request_page(requester_name="Backup tool", requester_url=""))
    question = await ann.open(browser.link())

    assert "You will return to Backup tool." in page.text
    assert "Site:" not in question.message.text


@pytest.mark.parametrize(
    "changed",
    [
        {"requester_name": " \u202e"},
        {"requester_url": "javascript:alert(1)"},
        {"requester_url": "https://grafana.example@evil.example/"},
        {"requester_url": "https://[::1"},
        {"requester_url": "grafana.example"},
        {"channel": "pigeon"},
    ],
)
async def test_requester_that_cannot_be_shown_and_unknown_channel_are_refused(
    request_page, changed
):
    with pytest.raises(ValidationFailed):
        await request_page(**changed)


async def test_completed_sign_in_is_an_event_without_the_plugins_state(
    browser, request_page, ann, client
):
    await code_on(browser, ann, await request_page())

    [event] = (await client.get("/v1/events?event=auth.completed")).json()["data"]
    assert (event["data"]["state"], event["data"]["first_name"]) == ("", "Ann")


async def test_page_is_unavailable_while_no_bot_is_ready(request_page, monkeypatch):
    def deep_link(_channel: RecordingChannel, _payload: str) -> str:
        raise ChannelNotReady("nobody knows who it is")

    monkeypatch.setattr(RecordingChannel, "deep_link", deep_link)

    with pytest.raises(Unavailable):
        await request_page()
