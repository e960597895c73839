"""Filling in a form in the messenger, from the link to the event."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from msgsvc_core.channels import ChannelUser
from msgsvc_core.errors import BillingBlocked
from msgsvc_core.hookspecs import hookimpl
from msgsvc_core.service import Service
from msgsvc_core.testing import FakeClock, settled
from msgsvc_core.testing.fixtures import ServiceFactory, Tenant
from msgsvc_forms import plugin

from .talker import Talker

ORDER: dict[str, Any] = {
    "slug": "order",
    "title": {"en": "Order", "ru": "Заказ"},
    "thanks": {"en": "We cook for you.", "ru": "Мы готовим для вас."},
    "fields": [
        {
            "key": "name",
            "type": "text",
            "label": {"en": "Your name?", "ru": "Ваше имя?"},
            "required": True,
        },
        {
            "key": "size",
            "type": "choice",
            "label": "Size?",
            "options": ["S", "M", "L"],
            "required": True,
        },
        {"key": "count", "type": "number", "label": "How many?", "min": 1, "max": 9},
    ],
}


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    return await make_service(extra_plugins=[("forms", plugin)])


@pytest.fixture
def ann(service: Service) -> Talker:
    return Talker(service)


@pytest.fixture
async def order(tenant: Tenant) -> str:
    """The id of a form."""
    return await made(tenant, ORDER)


async def made(tenant: Tenant, form: dict[str, Any]) -> str:
    answer = await tenant.client.post("/v1/forms", json=form)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["form_id"])


async def events(tenant: Tenant, name: str = "form.submitted") -> list[dict[str, Any]]:
    """The data of a project's events of this name, oldest first."""
    feed = (await tenant.client.get("/v1/events?limit=100")).json()["data"]
    return [event["data"] for event in reversed(feed) if event["event"] == name]


def values(data: dict[str, Any]) -> dict[str, Any]:
    return {answer["key"]: answer["value"] for answer in data["answers"]}


async def test_a_form_is_filled_in_question_by_question(
    ann: Talker, tenant: Tenant, order: str
) -> None:
    first = await ann.open("order")
    second = await ann.say("Ann")
    third = await ann.press("M")
    summary = await ann.say("2")
    last = await ann.press("Send")

    assert (first, ann.shown[0].message.text) == ("Your name?", "Order")
    assert second == "Size?"
    assert third.startswith("How many? (optional)")
    assert "1. Your name?: Ann\n2. Size?: M\n3. How many?: 2" in summary
    assert last == "We cook for you."
    (event,) = await events(tenant)
    assert (event["form_id"], event["form_version"], event["source"]) == (order, 1, "messenger")
    assert values(event) == {"name": "Ann", "size": "M", "count": 2}
    assert event["first_name"] == "Ann"
    (created,) = await events(tenant, "subscription.created")
    assert created["source"] == "form"


async def test_a_question_is_in_the_persons_language(service: Service, order: str) -> None:
    ann = Talker(service, ChannelUser("7", "Анна", None, "ru-RU"))

    assert await ann.open("order") == "Ваше имя?"
    assert ann.shown[0].message.text == "Заказ"
    assert ann.labels == ["Отмена"]


async def test_an_answer_that_does_not_fit_is_asked_for_again_and_a_way_out_offered(
    ann: Talker, order: str
) -> None:
    await ann.open("order")
    await ann.say("Ann")
    once = await ann.say("XXL")
    await ann.say("XXL")
    thrice = await ann.say("XXL")
    out = ann.labels
    again = await ann.press("Try again")

    assert once.endswith("\n\nSize?")
    assert once != "Size?"
    assert "How shall we go on with “Size?”" in thrice
    assert out == ["Try again", "Later", "Cancel"]
    assert again == "Size?"


async def test_an_optional_question_can_be_skipped_after_failures(
    ann: Talker, tenant: Tenant, order: str
) -> None:
    await ann.open("order")
    await ann.say("Ann", "L", "none", "no", "100")
    out = ann.labels
    await ann.press("Skip")
    await ann.press("Send")

    assert out == ["Try again", "Skip", "Cancel"]
    assert [values(event) for event in await events(tenant)] == [{"name": "Ann", "size": "L"}]


async def test_what_is_left_for_later_takes_no_messages_until_it_goes_on(
    ann: Talker, tenant: Tenant, order: str
) -> None:
    await ann.open("order")
    await ann.say("Ann", "x", "x", "x")
    paused = await ann.press("Later")
    shown = len(ann.shown)
    await ann.say("Where is my parcel?")
    ignored = len(ann.shown) == shown
    on = await ann.press("Go on")
    await ann.say("M", "/skip", "/send")

    assert "waits for you" in paused
    assert ignored
    assert on == "Size?"
    assert [values(event) for event in await events(tenant)] == [{"name": "Ann", "size": "M"}]


async def test_back_skip_and_keep_work_as_buttons_and_as_commands(
    ann: Talker, tenant: Tenant, order: str
) -> None:
    await ann.open("order")
    await ann.say("Ann", "M")
    size = await ann.press("‹ Back")
    name = await ann.say("/back")
    await ann.say("Anna")
    await ann.say("/skip")
    summary = ann.text
    await ann.press("‹ Back")
    await ann.say("/keep", "3")
    await ann.say("/send")

    assert size == "Size?\n\nYour answer so far: M"
    assert name == "Your name?\n\nYour answer so far: Ann"
    assert "1. Your name?: Anna\n2. Size?: M" in summary
    assert values((await events(tenant))[0]) == {"name": "Anna", "size": "M", "count": 3}


async def test_cancel_asks_first_where_something_would_be_lost(
    ann: Talker, tenant: Tenant, order: str
) -> None:
    await ann.open("order")
    await ann.say("Ann")
    asked = await ann.press("Cancel")
    on = await ann.press("Go on")
    await ann.say("/cancel")
    ended = await ann.press("Yes, delete")
    await ann.say("M")

    assert "Stop filling in “Order”?" in asked
    assert on == "Size?"
    assert "cancelled" in ended
    assert ann.text == ended
    assert await events(tenant) == []


async def test_a_link_opened_again_asks_whether_to_go_on_or_begin_anew(
    ann: Talker, tenant: Tenant, order: str
) -> None:
    await ann.open("order")
    await ann.say("Ann")
    asked = await ann.open("order")
    on = await ann.press("Go on")
    await ann.open("order")
    anew = await ann.press("Begin anew")
    await ann.say("Bea", "S", "1", "/send")

    assert "You have begun to fill in “Order”" in asked
    assert on == "Size?"
    assert anew == "Your name?"
    assert [values(event)["name"] for event in await events(tenant)] == ["Bea"]


async def test_another_form_takes_the_place_of_one_under_way_only_if_wanted(
    ann: Talker, tenant: Tenant, order: str
) -> None:
    await made(tenant, {**ORDER, "slug": "other", "title": "Other"})
    await ann.open("order")
    await ann.say("Ann")
    asked = await ann.open("other")
    await ann.press("The other form")
    begun = [one.message.text for one in ann.shown[-2:]]

    assert "“Other” takes its place" in asked
    assert begun == ["Other", "Your name?"]


async def test_a_button_of_an_earlier_question_does_no_harm(
    ann: Talker, tenant: Tenant, order: str
) -> None:
    await ann.open("order")
    await ann.say("Ann")
    question = ann.shown[-1]
    await ann.press("M")
    await ann.press("L", question)
    old = ann.notice
    await ann.say("1", "/send")
    await ann.press("S", question)

    assert old == "This button was for an earlier question."
    assert ann.notice == "This form is not being filled in any more."
    assert values((await events(tenant))[0]) == {"name": "Ann", "size": "M", "count": 1}


async def test_two_presses_at_once_count_once(
    ann: Talker, tenant: Tenant, order: str, service: Service
) -> None:
    await ann.open("order")
    await ann.say("Ann")
    both = [ann.press_of("M"), ann.press_of("L")]
    await asyncio.gather(*(service.inbound.receive("messenger_a", press) for press in both))
    await settled(service)
    asked = [one.message.text for one in ann.shown if one.message.text.startswith("How many")]
    await ann.say("1")
    twice = [ann.press_of("Send"), ann.press_of("Send")]
    await asyncio.gather(*(service.inbound.receive("messenger_a", press) for press in twice))
    await settled(service)

    assert len(asked) == 1
    assert len(await events(tenant)) == 1


async def test_those_under_way_finish_the_version_that_they_began(
    ann: Talker, tenant: Tenant, order: str
) -> None:
    await ann.open("order")
    await ann.say("Ann")
    fields = [{"key": "colour", "type": "text", "label": "Colour?"}]
    changed = await tenant.client.put(f"/v1/forms/{order}", json={"fields": fields})
    await ann.say("M", "2", "/send")
    bob = Talker(ann.service, ChannelUser("1002", "Bob", None, "en"))
    new = await bob.open("order")

    assert changed.status_code == 200, changed.text
    assert values((await events(tenant))[0]) == {"name": "Ann", "size": "M", "count": 2}
    assert (await events(tenant))[0]["form_version"] == 1
    assert new.startswith("Colour?")


async def test_a_deleted_form_ends_kindly(ann: Talker, tenant: Tenant, order: str) -> None:
    await ann.open("order")
    await ann.say("Ann")
    await tenant.client.delete(f"/v1/forms/{order}")
    told = await ann.say("M")
    shown = len(ann.shown)
    await ann.say("M")

    assert told == "This form is no longer there. Thank you for your time."
    assert len(ann.shown) == shown


async def test_an_edited_answer_changes_it_until_the_form_is_sent(
    ann: Talker, tenant: Tenant, order: str
) -> None:
    await ann.open("order")
    await ann.say("Ann", "M", "many")
    mended = await ann.change(ann.refs[2], "4")
    summary = await ann.change(ann.refs[0], "Anna")
    refused = await ann.change(ann.refs[1], "XXL")
    await ann.say("/send")
    late = await ann.change(ann.refs[0], "Bea")

    assert "3. How many?: 4" in mended
    assert "Your answer to “Your name?” was changed." in summary
    assert refused != summary
    assert late == "The form is sent already. An answer can't be changed any more."
    assert values((await events(tenant))[0]) == {"name": "Anna", "size": "M", "count": 4}


async def test_something_else_in_the_middle_loses_nothing_and_the_question_comes_back(
    ann: Talker, order: str, clock: FakeClock
) -> None:
    await ann.open("order")
    await ann.say("Ann")
    await ann.say("/lang ru")
    other = ann.text
    clock.advance(16)
    await settled(ann.service)
    again = ann.text
    await ann.press("M")
    await ann.say("/settings")
    await ann.say("2")
    clock.advance(16)
    await settled(ann.service)

    assert "Size" not in other
    assert again == "Вернёмся к «Заказ»:\n\nSize?"
    assert "Send" not in ann.text
    assert ann.text.count("How many?: 2") == 1


async def test_an_unknown_command_is_no_answer(ann: Talker, order: str) -> None:
    await ann.open("order")
    told = await ann.say("/nothing")

    assert told == "I don't know this command. Your answers are kept.\n\nYour name?"


async def test_an_abandoned_conversation_ends_by_itself(
    ann: Talker, tenant: Tenant, order: str, clock: FakeClock
) -> None:
    await ann.open("order")
    await ann.say("Ann")
    clock.advance(71 * 3600)
    await settled(ann.service)
    early = await ann.press("M")
    question = ann.shown[-1]
    clock.advance(74 * 3600)
    await settled(ann.service)
    await ann.press("Skip", question)

    assert early.startswith("How many?")
    assert ann.notice == "This form is not being filled in any more."
    assert await ann.open("order") == "Your name?"


async def test_a_restart_in_the_middle_loses_nothing(
    make_service: ServiceFactory, ann: Talker, tenant: Tenant, order: str
) -> None:
    await ann.open("order")
    await ann.say("Ann")
    await ann.service.stop()
    ann.service = await make_service(
        extra_plugins=[("forms", plugin)], database_url=ann.service.settings.database_url
    )
    asked = await ann.say("M")
    await ann.say("1", "/send")
    async with ann.service.db.read() as tx:
        row = await tx.fetch_one("SELECT answers FROM forms_submissions")

    assert asked.startswith("How many?")
    assert row is not None
    assert '"Ann"' in row["answers"]


async def test_who_has_left_is_not_asked_and_can_come_back(ann: Talker, order: str) -> None:
    await ann.open("order")
    await ann.say("Ann")
    await ann.say("/stop")
    shown = len(ann.shown)
    await ann.say("M")
    ignored = len(ann.shown) == shown
    asked = await ann.open("order")

    assert ignored
    assert "Go on where you were?" in asked


async def test_an_unknown_form_is_the_cores_to_answer(ann: Talker, order: str) -> None:
    assert "not valid any more" in await ann.open("nothing")


class Broke:
    """A plugin that refuses every paid operation while `is_blocked`."""

    def __init__(self) -> None:
        self.is_blocked = True

    @hookimpl
    async def charge(self) -> None:
        if self.is_blocked:
            raise BillingBlocked("no credits")


async def test_a_form_that_can_not_be_sent_now_keeps_its_answers_for_later(
    make_service: ServiceFactory, make_tenant: Callable[..., Awaitable[Tenant]]
) -> None:
    broke = Broke()
    service = await make_service(extra_plugins=[("forms", plugin), ("broke", broke)])
    tenant = await make_tenant(service)
    await made(tenant, ORDER)
    ann = Talker(service)
    await ann.open("order")
    await ann.say("Ann", "M", "2")
    blocked = await ann.press("Send")
    broke.is_blocked = False
    sent = await ann.press("Send")

    assert blocked.startswith("The form can't be sent at the moment.")
    assert sent == "We cook for you."
    assert [values(event)["name"] for event in await events(tenant)] == ["Ann"]
