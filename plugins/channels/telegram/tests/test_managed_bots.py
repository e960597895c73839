"""A project's bot made in one tap: the page and the API, the link, the update of the managing bot, and the
channel."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import pytest

from msgsvc_core.channels import BotCreated, ChannelUser
from msgsvc_core.channels.project_channels.requests import ChannelRequests
from msgsvc_core.channels.project_channels.service import ProjectChannels
from msgsvc_core.kernel.errors import Conflict, ValidationFailed
from msgsvc_core.service import Service
from msgsvc_dashboard import plugin as dashboard
from msgsvc_devkit import FakeClock, settled, until
from msgsvc_devkit.dashboard import Visitor, visitor
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from msgsvc_devkit.platforms.telegram import FakeTelegram, Person
from msgsvc_telegram import plugin
from msgsvc_telegram.channel import TelegramChannel

MINUTE_S = 60

PATH = "/v1/channel-requests"
BODY = {"name": "support", "plugin": "telegram"}


@pytest.fixture
async def service(make_service: ServiceFactory, telegram: FakeTelegram) -> Service:
    telegram.bot.can_manage_bots = True
    bot = {
        "plugin": "telegram",
        "token": telegram.bot.token,
        "base_url": telegram.url,
        "makes_bots": True,
    }
    return await make_service(
        channels={"factory": bot},
        extra_plugins=[("telegram", plugin), ("dashboard", dashboard)],
        own_channels={"settings": {"telegram": {"base_url": telegram.url}}},
    )


@pytest.fixture
async def owner(service: Service) -> Visitor:
    channel = service.channels["factory"]
    await service.channels.remember(channel, await channel.check())
    project = await service.projects.create("Corner Coffee")
    return await visitor(service, project.project_id)


@pytest.fixture
def anna(telegram: FakeTelegram) -> Person:
    return telegram.person("Anna")


def link_of(page: str) -> str:
    found = re.search(r'href="(https://t\.me/newbot/[^"]+)"', page)
    assert found is not None, page
    return found[1].replace("&amp;", "&")


async def asked(owner: Visitor, name: str = "support") -> tuple[str, str]:
    """The page of a new request, and the link on it."""
    answer = await owner.post("/channels/requests/new", {"plugin": "telegram", "name": name})
    assert answer.status_code == 303, answer.text
    path = "/channels/requests/" + answer.headers["location"].rpartition("/")[2].partition("?")[0]
    return path, link_of((await owner.get(path)).text)


async def shown(owner: Visitor, path: str, text: str) -> str:
    async def there() -> str:
        page = (await owner.get(path)).text
        return page if text in page else ""

    return await until(there)


async def taken(telegram: FakeTelegram) -> None:
    """The service has confirmed every update."""

    async def none_left() -> bool:
        return len(telegram.bot.updates) == 0

    await until(none_left)


async def called(telegram: FakeTelegram) -> None:
    async def once() -> bool:
        return len(telegram.calls_of("getManagedBotToken")) == 1

    await until(once)


@pytest.mark.both_databases
async def test_a_bot_is_made_in_one_tap_and_works(
    service: Service, telegram: FakeTelegram, owner: Visitor, anna: Person
) -> None:
    form = (await owner.get("/channels/new", kind="telegram")).text
    path, link = await asked(owner)
    waiting = (await owner.get(path)).text
    made = telegram.make_bot(anna, link)
    page = await shown(owner, path, "Connected")

    assert "Make a bot with Telegram" in form
    assert "Waiting" in waiting
    assert re.fullmatch(r"support_[a-z0-9]{10}_bot", made.username)
    assert made.name == "Corner Coffee"
    assert f"@{made.username}" in page
    assert made.token not in page
    async with service.db.read() as tx:
        own = await service.get(ProjectChannels).get(tx, owner.project_id, "support")
        sealed = await tx.fetch_val("SELECT settings FROM core_channels")
    channel = service.channels[own.channel_id]
    assert isinstance(channel, TelegramChannel)
    assert (await channel.check()).account == str(made.bot_id)
    assert made.token not in sealed
    assert telegram.complaints == []
    # It is told again, and a second channel is not made.
    telegram.bot.updates.add("managed_bot", {"user": anna.user, "bot": made.user})
    await settled(service)
    assert len(telegram.calls_of("getManagedBotToken")) == 1


@pytest.mark.both_databases
async def test_a_bot_that_nobody_was_asked_for_is_left_alone(
    service: Service, telegram: FakeTelegram, owner: Visitor, anna: Person
) -> None:
    path, link = await asked(owner)
    telegram.make_bot(anna, link, username="another_coffee_bot")
    await taken(telegram)
    await settled(service)

    assert "Waiting" in (await owner.get(path)).text
    assert telegram.calls_of("getManagedBotToken") == []
    # The request still takes its own bot.
    telegram.make_bot(anna, link)
    assert await shown(owner, path, "Connected")


@pytest.mark.both_databases
async def test_a_request_expires_and_a_later_one_replaces_it(
    service: Service, telegram: FakeTelegram, owner: Visitor, anna: Person, clock: FakeClock
) -> None:
    first, old_link = await asked(owner)
    second, link = await asked(owner)
    replaced = (await owner.get(first)).text
    clock.advance(61 * MINUTE_S)
    expired = (await owner.get(second)).text
    telegram.make_bot(anna, link)
    telegram.make_bot(anna, old_link)
    await taken(telegram)
    await settled(service)

    assert "Cancelled" in replaced
    assert "No bot was made in time." in expired
    assert telegram.calls_of("getManagedBotToken") == []


@pytest.mark.both_databases
async def test_a_name_that_was_taken_meanwhile_is_told(
    service: Service, telegram: FakeTelegram, owner: Visitor, anna: Person
) -> None:
    path, link = await asked(owner)
    await owner.post(
        "/channels/new", {"plugin": "telegram", "name": "support", "s_token": telegram.bot.token}
    )
    telegram.make_bot(anna, link)

    assert "have a channel" in await shown(owner, path, "could not be connected")


@pytest.mark.both_databases
async def test_a_token_is_asked_for_again_when_telegram_is_away(
    service: Service,
    telegram: FakeTelegram,
    owner: Visitor,
    anna: Person,
    clock: FakeClock,
) -> None:
    path, link = await asked(owner)
    telegram.fail_next("getManagedBotToken", 502, "Bad Gateway")
    telegram.make_bot(anna, link)
    await called(telegram)

    async def connected() -> bool:
        clock.advance(5)
        await asyncio.sleep(0.05)
        return "Connected" in (await owner.get(path)).text

    await until(connected)
    assert len(telegram.calls_of("getManagedBotToken")) == 2


async def test_a_refused_token_ends_the_request(
    service: Service, telegram: FakeTelegram, owner: Visitor, anna: Person
) -> None:
    path, link = await asked(owner)
    telegram.fail_next("getManagedBotToken", 400, "Bad Request: user not found")
    telegram.make_bot(anna, link)

    assert "user not found" in await shown(owner, path, "could not be connected")


@pytest.mark.both_databases
async def test_requests_are_a_projects_own_and_count_for_its_limit(
    service: Service, owner: Visitor
) -> None:
    path, _ = await asked(owner)
    other = await service.projects.create("Tea")
    stranger = await visitor(service, other.project_id)
    requests = service.get(ChannelRequests)
    most = service.settings.own_channels.per_project
    async with service.db.transaction() as tx:
        for number in range(1, most):
            await requests.create(tx, owner.project_id, f"bot_{number}", "telegram")
        with pytest.raises(Conflict, match="at most"):
            await requests.create(tx, owner.project_id, "one_more", "telegram")
        with pytest.raises(ValidationFailed):
            await requests.create(tx, owner.project_id, "one_more", "sandbox")

    assert (await stranger.get(path)).status_code == 404


# ---- by the API ---------------------------------------------------------------------------------


@pytest.fixture
async def client(service: Service, tenant: Tenant) -> httpx2.AsyncClient:
    channel = service.channels["factory"]
    await service.channels.remember(channel, await channel.check())
    return tenant.client


async def requested(client: httpx2.AsyncClient, name: str = "support") -> dict[str, Any]:
    answer = await client.post(PATH, json={**BODY, "name": name})
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def read(client: httpx2.AsyncClient, request: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = (await client.get(f"{PATH}/{request['channel_request_id']}")).json()
    return found


async def ended(client: httpx2.AsyncClient, request: dict[str, Any]) -> dict[str, Any]:
    """The request, once its bot is connected, or could not be."""

    async def there() -> dict[str, Any] | None:
        found = await read(client, request)
        return found if found["status"] in ("connected", "failed") else None

    found = await until(there)
    assert found is not None
    return found


async def cancelled(client: httpx2.AsyncClient, request: dict[str, Any]) -> httpx2.Response:
    return await client.post(f"{PATH}/{request['channel_request_id']}/cancel")


async def told(client: httpx2.AsyncClient) -> list[dict[str, Any]]:
    answer = await client.get("/v1/events", params={"event": "channel_request.finished"})
    return [event["data"] for event in answer.json()["data"]]


@pytest.mark.both_databases
async def test_a_program_asks_for_a_bot_and_its_token_is_in_no_answer_event_or_log(
    service: Service,
    client: httpx2.AsyncClient,
    telegram: FakeTelegram,
    anna: Person,
    capsys: pytest.CaptureFixture[str],
) -> None:
    request = await requested(client)
    made = telegram.make_bot(anna, request["link"])
    done = await ended(client, request)
    channel = await client.get("/v1/channels/support")
    listed, [event] = await client.get(PATH), await told(client)
    late = await cancelled(client, request)

    assert request["status"] == "pending"
    assert request["username"] in request["link"]
    assert made.name == "Shop"
    assert done == {**request, "status": "connected", "link": None}
    assert listed.json() == {"data": [done], "next_cursor": None}
    assert channel.json()["secrets"] == ["token"]
    assert (
        event.items()
        >= {
            "channel_request_id": request["channel_request_id"],
            "name": "support",
            "plugin": "telegram",
            "status": "connected",
            "detail": None,
        }.items()
    )
    assert (late.status_code, late.json()["code"]) == (409, "conflict")
    assert "connected" in late.json()["error"]
    captured = capsys.readouterr()
    shown = (channel.text, listed.text, late.text, str(event), captured.out, captured.err)
    for text in shown:
        assert made.token not in text


@pytest.mark.both_databases
async def test_a_cancelled_request_takes_no_bot(
    service: Service, client: httpx2.AsyncClient, telegram: FakeTelegram, anna: Person
) -> None:
    request = await requested(client)
    answer = await cancelled(client, request)
    telegram.make_bot(anna, request["link"])
    await taken(telegram)
    await settled(service)

    assert answer.json() == {**request, "status": "cancelled", "link": None}
    assert await read(client, request) == answer.json()
    assert (await cancelled(client, request)).status_code == 409
    assert telegram.calls_of("getManagedBotToken") == []
    assert await told(client) == []


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_of_a_bot_made_and_its_request_cancelled_at_once_one_is_true(
    service: Service, client: httpx2.AsyncClient
) -> None:
    requests = service.get(ChannelRequests)
    manager = service.channels["factory"].key

    async def make(request: dict[str, Any]) -> None:
        created = BotCreated(
            update_id="1",
            chat_id="7",
            user=ChannelUser("7", "Anna"),
            account="4",
            username=request["username"],
        )
        async with service.db.transaction() as tx:
            await requests.record(tx, manager, created)

    for _ in range(8):
        request = await requested(client)
        answer, _ = await asyncio.gather(cancelled(client, request), make(request))
        status = (await read(client, request))["status"]

        if answer.status_code == 200:
            assert status == "cancelled"
        else:
            assert answer.status_code == 409
            assert status in ("connecting", "failed")
    await settled(service)


@pytest.mark.both_databases
async def test_requests_are_listed_newest_first_in_pages_and_a_later_one_cancels_an_earlier(
    client: httpx2.AsyncClient, clock: FakeClock
) -> None:
    made = []
    for name in ("support", "sales", "support"):
        made.append((await requested(client, name))["channel_request_id"])
        clock.advance(1)
    first = (await client.get(PATH, params={"limit": 2})).json()
    rest = {"limit": 2, "cursor": first["next_cursor"]}
    second = (await client.get(PATH, params=rest)).json()
    clock.advance(61 * MINUTE_S)
    late = (await client.get(PATH)).json()["data"]

    found = [*first["data"], *second["data"]]
    assert [each["channel_request_id"] for each in found] == made[::-1]
    assert second["next_cursor"] is None
    assert [each["status"] for each in found] == ["pending", "pending", "cancelled"]
    assert [each["status"] for each in late] == ["expired", "expired", "cancelled"]
    assert [each["link"] for each in late] == [None] * 3
    expired = await cancelled(client, late[0])
    assert (expired.status_code, "expired" in expired.json()["error"]) == (409, True)


@pytest.mark.both_databases
async def test_another_projects_request_is_not_there_and_stays(
    service: Service,
    client: httpx2.AsyncClient,
    make_tenant: Callable[..., Awaitable[Tenant]],
) -> None:
    request = await requested(client)
    other = (await make_tenant(service, "Tea")).client
    path = f"{PATH}/{request['channel_request_id']}"

    assert (await other.get(path)).status_code == 404
    assert (await other.post(f"{path}/cancel")).status_code == 404
    assert (await other.get(PATH)).json()["data"] == []
    assert await read(client, request) == request


async def test_what_can_not_be_requested_is_refused(
    service: Service,
    client: httpx2.AsyncClient,
    tenant: Tenant,
    make_tenant: Callable[..., Awaitable[Tenant]],
) -> None:
    kind = await client.post(PATH, json={**BODY, "plugin": "sandbox"})
    name = await client.post(PATH, json={**BODY, "name": "No"})
    reader = (await make_tenant(service, "Tea", ("messages",))).client
    scope = await reader.post(PATH, json=BODY)
    again = {"headers": {"Idempotency-Key": "one-bot"}}
    twice = [(await client.post(PATH, json=BODY, **again)).json() for _ in range(2)]

    assert (kind.status_code, kind.json()["code"]) == (400, "validation_failed")
    assert "plugin" in kind.json()["error"]
    assert (name.status_code, scope.status_code) == (400, 403)
    assert twice[0] == twice[1]


# ---- the bot, and Telegram's rules --------------------------------------------------------------


async def test_a_bot_without_bot_management_says_so(
    make_channel: Callable[..., TelegramChannel], telegram: FakeTelegram, anna: Person
) -> None:
    channel = make_channel(makes_bots=True)
    told = (await channel.check()).detail
    telegram.bot.can_manage_bots = True

    assert "bot management" in told
    assert (await channel.check()).detail == f"@{telegram.bot.username}"


def test_telegram_makes_bots_by_links_as_documented_alone(
    telegram: FakeTelegram, anna: Person
) -> None:
    telegram.bot.can_manage_bots = True
    place = f"https://t.me/newbot/{telegram.bot.username}"
    for link in (
        f"{place}/shop",
        f"{place}/a__b_bot",
        f"{place}/{'x' * 40}_bot",
        f"{place}/{telegram.bot.username}",
        f"{place}/shop_bot?name={'x' * 65}",
        "https://t.me/shop_bot",
    ):
        with pytest.raises(ValueError, match=r"bot"):
            telegram.make_bot(anna, link)
