"""/v1/channels: what a project may set, what is shown of it, and what is kept how."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import pytest

from msgsvc_core.service import Service
from msgsvc_devkit import until
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from tests.channels.conftest import AddBot
from tests.channels.messenger import FakeChannel, Platform

TOKEN = "7355608:a-token-that-must-not-be-seen"


def body(name: str = "own_bot", **settings: Any) -> dict[str, Any]:
    return {"name": name, "plugin": "fake", "settings": {"token": TOKEN, **settings}}


async def test_a_new_channel_is_shown_without_its_secrets(
    client: httpx2.AsyncClient, platform: Platform
) -> None:
    made = await client.post("/v1/channels", json=body(greeting="hello"))

    async def known() -> bool:
        shown = (await client.get("/v1/channels/own_bot")).json()
        return bool(shown["link"])

    await until(known)
    shown = (await client.get("/v1/channels/own_bot")).json()
    listed = (await client.get("/v1/channels")).json()

    assert made.status_code == 201, made.text
    assert shown["settings"] == {"receiving": "poll", "greeting": "hello"}
    assert shown["secrets"] == ["token"]
    assert shown["channel_id"].startswith("chn_")
    assert shown["status"] == "working"
    assert shown["detail"] is None
    assert shown["receiving"] == "poll"
    assert shown["bot"] == {"name": "Bot", "username": platform.bots[TOKEN].username}
    assert shown["link"] == f"https://fake.example/{platform.bots[TOKEN].username}?start=hello"
    assert listed == {"data": [shown], "next_cursor": None}
    assert TOKEN not in made.text


async def test_a_token_is_nowhere_in_the_clear(
    service: Service, client: httpx2.AsyncClient, capsys: pytest.CaptureFixture[str]
) -> None:
    headers = {"Idempotency-Key": "add-own-bot"}
    answers = [
        await client.post("/v1/channels", json=body(), headers=headers),
        await client.post("/v1/channels", json=body(receiving=TOKEN)),
        await client.patch("/v1/channels/own_bot", json={"settings": {"token": TOKEN, "x": 1}}),
        await client.get("/v1/project"),
    ]

    async with service.db.read() as tx:
        stored = await tx.fetch_val("SELECT settings FROM core_channels")
        kept = await tx.fetch_val("SELECT body FROM core_idempotency")
    captured = capsys.readouterr()
    for text in (*(answer.text for answer in answers), stored, kept, captured.out, captured.err):
        assert TOKEN not in text
    assert TOKEN not in repr(service.channels.resolve("prj_1", "own_bot"))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"plugin": "telepathy"}, "plugin: no loaded plugin has a messenger named 'telepathy'"),
        ({"settings": {}}, "settings.token: is required"),
        ({"settings": {"token": 5}}, "settings.token: "),
        ({"settings": {"token": TOKEN, "tokn": "x"}}, "settings.tokn: there is no such setting"),
        (
            {"settings": {"token": TOKEN, "base_url": "http://169.254.169.254"}},
            "settings.base_url: only the operator of the service can set it",
        ),
        (
            {"settings": {"token": TOKEN, "folder": "/etc"}},
            "settings.folder: only the operator of the service can set it",
        ),
        ({"settings": {"token": "x" * 9000}}, "settings: must be at most 8192 bytes as JSON"),
        ({"name": "Own Bot"}, "name: "),
        ({"name": "../hooks"}, "name: "),
    ],
)
async def test_what_a_channel_can_not_be_made_of_is_refused_by_name(
    client: httpx2.AsyncClient, check_error: Any, change: dict[str, Any], text: str
) -> None:
    answer = await client.post("/v1/channels", json={**body(), **change})

    assert check_error(answer, 400, "validation_failed")["error"].startswith(text)
    assert (await client.get("/v1/channels")).json()["data"] == []


async def test_an_operator_may_name_the_kinds_that_projects_bring(
    make_service: ServiceFactory,
    make_tenant: Callable[..., Awaitable[Tenant]],
    platform: Platform,
    settings: dict[str, Any],
    check_error: Any,
) -> None:
    settings["own_channels"] = {"kinds": ["fake"]}
    service = await make_service(extra_plugins=[("fake", platform)], **settings)
    client = (await make_tenant(service)).client

    refused = await client.post("/v1/channels", json={"name": "own", "plugin": "recording"})
    taken = await client.post("/v1/channels", json=body())

    error = check_error(refused, 400, "validation_failed")["error"]
    assert error == "plugin: must be one of fake"
    assert taken.status_code == 201


async def test_what_the_operator_sets_for_all_own_channels_is_used_and_not_shown(
    make_service: ServiceFactory,
    make_tenant: Callable[..., Awaitable[Tenant]],
    platform: Platform,
    settings: dict[str, Any],
) -> None:
    operators = {"base_url": "https://proxy.example", "folder": "/srv/bots", "greeting": "hidden"}
    settings["own_channels"] = {"settings": {"fake": operators}}
    service = await make_service(extra_plugins=[("fake", platform)], **settings)
    client = (await make_tenant(service)).client

    made = (await client.post("/v1/channels", json=body())).json()

    [channel] = service.channels.own
    shared = service.channels["messenger_a"]
    assert isinstance(channel, FakeChannel)
    assert isinstance(shared, FakeChannel)
    assert channel.settings.base_url == "https://proxy.example"
    assert shared.settings.base_url == "https://fake.example"
    assert made["settings"] == {"receiving": "poll"}


async def test_an_operator_setting_is_refused_in_a_change_as_well(
    client: httpx2.AsyncClient, check_error: Any
) -> None:
    await client.post("/v1/channels", json=body())

    answer = await client.patch(
        "/v1/channels/own_bot", json={"settings": {"base_url": "http://10.0.0.1"}}
    )

    check_error(answer, 400, "validation_failed")


async def test_what_a_change_leaves_out_stays_and_null_is_the_default_again(
    client: httpx2.AsyncClient,
) -> None:
    await client.post("/v1/channels", json=body(greeting="hello", receiving="nothing"))

    changed = await client.patch(
        "/v1/channels/own_bot", json={"settings": {"receiving": "webhook"}}
    )
    emptied = await client.patch("/v1/channels/own_bot", json={"settings": {"greeting": None}})

    assert changed.json()["settings"] == {"receiving": "webhook", "greeting": "hello"}
    assert changed.json()["receiving"] == "webhook"
    assert changed.json()["secrets"] == ["token"]
    assert emptied.json()["settings"] == {"receiving": "webhook", "greeting": None}


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_two_changes_at_once_both_count(client: httpx2.AsyncClient) -> None:
    await client.post("/v1/channels", json=body(receiving="nothing"))

    await asyncio.gather(
        client.patch("/v1/channels/own_bot", json={"settings": {"greeting": "hello"}}),
        client.patch("/v1/channels/own_bot", json={"settings": {"receiving": "webhook"}}),
    )
    shown = await client.get("/v1/channels/own_bot")

    assert shown.json()["settings"] == {"receiving": "webhook", "greeting": "hello"}


async def test_a_name_is_given_once(client: httpx2.AsyncClient, check_error: Any) -> None:
    await client.post("/v1/channels", json=body())

    again = await client.post("/v1/channels", json=body())

    check_error(again, 409, "conflict")


async def test_a_project_has_a_bounded_number_of_channels(
    make_service: ServiceFactory,
    make_tenant: Callable[..., Awaitable[Tenant]],
    platform: Platform,
    settings: dict[str, Any],
    check_error: Any,
) -> None:
    settings["own_channels"] = {"per_project": 2}
    service = await make_service(extra_plugins=[("fake", platform)], **settings)
    one, other = await make_tenant(service), await make_tenant(service, "Other")

    answers = await asyncio.gather(
        *(one.client.post("/v1/channels", json=body(f"bot_{number}")) for number in range(4))
    )
    refused = [answer for answer in answers if answer.status_code != 201]
    await one.client.delete(
        f"/v1/channels/{(await one.client.get('/v1/channels')).json()['data'][0]['name']}"
    )
    after_removal = await one.client.post("/v1/channels", json=body("bot_9"))

    assert len(refused) == 2
    for answer in refused:
        check_error(answer, 409, "conflict")
    assert after_removal.status_code == 201
    assert (await other.client.post("/v1/channels", json=body())).status_code == 201


async def test_a_repeated_request_makes_one_channel(client: httpx2.AsyncClient) -> None:
    headers = {"Idempotency-Key": "one-channel"}

    first = await client.post("/v1/channels", json=body(), headers=headers)
    second = await client.post("/v1/channels", json=body(), headers=headers)

    assert second.json() == first.json()
    assert second.headers["Idempotent-Replayed"] == "true"


async def test_a_removed_channel_is_gone_with_its_settings(
    service: Service, client: httpx2.AsyncClient, check_error: Any, add_bot: AddBot
) -> None:
    made = await add_bot("own_bot")

    removed = await client.delete("/v1/channels/own_bot")

    assert removed.status_code == 204
    check_error(await client.get("/v1/channels/own_bot"), 404, "not_found")
    check_error(await client.delete("/v1/channels/own_bot"), 404, "not_found")
    assert service.channels.get(made["channel_id"]) is None
    async with service.db.read() as tx:
        assert not await tx.fetch_all("SELECT * FROM core_channels")
        assert not await tx.fetch_all(
            "SELECT * FROM core_bots WHERE channel = :key", {"key": made["channel_id"]}
        )


async def test_the_project_shows_its_own_channel_in_the_place_of_the_shared_one(
    client: httpx2.AsyncClient,
    service: Service,
    make_tenant: Callable[..., Awaitable[Tenant]],
    platform: Platform,
    add_bot: AddBot,
) -> None:
    other = await make_tenant(service, "Other")
    await add_bot("messenger_a")
    await add_bot("zebra", token="third")

    own = (await client.get("/v1/project")).json()["channels"]
    foreign = (await other.client.get("/v1/project")).json()["channels"]

    link = "https://fake.example/{}?start=hello"
    assert own == [
        {"name": "messenger_a", "own": True, "link": link.format(platform.bots["own"].username)},
        {"name": "zebra", "own": True, "link": link.format(platform.bots["third"].username)},
    ]
    assert [(channel["name"], channel["own"]) for channel in foreign] == [("messenger_a", False)]


async def test_a_check_asks_the_platform_now(
    client: httpx2.AsyncClient, platform: Platform, add_bot: AddBot
) -> None:
    await add_bot("own_bot")
    bot = platform.bots["own"]

    well = await client.post("/v1/channels/own_bot/check")
    bot.away = True
    unwell = await client.post("/v1/channels/own_bot/check")

    assert well.json() == {
        "ok": True,
        "detail": "",
        "bot": {"name": "Bot", "username": bot.username},
        "reception": {"status": "receiving", "since": None, "reason": None, "detail": None},
    }
    assert (unwell.status_code, unwell.json()["code"]) == (500, "platform_busy")
    assert "the platform is away" in unwell.json()["error"]
    assert unwell.json()["retryable"] is True
    assert int(unwell.headers["Retry-After"]) > 0


async def test_checks_that_wait_for_the_platform_keep_no_connection_from_others(
    service: Service, client: httpx2.AsyncClient, platform: Platform, add_bot: AddBot
) -> None:
    await add_bot("own_bot", receiving="nothing")
    bot = platform.bots["own"]
    bot.may_be_checked.clear()
    waiting = [
        asyncio.create_task(
            client.post("/v1/channels/own_bot/check", headers={"Idempotency-Key": f"check-{n:03}"})
        )
        for n in range(2 * service.db.usage.size)
    ]

    async def all_wait() -> bool:
        return bot.checks == len(waiting)

    await until(all_wait)
    changed = await client.patch("/v1/channels/own_bot", json={"settings": {"greeting": "hi"}})
    bot.may_be_checked.set()
    answers = await asyncio.gather(*waiting)

    assert changed.status_code == 200
    assert [answer.json()["ok"] for answer in answers] == [True] * len(waiting)


async def test_a_repeated_check_is_answered_as_the_first(
    client: httpx2.AsyncClient, platform: Platform, add_bot: AddBot
) -> None:
    await add_bot("own_bot")
    headers = {"Idempotency-Key": "check-once"}

    first = await client.post("/v1/channels/own_bot/check", headers=headers)
    platform.bots["own"].away = True
    second = await client.post("/v1/channels/own_bot/check", headers=headers)

    assert first.json()["ok"] is True
    assert second.json() == first.json()
    assert second.headers["Idempotent-Replayed"] == "true"
