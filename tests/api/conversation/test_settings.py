"""/settings: a person sees what they allow a project, and changes it."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from msgsvc_core.channels import Capabilities
from msgsvc_devkit.fixtures import Tenant
from tests.api.conversation.people import Talker, events_of, shown_of

Offer = Callable[..., Awaitable[None]]


@pytest.fixture
def offer(tenant: Tenant) -> Offer:
    """`await offer("sales", "Sales")`: a project asks for a permission."""

    async def offer(key: str, title: Any, description: Any = None, *, to: Tenant = tenant) -> None:
        body = {"key": key, "title": title, "description": description}
        answer = await to.client.post("/v1/permissions", json=body)
        assert answer.status_code == 201, answer.text

    return offer


@pytest.fixture
async def two(offer: Offer) -> None:
    await offer("a-sales", {"en": "Sales", "ru": "Распродажи"}, "What is cheaper")
    await offer("b-news", {"en": "News", "ru": "Новости"})


async def granted(tenant: Tenant) -> list[str]:
    return list((await shown_of(tenant))["permissions"])


@pytest.mark.usefixtures("two")
async def test_settings_show_each_permission_with_its_state(ann: Talker, tenant: Tenant) -> None:
    await ann.subscribe(tenant)

    said = await ann.write("/settings")

    assert said == ("Notifications from Shop\n\n☐ Sales: off – What is cheaper\n☐ News: off")
    assert ann.labels == ["☐ Sales: off", "☐ News: off"]


@pytest.mark.usefixtures("two")
async def test_settings_are_in_the_persons_language(boris: Talker, tenant: Tenant) -> None:
    await boris.subscribe(tenant)

    said = await boris.write("/settings")

    assert said.startswith("Уведомления от «Shop»\n\n☐ Распродажи: выкл. – What is cheaper")
    assert boris.labels == ["☐ Распродажи: выкл.", "☐ Новости: выкл."]


@pytest.mark.usefixtures("two")
async def test_a_press_turns_it_on_and_the_next_one_off_in_the_same_message(
    ann: Talker, tenant: Tenant
) -> None:
    await ann.subscribe(tenant)
    await ann.write("/settings")
    message_ref = ann.shown[-1].message_ref

    await ann.press("☐ Sales: off")
    on, after_on = ann.labels, await granted(tenant)
    await ann.press("☑ Sales: on")

    assert (on, after_on) == (["☑ Sales: on", "☐ News: off"], ["a-sales"])
    assert (ann.labels, await granted(tenant)) == (["☐ Sales: off", "☐ News: off"], [])
    assert ann.shown[-1].message_ref == message_ref


@pytest.mark.usefixtures("two")
async def test_each_change_emits_permission_changed_once(ann: Talker, tenant: Tenant) -> None:
    await ann.subscribe(tenant)
    await ann.write("/settings")
    first = ann.shown[-1]

    await ann.press("☐ Sales: off", first)
    await ann.press("☐ Sales: off", first)  # a second, quick press
    await ann.press("☑ Sales: on")

    changes = await events_of(tenant, "subscription.permission_changed")
    assert [(one["permission"], one["granted"]) for one in changes] == [
        ("a-sales", True),
        ("a-sales", False),
    ]


@pytest.mark.usefixtures("two")
@pytest.mark.usefixtures("two")
async def test_a_press_is_answered_with_the_new_state_for_messages_too_old_to_edit(
    ann: Talker, tenant: Tenant
) -> None:
    await ann.subscribe(tenant)
    await ann.write("/settings")

    await ann.press("☐ Sales: off")

    assert ann.notice == "☑ Sales: on"


@pytest.mark.usefixtures("two")
async def test_a_press_on_an_old_message_does_what_its_button_says(
    ann: Talker, tenant: Tenant
) -> None:
    await ann.subscribe(tenant)
    await ann.write("/settings")
    old = ann.shown[-1]
    await ann.press("☐ News: off", old)

    await ann.press("☐ News: off", old)

    assert await granted(tenant) == ["b-news"]
    assert ann.labels == ["☐ Sales: off", "☑ News: on"]


@pytest.mark.usefixtures("two")
async def test_a_permission_that_is_gone_changes_nothing_and_says_so(
    ann: Talker, tenant: Tenant
) -> None:
    await ann.subscribe(tenant)
    await ann.write("/settings")
    await tenant.client.delete("/v1/permissions/a-sales")

    await ann.press("☐ Sales: off")

    assert ann.notice == "Shop no longer asks for this."
    assert ann.labels == ["☐ News: off"]
    assert await events_of(tenant, "subscription.permission_changed") == []


@pytest.mark.usefixtures("two")
async def test_who_has_left_can_change_nothing(ann: Talker, tenant: Tenant) -> None:
    await ann.subscribe(tenant)
    await ann.write("/settings")
    settings = ann.shown[-1]
    await ann.write("/stop")

    said = await ann.press("☐ Sales: off", settings)

    edited = next(one for one in ann.shown if one.message_ref == settings.message_ref)
    assert edited.message.text == "You are not subscribed to notifications from Shop."
    assert said.startswith("You are unsubscribed")
    assert await granted(tenant) == []


@pytest.mark.usefixtures("two")
async def test_a_strangers_press_changes_nobodys_permissions(
    ann: Talker, boris: Talker, tenant: Tenant
) -> None:
    await ann.subscribe(tenant)
    await ann.write("/settings")
    [[sales], *_] = ann.shown[-1].message.buttons

    await boris.press_data(sales.data or "")

    assert await granted(tenant) == []


async def test_settings_of_a_project_that_asks_for_nothing_say_so(
    ann: Talker, tenant: Tenant
) -> None:
    await ann.subscribe(tenant)

    assert await ann.write("/settings") == (
        "Notifications from Shop\n\nThere are no settings to change. /stop unsubscribes you."
    )


async def test_a_stranger_has_no_settings(ann: Talker) -> None:
    assert (await ann.write("/settings")).startswith("You are not subscribed to anything here.")


@pytest.mark.usefixtures("two")
async def test_who_hears_from_several_chooses_first_and_can_go_back(
    ann: Talker, tenant: Tenant, news: Tenant
) -> None:
    await ann.subscribe(tenant)
    await ann.subscribe(news)

    asked = await ann.write("/settings")
    offered = ann.labels
    await ann.press("Shop")
    shop = ann.labels
    back = await ann.press("‹ Other senders")

    assert asked == back == "Whose notifications would you like to set up?"
    assert (offered, ann.labels) == (["Shop", "News"], ["Shop", "News"])
    assert shop == ["☐ Sales: off", "☐ News: off", "‹ Other senders"]


@pytest.mark.usefixtures("two")
async def test_a_change_concerns_the_one_project(
    ann: Talker, tenant: Tenant, news: Tenant, offer: Offer
) -> None:
    await offer("a-sales", "Sales", to=news)
    await ann.subscribe(tenant)
    await ann.subscribe(news)
    await ann.write("/settings")
    await ann.press("News")

    await ann.press("☐ Sales: off")

    assert [await granted(one) for one in (tenant, news)] == [[], ["a-sales"]]


async def test_twenty_permissions_are_shown_on_three_pages(
    ann: Talker, tenant: Tenant, offer: Offer
) -> None:
    for number in range(20):
        await offer(f"p{number:02}", f"P{number:02}")
    await ann.subscribe(tenant)
    await ann.write("/settings")

    await ann.press("2 ›")
    second = ann.labels
    await ann.press("☐ P08: off")
    still_second = ann.labels
    await ann.press("3 ›")

    assert second == [*(f"☐ P{n:02}: off" for n in range(8, 16)), "‹ 1", "3 ›"]
    assert still_second == ["☑ P08: on", *second[1:]]
    assert ann.labels == [*(f"☐ P{n:02}: off" for n in range(16, 20)), "‹ 2"]


async def test_titles_can_make_no_markup_and_no_further_lines(
    ann: Talker, tenant: Tenant, offer: Offer
) -> None:
    await offer("x", "**bold**\n☑ Fake: on", "<b>x</b>\u202e")
    await ann.subscribe(tenant)

    said = await ann.write("/settings")

    assert ann.shown[-1].message.format == "plain"
    assert said.splitlines()[2:] == ["☐ **bold** ☑ Fake: on: off – <b>x</b>"]


async def test_buttons_of_the_longest_key_fit_every_messenger(
    ann: Talker, tenant: Tenant, offer: Offer
) -> None:
    await offer("k" * 64, "T" * 64, "D" * 256)
    await ann.subscribe(tenant)
    await ann.write("/settings")

    [[button]] = ann.shown[-1].message.buttons
    assert len((button.data or "").encode()) <= 64


@pytest.mark.usefixtures("two", "without_buttons")
async def test_without_buttons_a_word_and_the_key_change_it(ann: Talker, tenant: Tenant) -> None:
    await ann.subscribe(tenant)

    shown = await ann.write("/settings")
    changed = await ann.write("/settings on b-news")
    again = await ann.write("/settings ON B-NEWS")

    assert shown == (
        "Notifications from Shop\n\n☐ Sales: off – What is cheaper (a-sales)\n"
        "☐ News: off (b-news)\n\nTo change one, write for example /settings on a-sales"
    )
    assert "☑ News: on (b-news)" in changed
    assert changed == again
    assert await granted(tenant) == ["b-news"]
    assert len(await events_of(tenant, "subscription.permission_changed")) == 1


@pytest.mark.usefixtures("two", "without_buttons")
async def test_without_buttons_a_number_says_which_project(
    ann: Talker, tenant: Tenant, news: Tenant
) -> None:
    await ann.subscribe(tenant)
    await ann.subscribe(news)

    asked = await ann.write("/settings")
    shown = await ann.write("/settings 1")
    await ann.write("/settings 1 on a-sales")

    assert asked.endswith("\n\n1. Shop\n2. News\n\nWrite /settings and the number.")
    assert shown.endswith("write for example /settings 1 on a-sales")
    assert await granted(tenant) == ["a-sales"]


async def test_descriptions_are_left_out_where_they_would_be_too_long(
    ann: Talker, tenant: Tenant, offer: Offer
) -> None:
    ann.channel.capabilities = Capabilities(buttons="words", max_text_length=1000)
    for number in range(4):
        await offer(f"p{number}", f"P{number}", "D" * 256)
    await ann.subscribe(tenant)

    said = await ann.write("/settings")

    assert said.splitlines()[2:6] == [f"☐ P{number}: off (p{number})" for number in range(4)]


@pytest.mark.usefixtures("two")
async def test_where_nothing_can_be_edited_each_press_brings_a_new_message(
    ann: Talker, tenant: Tenant
) -> None:
    ann.channel.capabilities = Capabilities(edit=False)
    await ann.subscribe(tenant)
    await ann.write("/settings")
    before = len(ann.shown)

    await ann.press("☐ Sales: off")

    assert len(ann.shown) == before + 1
    assert ann.labels == ["☑ Sales: on", "☐ News: off"]


@pytest.mark.usefixtures("two")
@pytest.mark.parametrize("argument", ["on", "on nothing", "x y z", "99", "off off off"])
async def test_words_that_mean_nothing_show_the_settings(
    ann: Talker, tenant: Tenant, argument: str
) -> None:
    await ann.subscribe(tenant)

    assert (await ann.write(f"/settings {argument}")).startswith("Notifications from Shop")
    assert await granted(tenant) == []
