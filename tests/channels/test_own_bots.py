"""What a bot of a project's own does for it, and for nobody else."""

from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any

import httpx2
import pytest

from msgsvc_core.channels import ButtonPressed, ChannelUser, DeliveryError, Reason
from msgsvc_core.service import Service
from msgsvc_devkit import settled
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from tests.channels.conftest import AddBot, bot_of, knows_bot
from tests.channels.messenger import Platform, blocked, payload_of, started

HELLO = {"text": "Hello"}
UNKNOWN = "This link is no longer valid. Please ask the site for a new one."

Start = Callable[..., Awaitable[None]]


@pytest.fixture
def start(service: Service) -> Start:
    """`await start(bot, payload)` has a person press Start; returns when the bot has answered."""
    numbers = count(1)

    async def press(bot: str, payload: str, name: str = "Ann") -> None:
        update_id = f"start-{next(numbers)}"
        await service.inbound.receive(bot, started(payload, update_id=update_id, name=name))
        await settled(service)

    return press


async def link_of(tenant: Tenant, channel: str = "messenger_a") -> str:
    answer = await tenant.client.post("/v1/subscribers/links", json={})
    return payload_of(answer.json()["links"][channel])


async def subscribers_of(tenant: Tenant) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await tenant.client.get("/v1/subscribers")).json()["data"]
    return found


async def status_of(tenant: Tenant, message_id: str) -> tuple[str, str | None]:
    message = (await tenant.client.get(f"/v1/messages/{message_id}")).json()
    return message["status"], message["error"]


async def test_who_comes_by_the_own_bot_is_sent_to_by_it(
    service: Service, tenant: Tenant, platform: Platform, add_bot: AddBot, start: Start
) -> None:
    made = await add_bot("messenger_a")
    await start(made["channel_id"], await link_of(tenant))
    [ann] = await subscribers_of(tenant)

    await tenant.client.post("/v1/send", json={"subscriber_id": ann["subscriber_id"], **HELLO})
    await settled(service)

    assert ann["channel"] == "messenger_a"
    assert platform.bots["own"].texts[-1] == "Hello"
    assert platform.bots["shared"].sent == []


async def test_who_came_by_the_shared_bot_is_sent_to_by_it_until_they_start_the_own_one(
    service: Service, tenant: Tenant, platform: Platform, add_bot: AddBot, start: Start
) -> None:
    await start("messenger_a", await link_of(tenant))
    [ann] = await subscribers_of(tenant)
    made = await add_bot("messenger_a")
    send = {"subscriber_id": ann["subscriber_id"], **HELLO}

    await tenant.client.post("/v1/send", json=send)
    await settled(service)
    before = platform.bots["shared"].texts[-1], list(platform.bots["own"].sent)
    await start(made["channel_id"], await link_of(tenant))
    await tenant.client.post("/v1/send", json={**send, "text": "Again"})
    await settled(service)

    assert before == ("Hello", [])
    assert platform.bots["own"].texts[-1] == "Again"
    assert "Again" not in platform.bots["shared"].texts
    assert [one["subscriber_id"] for one in await subscribers_of(tenant)] == [ann["subscriber_id"]]


async def test_a_link_of_another_project_is_unknown_to_an_own_bot(
    service: Service,
    tenant: Tenant,
    make_tenant: Callable[..., Awaitable[Tenant]],
    platform: Platform,
    add_bot: AddBot,
    start: Start,
) -> None:
    other = await make_tenant(service, "Other")
    made = await add_bot("messenger_a")

    await start(made["channel_id"], await link_of(other))

    assert platform.bots["own"].texts == [UNKNOWN]
    assert await subscribers_of(other) == []


async def test_the_core_itself_keeps_an_own_bot_from_acting_for_another_project(
    service: Service,
    tenant: Tenant,
    make_tenant: Callable[..., Awaitable[Tenant]],
    platform: Platform,
    add_bot: AddBot,
    start: Start,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A rule that forgot to ask, too, has no effect."""
    other = await make_tenant(service, "Other")
    made = await add_bot("messenger_a")
    payload = await link_of(other)
    forgetful = "msgsvc_core.channels.inbound.InboundContext.serves"
    monkeypatch.setattr(forgetful, lambda _ctx, _project_id: True)

    await start(made["channel_id"], payload)

    assert platform.bots["own"].texts == [UNKNOWN]
    assert await subscribers_of(other) == []


@pytest.mark.parametrize("kind", ["session", "static link"])
async def test_a_sign_in_of_another_project_is_unknown_to_an_own_bot(
    make_service: ServiceFactory,
    make_tenant: Callable[..., Awaitable[Tenant]],
    platform: Platform,
    settings: dict[str, Any],
    kind: str,
) -> None:
    service = await make_service(
        extra_plugins=[("fake", platform)], **{**settings, "plugins": ("auth",)}
    )
    await knows_bot(service, "messenger_a")
    tenant, other = await make_tenant(service), await make_tenant(service, "Other")
    body = {"name": "messenger_a", "plugin": "fake", "settings": {"token": "own"}}
    made = (await tenant.client.post("/v1/channels", json=body)).json()
    await knows_bot(service, made["channel_id"])

    async def payload_for(someone: Tenant) -> str:
        if kind == "session":
            answer = await someone.client.post("/v1/auth/session", json={"state": "s"})
        else:
            link = {"slug": f"login-{someone.project.name.lower()}", "name": "Shop"}
            link["callback_url"] = "https://shop.example/back"
            answer = await someone.client.post("/v1/auth/links", json=link)
        return payload_of(answer.json()["links"]["messenger_a"])

    foreign, own = await payload_for(other), await payload_for(tenant)
    for number, payload in enumerate((foreign, own)):
        update = started(payload, update_id=f"u{number}")
        await service.inbound.receive(made["channel_id"], update)
    await settled(service)

    unknown, question = platform.bots["own"].texts
    assert unknown == UNKNOWN
    assert tenant.project.name in question


@pytest.mark.both_databases
async def test_who_blocks_an_own_bot_leaves_its_project_alone(
    service: Service,
    tenant: Tenant,
    make_tenant: Callable[..., Awaitable[Tenant]],
    add_bot: AddBot,
    start: Start,
) -> None:
    other, third = await make_tenant(service, "Other"), await make_tenant(service, "Third")
    made = await add_bot("messenger_a")
    await start(made["channel_id"], await link_of(tenant))
    for someone in (other, third):
        await start("messenger_a", await link_of(someone))

    async def statuses() -> list[str]:
        return [
            one["status"] for each in (tenant, other, third) for one in await subscribers_of(each)
        ]

    await service.inbound.receive(made["channel_id"], blocked(update_id="b1"))
    after_own = await statuses()
    await service.inbound.receive("messenger_a", blocked(update_id="b2"))

    assert after_own == ["blocked", "active", "active"]
    assert await statuses() == ["blocked", "blocked", "blocked"]


@pytest.mark.both_databases
async def test_who_blocks_the_shared_bot_is_still_reached_by_the_own_one(
    service: Service, tenant: Tenant, add_bot: AddBot, start: Start
) -> None:
    await start("messenger_a", await link_of(tenant))
    made = await add_bot("messenger_a")
    await start(made["channel_id"], await link_of(tenant))

    await service.inbound.receive("messenger_a", blocked())

    [ann] = await subscribers_of(tenant)
    assert ann["status"] == "active"
    assert await bot_of(service, ann["subscriber_id"]) == made["channel_id"]


@pytest.mark.both_databases
async def test_a_delivery_to_who_blocked_an_own_bot_ends_that_subscription_alone(
    service: Service,
    tenant: Tenant,
    make_tenant: Callable[..., Awaitable[Tenant]],
    platform: Platform,
    add_bot: AddBot,
    start: Start,
) -> None:
    other = await make_tenant(service, "Other")
    made = await add_bot("messenger_a")
    await start(made["channel_id"], await link_of(tenant))
    await start("messenger_a", await link_of(other))
    [ann] = await subscribers_of(tenant)
    platform.bots["own"].failures.append(DeliveryError(Reason.USER_BLOCKED_BOT, "blocked"))

    await tenant.client.post("/v1/send", json={"subscriber_id": ann["subscriber_id"], **HELLO})
    await settled(service)

    assert [one["status"] for one in await subscribers_of(tenant)] == ["blocked"]
    assert [one["status"] for one in await subscribers_of(other)] == ["active"]


async def test_what_waits_for_a_removed_bot_is_skipped_and_more_is_refused(
    service: Service,
    tenant: Tenant,
    platform: Platform,
    add_bot: AddBot,
    start: Start,
    check_error: Any,
) -> None:
    made = await add_bot("messenger_a")
    await start(made["channel_id"], await link_of(tenant))
    [ann] = await subscribers_of(tenant)
    send = {"subscriber_id": ann["subscriber_id"], **HELLO}
    platform.bots["own"].failures.append(DeliveryError(Reason.RATE_LIMITED, "wait", 0.2))
    waiting = (await tenant.client.post("/v1/send", json=send)).json()["message_id"]
    await settled(service)

    await tenant.client.delete("/v1/channels/messenger_a")
    refused = await tenant.client.post("/v1/send", json=send)
    service.clock.advance(1)  # type: ignore[attr-defined] # the test's clock
    await settled(service)

    assert await status_of(tenant, waiting) == ("skipped", "its channel is gone")
    check_error(refused, 409, "conflict")


async def test_who_came_by_a_removed_bot_is_reached_by_the_one_that_takes_its_place(
    service: Service, tenant: Tenant, platform: Platform, add_bot: AddBot, start: Start
) -> None:
    made = await add_bot("own_bot")
    await start(made["channel_id"], await link_of(tenant, "own_bot"))
    [ann] = await subscribers_of(tenant)
    await tenant.client.delete("/v1/channels/own_bot")

    again = await add_bot("own_bot", token="new")
    await tenant.client.post("/v1/send", json={"subscriber_id": ann["subscriber_id"], **HELLO})
    await settled(service)

    assert again["channel_id"] == made["channel_id"]
    assert platform.bots["new"].texts == ["Hello"]


@pytest.mark.parametrize("before", ["a removed own channel", "a shared channel"])
async def test_a_name_keeps_its_kind_for_people_are_known_by_it(
    tenant: Tenant, add_bot: AddBot, start: Start, before: str, check_error: Any
) -> None:
    """Person 7 of one messenger is somebody else than person 7 of another."""
    name = "messenger_a"
    if before == "a removed own channel":
        name = "own_bot"
        made = await add_bot(name)
        await start(made["channel_id"], await link_of(tenant, name))
        await tenant.client.delete(f"/v1/channels/{name}")

    answer = await tenant.client.post("/v1/channels", json={"name": name, "plugin": "recording"})

    assert "is or was of the kind 'fake'" in check_error(answer, 409, "conflict")["error"]


async def test_a_press_counts_for_the_message_of_the_bot_that_showed_it(
    service: Service, tenant: Tenant, add_bot: AddBot, start: Start
) -> None:
    """Ids of messages are unique within a chat with one bot, and chats with two may share theirs."""
    await start("messenger_a", await link_of(tenant))
    [ann] = await subscribers_of(tenant)
    send = {"subscriber_id": ann["subscriber_id"], "text": "Which?"}
    shared = {**send, "buttons": [[{"text": "Shared", "data": "same"}]]}
    await tenant.client.post("/v1/send", json=shared)
    made = await add_bot("messenger_a")
    await start(made["channel_id"], await link_of(tenant))
    own = {**send, "buttons": [[{"text": "Own", "data": "same"}]]}
    await tenant.client.post("/v1/send", json=own)
    await settled(service)

    press = ButtonPressed(
        update_id="p1",
        chat_id="chat-Ann",
        user=ChannelUser("Ann", "Ann"),
        data="same",
        message_ref="m2",
        button_ref="b1",
    )
    await service.inbound.receive(made["channel_id"], press)

    events = (await tenant.client.get("/v1/events")).json()["data"]
    assert [e["data"]["text"] for e in events if e["event"] == "button.clicked"] == ["Own"]


async def test_a_qr_code_leads_to_the_own_bot(
    client: httpx2.AsyncClient, add_bot: AddBot, service: Service
) -> None:
    made = await add_bot("messenger_a")
    answer = await client.post("/v1/subscribers/links", json={})

    [address] = answer.json()["qr"].values()
    picture = await client.get(address.removeprefix(service.settings.base_url))
    missing = await client.get("/qr/chn_0123456789012345678901/x.svg")

    assert f"/qr/{made['channel_id']}/" in address
    assert picture.headers["Content-Type"] == "image/svg+xml"
    assert missing.status_code == 404


@pytest.mark.both_databases
async def test_who_came_by_a_channel_that_is_gone_is_reached_by_another_and_found_by_its_name(
    service: Service,
    tenant: Tenant,
    platform: Platform,
    add_bot: AddBot,
    start: Start,
    check_error: Any,
) -> None:
    made = await add_bot("own_bot")
    answer = await tenant.client.post("/v1/subscribers/links", json={"external_id": "own-1"})
    links = {name: payload_of(link) for name, link in answer.json()["links"].items()}
    await start("messenger_a", links["messenger_a"])
    service.clock.advance(1)  # type: ignore[attr-defined] # the test's clock
    again = await tenant.client.post("/v1/subscribers/links", json={"external_id": "own-1"})
    await start(made["channel_id"], payload_of(again.json()["links"]["own_bot"]))
    await tenant.client.delete("/v1/channels/own_bot")

    sent = await tenant.client.post("/v1/send", json={"external_id": "own-1", **HELLO})
    theirs = await tenant.client.get("/v1/subscribers", params={"channel": "own_bot"})
    messages = await tenant.client.get("/v1/messages", params={"channel": "own_bot"})
    [lost] = theirs.json()["data"]
    refused = await tenant.client.post(
        "/v1/send", json={"subscriber_id": lost["subscriber_id"], **HELLO}
    )
    unknown = await tenant.client.get("/v1/subscribers", params={"channel": "own_bto"})

    assert sent.status_code == 202, sent.text
    message = (await tenant.client.get(f"/v1/messages/{sent.json()['message_id']}")).json()
    assert message["channel"] == "messenger_a"
    assert messages.json()["data"] == []
    check_error(refused, 409, "conflict")
    assert "the channel 'own_bot', by which this subscriber came, is gone" in refused.text
    check_error(unknown, 400, "validation_failed")
