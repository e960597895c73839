"""What comes in between while a form is filled in in the messenger, and loses nothing."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from msgsvc_core.channels import ChannelUser
from msgsvc_core.kernel.errors import BillingBlocked
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, settled
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from msgsvc_forms import plugin

from .orders import ORDER, events, made, values
from .talker import Talker


@pytest.mark.database_file
@pytest.mark.both_databases
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
    changed = await tenant.client.patch(f"/v1/forms/{order}", json={"fields": fields})
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

    assert told == "This form no longer exists. Thank you for your time."
    assert len(ann.shown) == shown


@pytest.mark.both_databases
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
    assert late == "The form is already sent. Answers can no longer be changed."
    assert values((await events(tenant))[0]) == {"name": "Anna", "size": "M", "count": 4}


@pytest.mark.both_databases
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

    assert told == "Unknown command. Your answers are saved.\n\nYour name?"


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
    assert ann.notice == "This form is no longer in progress."
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
    assert "Continue where you left off?" in asked


async def test_a_form_that_nobody_goes_on_with_is_in_no_other_projects_way(
    ann: Talker, tenant: Tenant, order: str, make_tenant: Callable[..., Awaitable[Tenant]]
) -> None:
    other = await make_tenant(ann.service)
    await made(other, {**ORDER, "slug": "contact", "title": "Write to us"})
    await ann.open("order")
    await ann.say("Ann")
    [person] = (await tenant.client.get("/v1/subscribers")).json()["data"]
    left = await tenant.client.delete(f"/v1/subscribers/{person['subscriber_id']}")

    await ann.open("contact")
    await ann.say("Bob", "M", "2")
    await ann.press("Send")

    assert left.is_success
    assert [values(event)["name"] for event in await events(other)] == ["Bob"]
    assert await events(tenant) == []


async def test_another_form_is_offered_in_the_persons_language(
    service: Service, tenant: Tenant, order: str
) -> None:
    title = {"en": "Write to us", "ru": "Напишите нам"}
    await made(tenant, {**ORDER, "slug": "contact", "title": title})
    vera = Talker(service, ChannelUser("1002", "Вера", None, "ru"))
    await vera.open("order")
    await vera.say("Вера")

    offered = await vera.open("contact")

    assert "Напишите нам" in offered
    assert "Write to us" not in offered


async def test_an_unknown_form_is_the_cores_to_answer(ann: Talker, order: str) -> None:
    assert "no longer valid" in await ann.open("nothing")


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


async def test_what_is_written_in_another_thread_is_left_to_others(
    ann: Talker, tenant: Tenant, order: str
) -> None:
    await ann.open("order")
    shown = len(ann.shown)
    ann.thread = "of a ticket"
    await ann.say("Where is my parcel?", "/cancel")
    elsewhere = ann.shown[shown:]
    ann.thread = None
    await ann.say("Ann", "M", "2", "/send")

    assert not [one for one in elsewhere if "name" in one.message.text.lower()]
    assert values((await events(tenant))[0]) == {"name": "Ann", "size": "M", "count": 2}


async def test_a_form_that_is_begun_in_a_thread_is_filled_in_there(
    ann: Talker, tenant: Tenant, order: str
) -> None:
    ann.thread = "t1"
    await ann.open("order")
    ann.thread = None
    await ann.say("not my name")
    ann.thread = "t1"
    await ann.say("Ann", "M", "2", "/send")

    assert values((await events(tenant))[0])["name"] == "Ann"
    assert ann.shown[-1].message.thread == "t1"


@pytest.mark.both_databases
async def test_a_form_goes_on_in_the_thread_in_which_it_is_opened_again(
    ann: Talker, tenant: Tenant, order: str
) -> None:
    await ann.open("order")
    await ann.say("Ann")
    ann.thread = "t1"
    await ann.open("order")
    await ann.press(ann.labels[0])
    await ann.say("M", "2", "/send")

    assert values((await events(tenant))[0])["name"] == "Ann"
    assert ann.shown[-1].message.thread == "t1"


async def test_an_old_button_in_another_thread_moves_no_form(
    ann: Talker, tenant: Tenant, order: str
) -> None:
    await ann.open("order")
    first = ann.shown[-1]
    await ann.say("Ann")
    ann.thread = "t1"
    await ann.open("order")
    await ann.press(ann.labels[0])
    ann.thread = None
    await ann.press("Cancel", first)
    ann.thread = "t1"
    await ann.say("M", "2", "/send")

    assert values((await events(tenant))[0]) == {"name": "Ann", "size": "M", "count": 2}


async def test_a_form_whose_thread_is_gone_is_ended_from_the_chat_itself(
    ann: Talker, tenant: Tenant, order: str
) -> None:
    ann.thread = "t1"
    await ann.open("order")
    ann.thread = None
    ended = await ann.say("/cancel")
    again = await ann.open("order")

    assert "name" not in ended.lower()
    assert again == "Your name?"
