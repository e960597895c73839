"""What a bot says in a project's name to who subscribes and to who leaves."""

from typing import Any

import pytest

from msgsvc_devkit.fixtures import Tenant
from tests.api.conversation.people import Talker, events_of

WELCOME = {"en": "Welcome to {{ project }}, {{ first_name }}!", "ru": "{{ first_name }}, привет!"}
FAREWELL = {"en": "Bye, {{ first_name }}", "ru": "Пока, {{ first_name }}"}


async def write_texts(tenant: Tenant, **texts: Any) -> None:
    answer = await tenant.client.patch("/v1/project", json=texts)
    assert answer.status_code == 200, answer.text


async def test_who_subscribes_by_a_link_is_welcomed_in_their_language(
    ann: Talker, boris: Talker, tenant: Tenant
) -> None:
    await write_texts(tenant, welcome=WELCOME)

    assert await ann.subscribe(tenant) == "Welcome to Shop, Ann!"
    assert await boris.subscribe(tenant) == "Борис, привет!"
    assert [len(one.shown) for one in (ann, boris)] == [1, 1]


async def test_who_opens_another_link_is_welcomed_once_and_answered(
    ann: Talker, tenant: Tenant
) -> None:
    await write_texts(tenant, welcome=WELCOME)
    await ann.subscribe(tenant)

    assert await ann.subscribe(tenant) == "You are subscribed to notifications from Shop."
    assert len(await events_of(tenant, "subscription.created")) == 1


async def test_who_comes_back_is_welcomed_again(ann: Talker, tenant: Tenant) -> None:
    await write_texts(tenant, welcome=WELCOME)
    await ann.subscribe(tenant)
    await ann.write("/stop")

    assert await ann.start() == "Welcome to Shop, Ann!"


async def test_who_leaves_reads_the_projects_farewell(
    ann: Talker, boris: Talker, tenant: Tenant
) -> None:
    await write_texts(tenant, farewell=FAREWELL)
    for one in (ann, boris):
        await one.subscribe(tenant)

    assert await ann.write("/stop") == "Bye, Ann"
    assert await boris.write("/stop") == "Пока, Борис"


async def test_the_farewell_takes_the_place_of_the_question(
    ann: Talker, tenant: Tenant, news: Tenant
) -> None:
    await write_texts(tenant, farewell="Bye")
    await ann.subscribe(tenant)
    await ann.subscribe(news)
    await ann.write("/stop")
    question = ann.shown[-1]

    assert await ann.press("Shop") == "Bye"
    assert ann.shown[-1].message_ref == question.message_ref


async def test_a_persons_name_is_a_text_and_never_markup(ann: Talker, tenant: Tenant) -> None:
    await write_texts(tenant, welcome="Hello {{ first_name }}")
    evil = Talker(ann.service, ann.user.__class__("1009", "**{{ project }}** <b>x</b>"))

    said = await evil.subscribe(tenant)

    assert said == "Hello **{{ project }}** <b>x</b>"
    assert evil.shown[-1].message.format == "plain"


@pytest.mark.parametrize("text", [None, ""])
async def test_without_a_text_of_the_project_the_bot_has_its_own(
    ann: Talker, tenant: Tenant, text: str | None
) -> None:
    await write_texts(tenant, welcome="x")
    if text is None:
        await write_texts(tenant, welcome=None)
    else:
        refused = await tenant.client.patch("/v1/project", json={"welcome": text})
        assert refused.status_code == 400
        await write_texts(tenant, welcome=None)

    assert await ann.subscribe(tenant) == "You are subscribed to notifications from Shop."


async def test_one_projects_texts_are_not_anothers(
    ann: Talker, tenant: Tenant, news: Tenant
) -> None:
    await write_texts(tenant, welcome="Shop's own", farewell="Shop's bye")

    assert await ann.subscribe(news) == "You are subscribed to notifications from News."
    assert (await ann.write("/stop")).startswith("You are unsubscribed from News.")
