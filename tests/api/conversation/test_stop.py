"""/stop: a person unsubscribes in the messenger."""

import pytest

from msgsvc_devkit import FakeClock
from msgsvc_devkit.fixtures import Tenant
from tests.api.conversation.people import Talker, events_of, shown_of

FAREWELL = "You are unsubscribed from Shop. Write /start to subscribe again."
NOT_SUBSCRIBED = "You are not subscribed to anything here. Write /start to start again."
WHICH = "Whose notifications do you want to stop?"
TOO_OLD = "This question is no longer valid. Write /stop to be asked again."


async def status(tenant: Tenant) -> str:
    return str((await shown_of(tenant))["status"])


async def test_stop_unsubscribes_from_the_project_and_says_farewell(
    ann: Talker, tenant: Tenant
) -> None:
    await ann.subscribe(tenant)

    assert await ann.write("/stop") == FAREWELL
    assert await status(tenant) == "unsubscribed"


async def test_stop_emits_subscription_deleted_once_with_its_reason(
    ann: Talker, tenant: Tenant
) -> None:
    await ann.subscribe(tenant)

    await ann.write("/stop")
    again = await ann.write("/stop")

    [deleted] = await events_of(tenant, "subscription.deleted")
    assert (deleted["reason"], deleted["first_name"]) == ("stop", "Ann")
    assert again == NOT_SUBSCRIBED


async def test_stop_is_answered_in_russian(boris: Talker, tenant: Tenant) -> None:
    await boris.subscribe(tenant)

    assert await boris.write("/stop") == (
        "Вы отписаны от «Shop». Чтобы подписаться снова, напишите /start."
    )


@pytest.mark.shared_service
@pytest.mark.parametrize("text", ["/STOP", " /stop \n", "/stop@shop_bot", "/Stop@Shop_Bot please"])
async def test_stop_is_understood_however_it_is_written(
    ann: Talker, tenant: Tenant, text: str
) -> None:
    await ann.subscribe(tenant)

    assert await ann.write(text) == FAREWELL


async def test_who_has_subscribed_to_nothing_is_told_so(ann: Talker) -> None:
    assert await ann.write("/stop") == NOT_SUBSCRIBED


async def test_a_stop_to_one_bot_leaves_the_other_alone(ann: Talker, tenant: Tenant) -> None:
    await ann.subscribe(tenant)
    elsewhere = Talker(ann.service, ann.user, "messenger_b")
    await elsewhere.subscribe(tenant)

    await ann.write("/stop")

    found = (await tenant.client.get("/v1/subscribers?status=active")).json()["data"]
    assert [one["channel"] for one in found] == ["messenger_b"]


async def test_who_hears_from_several_is_asked_which(
    ann: Talker, tenant: Tenant, news: Tenant
) -> None:
    await ann.subscribe(tenant)
    await ann.subscribe(news)

    assert await ann.write("/stop") == WHICH
    assert ann.labels == ["Shop", "News", "All of them", "Cancel"]
    assert [await status(one) for one in (tenant, news)] == ["active", "active"]


async def test_the_one_that_is_pressed_is_left_and_the_question_says_so(
    ann: Talker, tenant: Tenant, news: Tenant
) -> None:
    await ann.subscribe(tenant)
    await ann.subscribe(news)
    await ann.write("/stop")
    question = ann.shown[-1]

    await ann.press("Shop")

    assert [await status(one) for one in (tenant, news)] == ["unsubscribed", "active"]
    assert ann.shown[-1].message_ref == question.message_ref
    assert (ann.text, ann.labels) == (FAREWELL, [])


async def test_all_of_them_leaves_every_project(ann: Talker, tenant: Tenant, news: Tenant) -> None:
    await ann.subscribe(tenant)
    await ann.subscribe(news)
    await ann.write("/stop")

    said = await ann.press("All of them")

    assert said == "You are unsubscribed from Shop, News. Write /start to subscribe again."
    for project in (tenant, news):
        assert await status(project) == "unsubscribed"
        assert len(await events_of(project, "subscription.deleted")) == 1


async def test_cancel_changes_nothing_and_says_so(
    ann: Talker, tenant: Tenant, news: Tenant
) -> None:
    await ann.subscribe(tenant)
    await ann.subscribe(news)
    await ann.write("/stop")

    said = await ann.press("Cancel")

    assert said == "Nothing has changed. You get notifications from Shop, News."
    assert [await status(one) for one in (tenant, news)] == ["active", "active"]


async def test_a_second_press_says_that_they_have_left(
    ann: Talker, tenant: Tenant, news: Tenant
) -> None:
    await ann.subscribe(tenant)
    await ann.subscribe(news)
    await ann.write("/stop")
    question = ann.shown[-1]
    await ann.press("Shop", question)

    assert await ann.press("Shop", question) == (
        "You are not subscribed to notifications from Shop."
    )
    assert len(await events_of(tenant, "subscription.deleted")) == 1


async def test_an_old_all_of_them_does_not_end_what_was_begun_later(
    ann: Talker, tenant: Tenant, news: Tenant, clock: FakeClock, service, make_tenant
) -> None:
    await ann.subscribe(tenant)
    await ann.subscribe(news)
    await ann.write("/stop")
    question = ann.shown[-1]
    await ann.subscribe(await make_tenant(service, "Third"))

    await ann.press("All of them", question)

    assert ann.notice == TOO_OLD
    assert [await status(one) for one in (tenant, news)] == ["active", "active"]


async def test_a_question_of_the_day_before_counts_no_more_and_says_so(
    ann: Talker, tenant: Tenant, news: Tenant, clock: FakeClock
) -> None:
    await ann.subscribe(tenant)
    await ann.subscribe(news)
    await ann.write("/stop")
    clock.advance(24 * 3600 + 1)

    said = await ann.press("Shop")

    assert (said, ann.notice, ann.labels) == (TOO_OLD, TOO_OLD, [])
    assert await status(tenant) == "active"


async def test_a_strangers_press_ends_nobodys_subscription(
    ann: Talker, boris: Talker, tenant: Tenant, news: Tenant
) -> None:
    """Whatever data a messenger's client sends, it counts for the person who sends it."""
    await ann.subscribe(tenant)
    await ann.subscribe(news)
    await ann.write("/stop")
    [[shop], *_] = ann.shown[-1].message.buttons

    await boris.press_data(shop.data or "", ann.shown[-1].message_ref)

    assert await status(tenant) == "active"


@pytest.mark.parametrize(
    "data", ["~my:", "~my:stop", "~my:stop:::", "~my:stop:x:zz", "~my:stops:x", "~my:what:1"]
)
async def test_a_press_that_nobody_offered_does_no_harm(
    ann: Talker, tenant: Tenant, data: str
) -> None:
    await ann.subscribe(tenant)

    await ann.press_data(data)

    assert await status(tenant) == "active"
    assert len(ann.channel.answered) == 1


async def test_ten_projects_are_asked_for_on_two_pages(ann: Talker, service, make_tenant) -> None:
    projects = [await make_tenant(service, f"P{number}") for number in range(10)]
    for project in projects:
        await ann.subscribe(project)
    await ann.write("/stop")
    first = ann.labels

    await ann.press("2 ›")
    second = ann.labels
    await ann.press("P9")

    assert first == [*(f"P{number}" for number in range(8)), "2 ›", "All of them", "Cancel"]
    assert second == ["P8", "P9", "‹ 1", "All of them", "Cancel"]
    assert await status(projects[9]) == "unsubscribed"


@pytest.mark.usefixtures("without_buttons")
async def test_without_buttons_a_number_says_which(
    ann: Talker, tenant: Tenant, news: Tenant
) -> None:
    await ann.subscribe(tenant)
    await ann.subscribe(news)

    asked = await ann.write("/stop")
    first = await ann.write("/stop 1")
    again = await ann.write("/stop 1")

    assert asked == f"{WHICH}\n\n1. Shop\n2. News\n\nWrite /stop and the number, or /stop all."
    assert first == FAREWELL
    assert again == "You are not subscribed to notifications from Shop."
    assert [await status(one) for one in (tenant, news)] == ["unsubscribed", "active"]


@pytest.mark.usefixtures("without_buttons")
async def test_without_buttons_all_leaves_every_project(
    ann: Talker, tenant: Tenant, news: Tenant
) -> None:
    await ann.subscribe(tenant)
    await ann.subscribe(news)

    await ann.write("/stop ALL")

    assert [await status(one) for one in (tenant, news)] == ["unsubscribed", "unsubscribed"]


async def test_buttons_fit_every_messenger(ann: Talker, tenant: Tenant, news: Tenant) -> None:
    await ann.subscribe(tenant)
    await ann.subscribe(news)
    await ann.write("/stop")

    data = [button.data or "" for row in ann.shown[-1].message.buttons for button in row]
    assert all(one.startswith("~my:") and len(one.encode()) <= 64 for one in data)
