"""What one process changes, the others take over, and what can't be read harms nobody."""

import asyncio
from typing import Any

import httpx2
import pytest

from msgsvc_core.channels.contract import ChannelIdentity
from msgsvc_core.channels.project_channels.models import CreateChannelBody
from msgsvc_core.channels.project_channels.service import ProjectChannels
from msgsvc_core.channels.project_channels.sync import ChannelSync
from msgsvc_core.jobs import NewJob
from msgsvc_core.service import Service
from msgsvc_devkit import settled, until
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from msgsvc_devkit.services import SECRET_KEY
from msgsvc_devkit.work import PATIENCE_S
from tests.channels.conftest import AddBot, knows_bot
from tests.channels.messenger import FakeChannel, Platform, payload_of, started
from tests.channels.test_own_bots import link_of, subscribers_of

NEW_KEY = "another-key-for-tests-only-another-key"

NEXT: dict[str, Any] = {"settings": {"greeting": "next"}}


def greeting(service: Service, key: str) -> str | None:
    """What a channel greets with; "gone" for one that is not there."""
    channel = service.channels.get(key)
    if not isinstance(channel, FakeChannel):
        return "gone"
    return channel.settings.greeting


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_another_process_takes_over_what_is_added_changed_and_removed(
    beside: Service, client: httpx2.AsyncClient, add_bot: AddBot
) -> None:
    made = await add_bot("own_bot", greeting="first")
    key, seen = made["channel_id"], []

    async def sees(what: str) -> None:
        async def seen_there() -> bool:
            return greeting(beside, key) == what

        await until(seen_there)
        seen.append(what)

    await sees("first")
    await client.patch("/v1/channels/own_bot", json=NEXT)
    await sees("next")
    await client.delete("/v1/channels/own_bot")
    await sees("gone")

    assert seen == ["first", "next", "gone"]


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_the_process_that_made_a_change_works_by_it_at_once(
    service: Service, client: httpx2.AsyncClient, add_bot: AddBot
) -> None:
    made = await add_bot("own_bot", greeting="first")

    await client.patch("/v1/channels/own_bot", json=NEXT)
    changed = greeting(service, made["channel_id"])
    await client.delete("/v1/channels/own_bot")

    assert (changed, greeting(service, made["channel_id"])) == ("next", "gone")


@pytest.mark.both_databases
async def test_a_key_that_a_process_does_not_know_is_looked_for_at_once(
    service: Service,
    make_service: ServiceFactory,
    platform: Platform,
    settings: dict[str, Any],
    add_bot: AddBot,
) -> None:
    never = {**settings, "own_channels": {"follow_s": 3600}}
    beside = await make_service(
        extra_plugins=[("fake", platform)], database_url=service.settings.database_url, **never
    )

    made = await add_bot("own_bot")

    assert beside.channels.get(made["channel_id"]) is None
    assert await beside.channels.find(made["channel_id"]) is not None
    assert await beside.channels.find("chn_0123456789012345678901") is None


async def test_a_change_that_is_undone_has_no_effect(service: Service, tenant: Tenant) -> None:
    body = CreateChannelBody(name="own_bot", plugin="fake", settings={"token": "own"})
    with pytest.raises(ZeroDivisionError):
        async with service.db.transaction() as tx:
            await service.get(ProjectChannels).create(tx, tenant.project.project_id, body)
            raise ZeroDivisionError
    await service.get(ChannelSync).refresh()

    assert service.channels.own == []


@pytest.mark.parametrize("change", ["changed", "removed"])
async def test_a_channel_is_closed_when_its_calls_in_flight_have_ended(
    service: Service,
    client: httpx2.AsyncClient,
    tenant: Tenant,
    platform: Platform,
    add_bot: AddBot,
    change: str,
) -> None:
    made = await add_bot("own_bot", receiving="nothing")
    key, bot = made["channel_id"], platform.bots["own"]
    await client.post("/v1/channels/own_bot/check")
    await service.inbound.receive(key, started(await link_of(tenant, "own_bot")))
    await settled(service)
    [ann] = await subscribers_of(tenant)
    bot.may_answer.clear()
    await client.post("/v1/send", json={"subscriber_id": ann["subscriber_id"], "text": "Long"})

    async def under_way() -> bool:
        return bot.calling > 0

    await until(under_way)
    if change == "changed":
        await client.patch("/v1/channels/own_bot", json=NEXT)
    else:
        await client.delete("/v1/channels/own_bot")
    closed_meanwhile = bot.closed
    bot.may_answer.set()
    await settled(service)

    async def closed() -> bool:
        return bot.closed == 1

    await until(closed)
    assert closed_meanwhile == 0
    assert bot.texts[-1] == "Long"


async def test_everything_is_closed_once_when_the_service_stops(
    make_service: ServiceFactory, platform: Platform, settings: dict[str, Any], make_tenant: Any
) -> None:
    service = await make_service(extra_plugins=[("fake", platform)], start=False, **settings)
    async with service:
        tenant = await make_tenant(service)
        for token in ("own", "other"):
            body = {"name": token, "plugin": "fake", "settings": {"token": token}}
            await tenant.client.post("/v1/channels", json=body)
        await tenant.client.patch("/v1/channels/own", json=NEXT)

    assert [platform.bots[token].closed for token in ("shared", "own", "other")] == [1, 2, 1]


async def test_a_service_stops_in_the_moment_of_a_change(
    make_service: ServiceFactory, platform: Platform, settings: dict[str, Any]
) -> None:
    """What keeps the bots is woken and ended in one turn of the loop."""
    service = await make_service(extra_plugins=[("fake", platform)], start=False, **settings)
    await service.start()

    async def keeps_the_bot() -> bool:
        async with service.db.read() as tx:
            return bool(await tx.fetch_val("SELECT 1 FROM core_lanes WHERE lane LIKE 'receive:%'"))

    await until(keeps_the_bot)
    identity = ChannelIdentity(
        "own_bot", "chn_0123456789012345678901", "prj_0123456789012345678901"
    )
    service.channels.register_broken(identity, "as a change of it would be")
    async with asyncio.timeout(PATIENCE_S):
        await service.stop()


@pytest.mark.parametrize("broken", ["its key is lost", "its plugin is not loaded"])
async def test_a_channel_that_can_not_be_read_harms_no_other_and_is_shown(
    service: Service,
    make_service: ServiceFactory,
    platform: Platform,
    settings: dict[str, Any],
    tenant: Tenant,
    add_bot: AddBot,
    broken: str,
) -> None:
    made = await add_bot("own_bot")
    changed = dict(settings)
    plugins = [("fake", platform)]
    if broken == "its key is lost":
        changed["secret_keys"] = (NEW_KEY,)
    else:
        changed["channels"] = {"messenger_a": {"plugin": "recording"}}
        plugins = []
    beside = await make_service(
        extra_plugins=plugins, database_url=service.settings.database_url, **changed
    )
    client = httpx2.AsyncClient(
        transport=httpx2.ASGITransport(app=beside.app),
        base_url="http://msgsvc.test",
        headers={"Authorization": f"Bearer {tenant.key}"},
    )

    async with client:
        shown = (await client.get("/v1/channels/own_bot")).json()
        checked = (await client.post("/v1/channels/own_bot/check")).json()
        project = (await client.get("/v1/project")).json()
        ready = await client.get("/readyz")

    why = "no secret key decrypts this" if "key" in broken else "no loaded plugin"
    assert shown["status"] == "broken"
    assert why in shown["detail"]
    assert shown["secrets"] == []
    assert checked["ok"] is False
    assert {each["name"]: each["link"] for each in project["channels"]}["own_bot"] is None
    assert ready.status_code == 200
    assert beside.channels.resolve(tenant.project.project_id, "messenger_a") is not None
    assert (await beside.channels.find(made["channel_id"])) is not None


async def test_settings_that_no_key_opens_can_be_set_anew(
    service: Service,
    make_service: ServiceFactory,
    platform: Platform,
    settings: dict[str, Any],
    tenant: Tenant,
    add_bot: AddBot,
) -> None:
    made = await add_bot("own_bot")
    async with service.db.transaction() as tx:
        await tx.execute("UPDATE core_channels SET settings = 'nobody can read this'")

    partly = await tenant.client.patch("/v1/channels/own_bot", json=NEXT)
    wholly = await tenant.client.patch("/v1/channels/own_bot", json={"settings": {"token": "new"}})
    await knows_bot(service, made["channel_id"])

    assert partly.status_code == 400
    assert wholly.json()["status"] == "working"


@pytest.mark.both_databases
async def test_settings_are_encrypted_by_the_new_key_after_a_while(
    service: Service,
    make_service: ServiceFactory,
    platform: Platform,
    settings: dict[str, Any],
    add_bot: AddBot,
) -> None:
    made = await add_bot("own_bot", greeting="kept")
    await service.stop()
    shared = {"database_url": service.settings.database_url, **settings}

    both = await make_service(
        extra_plugins=[("fake", platform)], **shared, secret_keys=(NEW_KEY, SECRET_KEY)
    )
    async with both.db.transaction() as tx:
        await both.jobs.enqueue(tx, NewJob("core.reseal"))
    await settled(both)
    alone = await make_service(extra_plugins=[("fake", platform)], **shared, secret_keys=(NEW_KEY,))

    assert greeting(both, made["channel_id"]) == "kept"
    assert greeting(alone, made["channel_id"]) == "kept"


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_many_changes_at_once_leave_all_processes_with_the_same(
    service: Service, beside: Service, client: httpx2.AsyncClient, tenant: Tenant
) -> None:
    async def churn(name: str) -> None:
        body = {"name": name, "plugin": "fake", "settings": {"token": name, "receiving": "nothing"}}
        for _ in range(5):
            await client.post("/v1/channels", json=body)
            await client.patch(f"/v1/channels/{name}", json=NEXT)
            await client.delete(f"/v1/channels/{name}")
        await client.post("/v1/channels", json=body)
        await client.patch(f"/v1/channels/{name}", json=NEXT)

    await asyncio.gather(*(churn(f"bot_{number}") for number in range(4)))
    listed = {each["channel_id"] for each in (await client.get("/v1/channels")).json()["data"]}

    async def same() -> bool:
        return all(
            {each.key for each in one.channels.own} == listed
            and {greeting(one, key) for key in listed} == {"next"}
            for one in (service, beside)
        )

    await until(same)
    assert len(listed) == 4
    assert [each.name for each in service.channels.list_for_project(tenant.project.project_id)] == [
        "messenger_a",
        *(f"bot_{number}" for number in range(4)),
    ]


async def test_a_worker_sends_by_a_bot_that_was_just_added(
    service: Service,
    make_service: ServiceFactory,
    platform: Platform,
    settings: dict[str, Any],
    make_tenant: Any,
) -> None:
    """What serves runs no jobs, and the worker does not follow: it looks when it meets the lane."""
    url = service.settings.database_url
    await service.stop()
    jobs = {**settings["jobs"], "runner": "none"}
    serving = await make_service(
        extra_plugins=[("fake", platform)], database_url=url, **{**settings, "jobs": jobs}
    )
    never = {**settings, "own_channels": {"follow_s": 3600}}
    worker = await make_service(
        extra_plugins=[("fake", platform)], database_url=url, start=False, **never
    )
    await worker.start("work")
    try:
        tenant = await make_tenant(serving)
        body = {"name": "own_bot", "plugin": "fake", "settings": {"token": "own"}}
        made = (await tenant.client.post("/v1/channels", json=body)).json()
        await knows_bot(serving, made["channel_id"])
        answer = await tenant.client.post("/v1/subscribers/links", json={})
        payload = payload_of(answer.json()["links"]["own_bot"])
        await serving.inbound.receive(made["channel_id"], started(payload))

        async def answered() -> bool:
            return bool(platform.bots["own"].texts)

        await until(answered)
    finally:
        await worker.stop()

    assert platform.bots["own"].texts == ["You are subscribed to notifications from Shop."]
