"""/start without a link: who comes back, who is here, and who is new."""

from dataclasses import replace

import pytest

from msgsvc_core.channels import Blocked, ChannelUser, Unblocked
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock
from msgsvc_devkit.fixtures import Tenant
from tests.api.conversation.people import Talker, events_of, shown_of

SUBSCRIBED = "You are subscribed to notifications from Shop."
STRANGER = "Hello! To start, open a link from a site that uses this bot."
COMMANDS = (
    "/settings – choose what you get\n/lang – language / язык\n/stop – unsubscribe\n"
    "/help – list of commands"
)


async def test_who_had_left_is_subscribed_again_and_welcomed(ann: Talker, tenant: Tenant) -> None:
    await ann.subscribe(tenant)
    await ann.write("/stop")

    assert await ann.start() == SUBSCRIBED
    assert (await shown_of(tenant))["status"] == "active"
    sources = [event["source"] for event in await events_of(tenant, "subscription.created")]
    assert sources == ["deep_link", "deep_link"]


async def test_a_written_start_is_a_pressed_one(ann: Talker, tenant: Tenant) -> None:
    await ann.subscribe(tenant)
    await ann.write("/stop")

    assert await ann.write("/start") == SUBSCRIBED


async def test_who_is_new_where_links_carry_nothing_is_told_to_write(
    service: Service, ann: Talker
) -> None:
    channel = service.channels["messenger_a"]
    channel.capabilities = replace(channel.capabilities, start_links=False)

    assert await ann.start() == (
        "Hello! To start, write here what a site that uses this bot shows you."
    )


async def test_a_written_link_payload_is_an_opened_link(ann: Talker, tenant: Tenant) -> None:
    answer = (await tenant.client.post("/v1/subscribers/links", json={})).json()
    payload = answer["links"]["messenger_a"].partition("start=")[2]

    assert await ann.write(f"/start {payload}") == SUBSCRIBED
    assert (await shown_of(tenant))["status"] == "active"


async def test_words_after_a_written_start_are_no_link(ann: Talker) -> None:
    assert await ann.write("/start hello there") == STRANGER


async def test_who_is_subscribed_is_greeted_with_the_commands(ann: Talker, tenant: Tenant) -> None:
    await ann.subscribe(tenant)

    said = await ann.start()

    assert said == f"Hello! You are subscribed to notifications from Shop.\n\n{COMMANDS}"
    assert len(await events_of(tenant, "subscription.created")) == 1


async def test_a_stranger_is_greeted_and_told_what_to_do(ann: Talker, tenant: Tenant) -> None:
    assert await ann.start() == STRANGER
    assert (await tenant.client.get("/v1/subscribers")).json()["data"] == []


@pytest.mark.both_databases
async def test_who_blocked_the_bot_and_starts_it_again_is_subscribed(
    ann: Talker, tenant: Tenant
) -> None:
    await ann.subscribe(tenant)
    await ann.receive(Blocked(update_id="b1", **ann.who))

    assert await ann.start() == SUBSCRIBED
    assert (await shown_of(tenant))["status"] == "active"


async def test_who_lets_the_bot_write_again_is_unsubscribed_until_they_start(
    ann: Talker, tenant: Tenant
) -> None:
    await ann.subscribe(tenant)
    await ann.receive(Blocked(update_id="b1", **ann.who))
    said = len(ann.shown)

    await ann.receive(Unblocked(update_id="u1", **ann.who))

    assert (await shown_of(tenant))["status"] == "unsubscribed"
    assert len(await events_of(tenant, "subscription.deleted")) == 1
    assert len(await events_of(tenant, "subscription.created")) == 1
    assert len(ann.shown) == said


@pytest.mark.both_databases
async def test_an_unblock_that_comes_late_ends_no_subscription(ann: Talker, tenant: Tenant) -> None:
    await ann.subscribe(tenant)
    await ann.receive(Blocked(update_id="b1", **ann.who))
    await ann.start()

    await ann.receive(Unblocked(update_id="u1", **ann.who))

    assert (await shown_of(tenant))["status"] == "active"


async def test_who_left_one_of_two_is_offered_it_and_not_subscribed_unasked(
    ann: Talker, tenant: Tenant, news: Tenant
) -> None:
    await ann.subscribe(news)
    await ann.subscribe(tenant)
    await ann.write("/stop 2")

    said = await ann.start()
    offered = ann.labels
    before = (await shown_of(tenant))["status"]
    await ann.press("Subscribe again: Shop")

    assert said.startswith("Hello! You are subscribed to notifications from News.")
    assert (offered, before) == (["Subscribe again: Shop"], "unsubscribed")
    assert (await shown_of(tenant))["status"] == "active"
    assert ann.text == SUBSCRIBED


async def test_who_left_several_comes_back_to_the_one_they_were_with_last(
    ann: Talker, tenant: Tenant, news: Tenant
) -> None:
    await ann.subscribe(news)
    await ann.subscribe(tenant)
    await ann.write("/stop all")

    assert await ann.start() == SUBSCRIBED
    assert (await shown_of(news))["status"] == "unsubscribed"


async def test_who_left_several_is_asked_where_the_last_one_is_no_more(
    ann: Talker, tenant: Tenant, news: Tenant, service: Service, make_tenant
) -> None:
    third = await make_tenant(service, "Third")
    for project in (tenant, news, third):
        await ann.subscribe(project)
    await ann.write("/stop all")
    await service.projects.set_active(third.project.project_id, False)

    said = await ann.start()
    offered = ann.labels
    await ann.press("Subscribe again: News")

    assert said == "Hello! You are unsubscribed. Whose notifications would you like to get again?"
    assert offered == ["Subscribe again: Shop", "Subscribe again: News"]
    assert [(await shown_of(one))["status"] for one in (tenant, news)] == [
        "unsubscribed",
        "active",
    ]


async def test_nobody_is_subscribed_to_a_disabled_project(
    ann: Talker, tenant: Tenant, service: Service
) -> None:
    await ann.subscribe(tenant)
    await ann.write("/stop")
    await service.projects.set_active(tenant.project.project_id, False)

    assert await ann.start() == STRANGER
    await service.projects.set_active(tenant.project.project_id, True)
    assert (await shown_of(tenant))["status"] == "unsubscribed"


async def test_an_offer_of_the_day_before_counts_no_more(
    ann: Talker, tenant: Tenant, news: Tenant, clock: FakeClock
) -> None:
    await ann.subscribe(tenant)
    await ann.subscribe(news)
    await ann.write("/stop 1")
    await ann.start()
    clock.advance(24 * 3600 + 1)

    await ann.press("Subscribe again: Shop")

    assert ann.notice == "This question is no longer valid. Write /start to be asked again."
    assert (await shown_of(tenant))["status"] == "unsubscribed"


async def test_help_names_the_commands(ann: Talker) -> None:
    assert await ann.write("/help") == COMMANDS


async def test_help_is_russian_for_a_russian_messenger(service: Service) -> None:
    olga = Talker(service, ChannelUser("1003", "Ольга", None, "ru"))

    assert (await olga.write("/help")).splitlines() == [
        "/settings – выбрать, что вы получаете",
        "/lang – язык / language",
        "/stop – отписаться",
        "/help – список команд",
    ]
