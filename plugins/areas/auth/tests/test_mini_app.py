"""Signing in on a mini app's page, by what each messenger signs."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any
from urllib.parse import parse_qs, parse_qsl, quote, urlencode, urlsplit

import httpx2
import pytest

from msgsvc_auth.mini_app import store
from msgsvc_core.service import Service
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from plugins.areas.auth.tests.mini_apps import MESSENGERS, PAYLOAD, MiniApps, mini_apps_of
from plugins.areas.auth.tests.test_charging import Ledger

PATH = "/login/shop/app"
on_every_messenger = pytest.mark.parametrize("messenger", MESSENGERS)


@pytest.fixture
async def mini_apps(make_service: ServiceFactory) -> AsyncIterator[MiniApps]:
    async with mini_apps_of(make_service) as mini_apps:
        yield mini_apps


@pytest.fixture
def service(mini_apps: MiniApps) -> Service:
    return mini_apps.service


@pytest.fixture
async def visitor(service: Service, link: dict[str, Any]) -> AsyncIterator[httpx2.AsyncClient]:
    """The page: somebody without an API key."""
    transport = httpx2.ASGITransport(app=service.app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://msgsvc.test") as visitor:
        yield visitor


async def events(client: httpx2.AsyncClient, name: str) -> list[dict[str, Any]]:
    answer = await client.get("/v1/events", params={"event": name})
    return [event["data"] for event in answer.json()["data"]]


def refusal(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


@on_every_messenger
async def test_who_says_yes_is_led_to_the_site_with_a_code_that_works(
    mini_apps: MiniApps, client: httpx2.AsyncClient, visitor: httpx2.AsyncClient, messenger: str
) -> None:
    init_data = await mini_apps.open(messenger)
    answer = await visitor.post(PATH, json={"init_data": init_data, "state": "a b&c=ё"})

    assert answer.status_code == 200, answer.text
    url = urlsplit(answer.json()["redirect"])
    query = parse_qs(url.query)
    assert url._replace(query="").geturl() == "https://shop.example/back"
    assert (query["from"], query["state"]) == (["bot"], ["a b&c=ё"])
    verified = await client.post("/v1/auth/verify", json={"code": query["code"][0]})
    assert verified.status_code == 200, verified.text
    told = verified.json()
    assert (told["first_name"], told["channel"], told["state"]) == ("Anna", messenger, "a b&c=ё")
    (completed,) = await events(client, "auth.completed")
    assert (completed["session_id"], completed["state"]) == (told["session_id"], "a b&c=ё")
    (created,) = await events(client, "subscription.created")
    assert (created["source"], created["first_name"]) == ("auth", "Anna")


@on_every_messenger
async def test_the_same_data_signs_in_once(
    mini_apps: MiniApps, client: httpx2.AsyncClient, visitor: httpx2.AsyncClient, messenger: str
) -> None:
    init_data = await mini_apps.open(messenger)
    first = await visitor.post(PATH, json={"init_data": init_data})
    again = await visitor.post(PATH, json={"init_data": init_data})

    assert first.status_code == 200
    assert refusal(again) == (409, "auth_mini_app_used")
    assert len(await events(client, "auth.completed")) == 1


@pytest.mark.database_file
@pytest.mark.both_databases
@on_every_messenger
async def test_of_many_posts_of_the_same_data_at_once_one_signs_in(
    mini_apps: MiniApps, client: httpx2.AsyncClient, visitor: httpx2.AsyncClient, messenger: str
) -> None:
    body = {"init_data": await mini_apps.open(messenger)}
    answers = await asyncio.gather(*(visitor.post(PATH, json=body) for _ in range(20)))

    statuses = [answer.status_code for answer in answers]
    assert (statuses.count(200), statuses.count(409)) == (1, 19)
    assert len(await events(client, "auth.completed")) == 1


@pytest.mark.parametrize("messenger", ["telegram", "max"])
async def test_data_written_in_another_way_is_still_the_same(
    mini_apps: MiniApps, visitor: httpx2.AsyncClient, messenger: str
) -> None:
    init_data = await mini_apps.open(messenger)
    turned = urlencode(list(reversed(parse_qsl(init_data))))
    await visitor.post(PATH, json={"init_data": init_data})
    again = await visitor.post(PATH, json={"init_data": turned})

    assert turned != init_data
    assert refusal(again) == (409, "auth_mini_app_used")


@on_every_messenger
async def test_data_is_taken_for_ten_minutes(
    mini_apps: MiniApps, visitor: httpx2.AsyncClient, messenger: str
) -> None:
    early, late = await mini_apps.open(messenger, "Anna"), await mini_apps.open(messenger, "Boris")
    mini_apps.clock.advance(590)
    taken = await visitor.post(PATH, json={"init_data": early})
    mini_apps.clock.advance(20)
    refused = await visitor.post(PATH, json={"init_data": late})

    assert taken.status_code == 200, taken.text
    assert refusal(refused) == (400, "validation_failed")
    assert refused.json()["error"].startswith("init_data: signed more than 10 minutes ago")


@on_every_messenger
async def test_data_that_was_changed_is_refused(
    mini_apps: MiniApps, client: httpx2.AsyncClient, visitor: httpx2.AsyncClient, messenger: str
) -> None:
    init_data = await mini_apps.open(messenger)
    for changed in (init_data.replace("Anna", "Hanna"), init_data + "0", "", "rubbish"):
        answer = await visitor.post(PATH, json={"init_data": changed})

        assert refusal(answer) == (400, "validation_failed")
        assert answer.json()["error"].startswith("init_data: no bot of the project has signed")
    assert await events(client, "subscription.created") == []


async def test_data_of_another_bot_is_refused(
    mini_apps: MiniApps, visitor: httpx2.AsyncClient
) -> None:
    foreign = mini_apps.telegram.add_bot("other_bot").person("Anna").open_mini_app(PAYLOAD)
    answer = await visitor.post(PATH, json={"init_data": foreign})

    assert refusal(answer) == (400, "validation_failed")


@on_every_messenger
@pytest.mark.parametrize("payload", ["", "from_ad", "auth_shop2", "auth_sho", "AUTH_SHOP"])
async def test_data_of_a_shared_bot_is_for_the_link_that_it_names(
    mini_apps: MiniApps, visitor: httpx2.AsyncClient, messenger: str, payload: str
) -> None:
    init_data = await mini_apps.open(messenger, payload=payload)
    answer = await visitor.post(PATH, json={"init_data": init_data})

    assert refusal(answer) == (400, "validation_failed")
    assert "startapp=auth_shop" in answer.json()["error"]


async def test_data_for_one_project_signs_in_to_no_other(
    mini_apps: MiniApps,
    make_tenant: Callable[..., Awaitable[Tenant]],
    visitor: httpx2.AsyncClient,
) -> None:
    other = await make_tenant(mini_apps.service, "Other")
    body = {"slug": "other", "name": "Other", "callback_url": "https://other.example/back"}
    await other.client.post("/v1/auth/links", json=body)
    data = {"init_data": await mini_apps.open("telegram")}
    there = await visitor.post("/login/other/app", json=data)
    here = await visitor.post(PATH, json=data)

    assert refusal(there) == (400, "validation_failed")
    assert here.status_code == 200


async def test_a_bot_of_the_projects_own_needs_no_payload(
    make_service: ServiceFactory, make_tenant: Callable[..., Awaitable[Tenant]]
) -> None:
    async with mini_apps_of(make_service) as mini_apps:
        own = mini_apps.telegram.add_bot("shop_bot")
        tenant = await make_tenant(mini_apps.service)
        settings = {"token": own.token, "receiving": "poll"}
        made = await tenant.client.post(
            "/v1/channels", json={"name": "shop", "plugin": "telegram", "settings": settings}
        )
        body = {"slug": "shop", "name": "Shop", "callback_url": "https://shop.example/back"}
        await tenant.client.post("/v1/auth/links", json=body)
        answers = [
            await tenant.client.post(
                PATH, json={"init_data": own.person("Anna").open_mini_app(payload)}
            )
            for payload in ("", "from_ad", "auth_shop", "auth_another")
        ]

    assert made.status_code == 201, made.text
    assert [answer.status_code for answer in answers] == [200, 200, 200, 400]


async def test_who_has_not_started_the_bot_on_max_is_told_to(
    mini_apps: MiniApps, client: httpx2.AsyncClient, visitor: httpx2.AsyncClient
) -> None:
    ben = mini_apps.max.person("Ben")
    body = {"init_data": mini_apps.max.init_data(ben, PAYLOAD)}
    early = await visitor.post(PATH, json=body)
    await mini_apps.start("max", str(ben.user_id), str(ben.chat_id))
    # What was refused was not used up.
    late = await visitor.post(PATH, json=body)

    assert refusal(early) == (409, "conflict")
    assert late.status_code == 200, late.text


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "http://msgsvc.test.evil.example"},
        {"Origin": "http://msgsvc.test:8080"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site", "Origin": "http://msgsvc.test"},
    ],
)
async def test_a_page_of_another_site_signs_nobody_in(
    mini_apps: MiniApps, visitor: httpx2.AsyncClient, headers: dict[str, str]
) -> None:
    body = {"init_data": await mini_apps.open("telegram")}
    theirs = await visitor.post(PATH, json=body, headers=headers)
    ours = await visitor.post(
        PATH, json=body, headers={"Origin": "http://msgsvc.test", "Sec-Fetch-Site": "same-origin"}
    )

    assert refusal(theirs) == (403, "forbidden")
    assert ours.status_code == 200


async def test_a_form_of_another_site_is_not_read(visitor: httpx2.AsyncClient) -> None:
    answer = await visitor.post(
        PATH, content=b'{"init_data": "x"}', headers={"Content-Type": "text/plain"}
    )

    assert answer.status_code == 400


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"init_data": "x", "channel": "pigeon"}, "channel: must be one of"),
        ({"init_data": "x" * 16_385}, "init_data: "),
        ({"init_data": "x", "state": "x" * 513}, "state: "),
        ({}, "init_data: "),
    ],
)
async def test_a_wrong_body_is_refused_by_its_field(
    visitor: httpx2.AsyncClient, body: dict[str, Any], message: str
) -> None:
    answer = await visitor.post(PATH, json=body)

    assert refusal(answer) == (400, "validation_failed")
    assert answer.json()["error"].startswith(message)


async def test_the_named_channel_alone_is_asked(
    mini_apps: MiniApps, visitor: httpx2.AsyncClient
) -> None:
    init_data = await mini_apps.open("telegram")
    refused = await visitor.post(PATH, json={"init_data": init_data, "channel": "max"})
    taken = await visitor.post(PATH, json={"init_data": init_data, "channel": "telegram"})

    assert (refused.status_code, taken.status_code) == (400, 200)


async def test_a_link_that_is_gone_signs_nobody_in(
    mini_apps: MiniApps, client: httpx2.AsyncClient, visitor: httpx2.AsyncClient
) -> None:
    await client.delete("/v1/auth/links/shop")
    page = await visitor.get(PATH)
    posted = await visitor.post(PATH, json={"init_data": await mini_apps.open("telegram")})

    assert page.status_code == posted.status_code == 404
    assert "This link is no longer valid." in page.text
    assert "<button" not in page.text


async def test_a_disabled_projects_page_is_gone(
    mini_apps: MiniApps, tenant: Tenant, visitor: httpx2.AsyncClient
) -> None:
    await mini_apps.service.projects.set_active(tenant.project.project_id, False)
    posted = await visitor.post(PATH, json={"init_data": await mini_apps.open("telegram")})

    assert posted.status_code == (await visitor.get(PATH)).status_code == 404


async def test_the_page_names_project_and_site_and_loads_nothing(
    visitor: httpx2.AsyncClient,
) -> None:
    page = await visitor.get(f"{PATH}?state=x&tgWebAppStartParam=auth_shop")
    policy = page.headers["content-security-policy"]

    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "Sign in to Shop (shop.example)?" in page.text
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "frame-ancestors https://web.telegram.org https://web.max.ru" in policy
    assert "unsafe" not in policy
    assert page.headers["referrer-policy"] == "no-referrer"
    assert page.headers["cache-control"] == "no-store"
    # Without JavaScript, and outside the messenger, there is the way by the bots.
    assert "?start=auth_shop" in page.text


@pytest.mark.parametrize(
    ("accepted", "query", "said"),
    [
        ("ru-RU,ru;q=0.9", "", "Войти в Shop (shop.example)?"),
        ("de", "", "Sign in to Shop (shop.example)?"),
        ("de, en;q=0.4, ru;q=0.6", "", "Войти в Shop (shop.example)?"),
        ("en", "?lang=ru", "Войти в Shop (shop.example)?"),
    ],
)
async def test_the_page_speaks_the_persons_language(
    visitor: httpx2.AsyncClient, accepted: str, query: str, said: str
) -> None:
    page = await visitor.get(PATH + query, headers={"Accept-Language": accepted})

    assert said in page.text


async def test_a_projects_name_can_be_no_markup(
    mini_apps: MiniApps, make_tenant: Callable[..., Awaitable[Tenant]], visitor: httpx2.AsyncClient
) -> None:
    tenant = await make_tenant(mini_apps.service, '<script>alert("{yes}")</script>')
    body = {"slug": "evil", "name": "Evil", "callback_url": "https://evil.example/back"}
    await tenant.client.post("/v1/auth/links", json=body)
    page = await visitor.get(f"/login/evil/app?state={quote('<script>alert(1)</script>')}")

    assert page.status_code == 200
    assert "&lt;script&gt;alert" in page.text
    assert "<script>alert" not in page.text


async def test_what_was_used_is_forgotten_when_it_is_too_old(
    mini_apps: MiniApps, visitor: httpx2.AsyncClient
) -> None:
    await visitor.post(PATH, json={"init_data": await mini_apps.open("telegram")})
    async with mini_apps.service.db.transaction() as tx:
        kept = await store.purge_uses(tx, mini_apps.clock.now_ms(), 10)
    mini_apps.clock.advance(601)
    async with mini_apps.service.db.transaction() as tx:
        forgotten = await store.purge_uses(tx, mini_apps.clock.now_ms(), 10)

    assert (kept, forgotten) == (0, 1)


async def test_each_sign_in_is_charged_once_and_a_refused_one_not_at_all(
    make_service: ServiceFactory, make_tenant: Callable[..., Awaitable[Tenant]]
) -> None:
    ledger = Ledger()
    async with mini_apps_of(make_service, ("ledger", ledger)) as mini_apps:
        client = (await make_tenant(mini_apps.service)).client
        body = {"slug": "shop", "name": "Shop", "callback_url": "https://shop.example/back"}
        await client.post("/v1/auth/links", json=body)
        init_data = await mini_apps.open("telegram")
        for data in (init_data, init_data, "rubbish"):
            await client.post(PATH, json={"init_data": data})
        (completed,) = await events(client, "auth.completed")

    (charge,) = ledger.charges
    assert (charge.operation, charge.resource_id) == ("auth.confirmed", completed["session_id"])
    assert charge.refusable is False


async def test_data_that_nobody_signed_is_refused_without_waiting_for_who_writes(
    service: Service, visitor: httpx2.AsyncClient
) -> None:
    """SQLite has one writer, which whoever posts rubbish must not take."""
    async with service.db.transaction(), asyncio.timeout(30):
        answer = await visitor.post(PATH, json={"init_data": "user=1&hash=00"})

    assert refusal(answer) == (400, "validation_failed")
