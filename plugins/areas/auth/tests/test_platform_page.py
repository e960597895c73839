"""Sign-in on a platform's own page: visits, their answers, and the job that exchanges the code."""

import asyncio
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx2
import pytest

from msgsvc_auth import plugin
from msgsvc_auth.platforms.exchange import MAX_ATTEMPTS
from msgsvc_core.channels import (
    ChannelUser,
    DeliveryError,
    PlatformPerson,
    PlatformSignInRefused,
    Reason,
)
from msgsvc_core.plugins.sign_ins import PageSignIn
from msgsvc_core.service import Service
from msgsvc_core.subscribers.contacts import Contacts
from msgsvc_devkit import FakeClock, RecordingChannel, settled
from msgsvc_devkit.channel import RecordingPage
from msgsvc_devkit.fixtures import Tenant
from plugins.areas.auth.tests.conftest import Person, sign_ins_of
from plugins.areas.auth.tests.hosted import Browser, browsing

PHONE = "+12025550123"
EVE = PlatformPerson(
    user=ChannelUser("1003", "Eve", "eve"), chat_id="1003", phone=PHONE, email="eve@shop.example"
)
AWAY = DeliveryError(Reason.PLATFORM_UNAVAILABLE, "no answer")
LOST = DeliveryError(Reason.PLATFORM_UNAVAILABLE, "the connection broke", in_doubt=True)


@pytest.fixture
def page(service: Service) -> RecordingPage:
    """The page of `messenger_a`."""
    channel = service.channels["messenger_a"]
    assert isinstance(channel, RecordingChannel)
    channel.platform_sign_in = page = RecordingPage()
    page.people["c0de"] = EVE
    return page


@pytest.fixture
async def browser(service: Service, link: dict[str, Any], page: RecordingPage) -> Any:
    """A browser on the sign-in page."""
    async with browsing(service) as opened:
        await opened.open("/login/shop?state=xyz")
        yield opened


async def leave(browser: Browser) -> str:
    """Follows the link to the platform's page; returns the path of the redirect URI, with the state."""
    left = await browser.http.get(browser.find(r'data-platform="messenger_a" href="([^"]+)"'))
    query = parse_qs(urlsplit(left.headers["Location"]).query)
    return f"{urlsplit(query['redirect_uri'][0]).path}?{urlencode({'state': query['state'][0]})}"


async def arrive(browser: Browser, address: str, **answer: str) -> httpx2.Response:
    """Comes back with the platform's answer, and goes where the service leads."""
    back = await browser.http.get(f"{address}&{urlencode(answer or {'code': 'c0de'})}")
    if back.status_code == 303:
        await browser.open(back.headers["Location"])
    return back


def told(browser: Browser) -> str:
    """What the page says of the visit."""
    return browser.find(r'data-visit="([a-z]+)"')


async def status(browser: Browser, **changed: Any) -> dict[str, Any]:
    found: dict[str, Any] = (await browser.status(**changed)).json()
    return found


async def redirect(browser: Browser) -> str:
    """Where the confirmed sign-in leads. The page itself leads there if the job was done before it opened."""
    if browser.shown.status_code == 303:
        return browser.shown.headers["Location"]
    found = await status(browser)
    assert found["status"] == "confirmed", found
    to: str = found["redirect"]
    return to


async def sessions(service: Service) -> list[str]:
    async with service.db.read() as tx:
        rows = await tx.fetch_all("SELECT session_id FROM auth_sessions ORDER BY created_at_ms")
    return [row["session_id"] for row in rows]


async def visits(service: Service) -> int:
    async with service.db.read() as tx:
        count: int = await tx.fetch_val("SELECT COUNT(*) FROM auth_platform_visits")
    return count


async def contacts_of(service: Service, tenant: Tenant, subscriber_id: str) -> Contacts:
    async with service.db.read() as tx:
        return await service.contacts.find(tx, tenant.project.project_id, subscriber_id)


async def test_the_person_is_signed_in_with_verified_contacts(
    service: Service,
    browser: Browser,
    client: httpx2.AsyncClient,
    tenant: Tenant,
    page: RecordingPage,
) -> None:
    await arrive(browser, await leave(browser))
    await settled(service)
    location = await redirect(browser)
    code = parse_qs(urlsplit(location).query)["code"][0]
    who = (await client.post("/v1/auth/verify", json={"code": code})).json()

    assert (who["first_name"], who["channel"]) == ("Eve", "messenger_a")
    found = await contacts_of(service, tenant, who["subscriber_id"])
    assert (found.phone, found.email) == (PHONE, "eve@shop.example")
    ((given, attempt),) = page.exchanged
    assert given == "c0de"
    assert attempt.redirect_uri == f"{service.settings.base_url}/login/_return/messenger_a"
    assert len({attempt.nonce, attempt.code_verifier}) == 2
    assert min(len(attempt.nonce), len(attempt.code_verifier)) == 43
    assert await visits(service) == 0


async def test_the_method_is_that_of_the_platform_even_where_a_number_is_to_be_matched(
    service: Service, page: RecordingPage, tenant: Tenant
) -> None:
    sign_ins = sign_ins_of(service)
    request = PageSignIn(
        project_id=tenant.project.project_id,
        source="oidc",
        source_id="req-1",
        requester_name="Grafana",
        requester_url="https://grafana.example/",
        return_url="https://msgsvc.example/oidc/return",
        state="s",
        number_matching=True,
    )
    async with service.db.transaction() as tx:
        url = await sign_ins.open_page(tx, request)
    async with browsing(service) as browser:
        await browser.open(urlsplit(url).path)
        await arrive(browser, await leave(browser))
        await settled(service)
        location = await redirect(browser)
    async with service.db.transaction() as tx:
        code = parse_qs(urlsplit(location).query)["code"][0]
        signed_in = await sign_ins.exchange(tx, tenant.project.project_id, code)

    assert signed_in is not None
    assert (signed_in.method, signed_in.subscriber.first_name) == ("platform", "Eve")


async def test_the_page_says_that_it_is_checked_and_is_out_of_date_afterwards(
    service: Service, browser: Browser, page: RecordingPage, clock: FakeClock
) -> None:
    page.failures = [AWAY] * MAX_ATTEMPTS
    await arrive(browser, await leave(browser))
    told = [(await status(browser))["status"]]
    for _ in range(MAX_ATTEMPTS):
        await settled(service)
        clock.advance(30)
    told.append((await status(browser))["status"])

    assert "Checking your answer with the messenger" in browser.shown.text
    assert "data-platform=" not in browser.shown.text
    assert told == ["pending", "changed"]


@pytest.mark.both_databases
async def test_an_outage_is_waited_for_with_the_same_code(
    service: Service, browser: Browser, page: RecordingPage, clock: FakeClock
) -> None:
    page.failures = [AWAY] * (MAX_ATTEMPTS - 1)
    await arrive(browser, await leave(browser))
    for _ in range(MAX_ATTEMPTS):
        await settled(service)
        clock.advance(10)
    await settled(service)

    assert "&code=" in await redirect(browser)
    assert [code for code, _ in page.exchanged] == ["c0de"] * MAX_ATTEMPTS


@pytest.mark.parametrize(
    ("failures", "notice", "attempts"),
    [
        ([AWAY] * MAX_ATTEMPTS, "unavailable", MAX_ATTEMPTS),
        ([LOST], "unavailable", 1),
        ([PlatformSignInRefused("not signed")], "refused", 1),
        ([RuntimeError("a fault of ours")] * MAX_ATTEMPTS, "unavailable", MAX_ATTEMPTS),
    ],
)
async def test_a_failure_is_told_and_the_next_visit_works(
    service: Service,
    browser: Browser,
    page: RecordingPage,
    clock: FakeClock,
    failures: list[Exception],
    notice: str,
    attempts: int,
) -> None:
    page.failures = list(failures)
    await arrive(browser, await leave(browser))
    for _ in range(MAX_ATTEMPTS):
        await settled(service)
        clock.advance(30)
    await browser.reload()
    said, asked = told(browser), len(page.exchanged)
    await arrive(browser, await leave(browser))
    await settled(service)

    assert (said, asked) == (notice, attempts)
    assert "&code=" in await redirect(browser)


@pytest.mark.parametrize(
    ("answer", "notice"),
    [
        ({"error": "access_denied"}, "cancelled"),
        ({"error": "server_error"}, "refused"),
        ({"error": "access_denied", "code": "c0de"}, "cancelled"),
        ({"code": ""}, "refused"),
        ({"code": "x" * 4097}, "refused"),
        ({"hello": "world"}, "refused"),
    ],
)
async def test_an_answer_without_a_code_is_told_and_nothing_is_exchanged(
    service: Service,
    browser: Browser,
    page: RecordingPage,
    answer: dict[str, str],
    notice: str,
) -> None:
    await arrive(browser, await leave(browser), **answer)
    await settled(service)

    assert (told(browser), page.exchanged) == (notice, [])


async def test_a_visit_is_over_with_its_sign_in(
    service: Service, browser: Browser, page: RecordingPage, clock: FakeClock
) -> None:
    address = await leave(browser)
    clock.advance(600)
    await arrive(browser, address)
    await settled(service)

    assert "Time is up" in browser.shown.text
    assert page.exchanged == []


async def test_a_code_that_comes_after_the_bots_yes_signs_nobody_in(
    service: Service, browser: Browser, ann: Person, page: RecordingPage, client: httpx2.AsyncClient
) -> None:
    address = await leave(browser)
    await ann.press(await ann.open(browser.link()), "Yes")
    await arrive(browser, address)
    await settled(service)

    assert page.exchanged == []
    people = (await client.get("/v1/subscribers")).json()["data"]
    assert [each["first_name"] for each in people] == ["Ann"]


@pytest.mark.both_databases
async def test_a_new_visit_makes_the_state_of_the_earlier_one_worthless(
    service: Service, browser: Browser, page: RecordingPage
) -> None:
    earlier, later = await leave(browser), await leave(browser)
    refused = await arrive(browser, earlier)
    await arrive(browser, later)
    await settled(service)

    assert refused.status_code == 403
    assert "&code=" in await redirect(browser)


async def test_an_answer_needs_the_cookie_of_its_visit(
    service: Service, browser: Browser, page: RecordingPage
) -> None:
    address = await leave(browser)
    async with browsing(service, address="198.51.100.9") as stranger:
        without = await arrive(stranger, address)
        await stranger.open("/login/shop?state=xyz")
        other = await leave(stranger)
        for name in list(stranger.http.cookies):
            if name.startswith("msgsvc-return-"):
                secret = stranger.http.cookies[name]
        stranger.http.cookies.set(f"msgsvc-return-{'0' * 16}", secret, path="/login/_return")
        with_own = await arrive(stranger, address)
        unknown = await arrive(stranger, other.partition("?")[0] + "?state=unknown")

    assert [each.status_code for each in (without, with_own, unknown)] == [403] * 3
    assert page.exchanged == []


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_an_answer_that_comes_often_at_once_is_exchanged_once(
    service: Service, browser: Browser, page: RecordingPage
) -> None:
    address = await leave(browser)
    answers = await asyncio.gather(*(browser.http.get(f"{address}&code=c0de") for _ in range(50)))
    await settled(service)

    # All the same: whoever presses `back` is led to the page too, or finds the visit done with.
    assert {each.status_code for each in answers} <= {303, 403}
    assert len(page.exchanged) == 1


async def test_prefetching_an_answer_does_not_use_it_up(
    service: Service, browser: Browser, page: RecordingPage
) -> None:
    address = await leave(browser)
    for headers in ({"Sec-Purpose": "prefetch"}, {"Sec-Fetch-Dest": "iframe"}):
        assert (await browser.http.get(f"{address}&code=c0de", headers=headers)).status_code == 403
    head = await browser.http.head(f"{address}&code=c0de")
    await arrive(browser, address)
    await settled(service)

    assert head.status_code == 403
    assert "&code=" in await redirect(browser)


async def test_a_page_that_a_messenger_does_not_have_cannot_be_visited(
    service: Service, browser: Browser
) -> None:
    href = browser.find(r'data-platform="messenger_a" href="([^"]+)"')

    assert "messenger_b's page" not in browser.shown.text
    for name in ("messenger_b", "unknown"):
        answer = await browser.http.get(href.replace("messenger_a", name))
        assert answer.status_code == 404


async def test_a_sign_in_for_one_messenger_offers_no_others_page(
    service: Service, browser: Browser
) -> None:
    await browser.open("/login/shop?state=b&channel=messenger_b")

    assert "data-platform=" not in browser.shown.text


async def test_a_browser_without_a_sign_in_is_led_to_the_page(
    service: Service, browser: Browser, page: RecordingPage
) -> None:
    href = browser.find(r'data-platform="messenger_a" href="([^"]+)"')
    async with browsing(service) as stranger:
        answer = await stranger.http.get(href)

    assert urlsplit(answer.headers["Location"]).path == "/login/shop"
    assert await visits(service) == 0


async def test_a_number_that_is_none_does_not_stop_the_sign_in(
    service: Service,
    browser: Browser,
    client: httpx2.AsyncClient,
    tenant: Tenant,
    page: RecordingPage,
) -> None:
    page.people["c0de"] = PlatformPerson(user=EVE.user, chat_id="1003", phone="a secret number")
    await arrive(browser, await leave(browser))
    await settled(service)

    assert "&code=" in await redirect(browser)
    (person,) = (await client.get("/v1/subscribers")).json()["data"]
    assert await contacts_of(service, tenant, person["subscriber_id"]) == Contacts()


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_a_channel_that_lost_its_page_meanwhile_is_a_refusal(
    service: Service, browser: Browser, page: RecordingPage
) -> None:
    address = await leave(browser)
    service.channels["messenger_a"].platform_sign_in = None
    await arrive(browser, address)
    await settled(service)
    service.channels["messenger_a"].platform_sign_in = page
    await browser.open("/login/shop?state=xyz&resume=1")

    assert told(browser) == "refused"


async def test_visits_go_with_their_sign_ins(
    service: Service, browser: Browser, clock: FakeClock
) -> None:
    await leave(browser)
    async with service.db.transaction() as tx:
        await tx.execute("DELETE FROM auth_sessions")

    assert await visits(service) == 0


async def test_over_https_the_cookie_of_a_visit_is_of_this_host_alone(
    make_service: Any, make_tenant: Any
) -> None:

    service = await make_service(extra_plugins=[("auth", plugin)], base_url="https://msgsvc.test")
    service.channels["messenger_a"].platform_sign_in = RecordingPage()
    tenant = await make_tenant(service)
    body = {"slug": "shop", "name": "Shop", "callback_url": "https://shop.example/back"}
    await tenant.client.post("/v1/auth/links", json=body)
    async with browsing(service, scheme="https") as browser:
        await browser.open()
        href = browser.find(r'data-platform="messenger_a" href="([^"]+)"')
        cookie = (await browser.http.get(href)).headers["set-cookie"]

    assert cookie.startswith("__Host-msgsvc-return-")
    assert {"HttpOnly", "Path=/", "SameSite=lax", "Secure"} <= set(cookie.split("; "))
