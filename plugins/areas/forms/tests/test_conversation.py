"""Filling in a form in the messenger, from the link to the event."""

from dataclasses import replace

from msgsvc_core.channels import ChannelUser
from msgsvc_core.service import Service
from msgsvc_devkit.fixtures import Tenant

from .orders import ORDER, events, made, values
from .talker import Talker


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


async def test_a_form_is_begun_by_a_text_where_links_can_not_carry_it(
    ann: Talker, tenant: Tenant, order: str
) -> None:
    ann.channel.capabilities = replace(ann.channel.capabilities, start_links=False)
    form = (await tenant.client.get(f"/v1/forms/{order}")).json()
    typed = form["start_messages"]

    assert typed == {"messenger_a": "start form_order"}
    assert await ann.say(typed["messenger_a"]) == "Your name?"


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
    assert "What would you like to do with “Size?”" in thrice
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
    on = await ann.press("Continue")
    await ann.say("M", "/skip", "/send")

    assert "is not finished" in paused
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

    assert size == "Size?\n\nCurrent answer: M"
    assert name == "Your name?\n\nCurrent answer: Ann"
    assert "1. Your name?: Anna\n2. Size?: M" in summary
    assert values((await events(tenant))[0]) == {"name": "Anna", "size": "M", "count": 3}


async def test_cancel_asks_first_where_something_would_be_lost(
    ann: Talker, tenant: Tenant, order: str
) -> None:
    await ann.open("order")
    await ann.say("Ann")
    asked = await ann.press("Cancel")
    on = await ann.press("Continue")
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
    on = await ann.press("Continue")
    await ann.open("order")
    anew = await ann.press("Start over")
    await ann.say("Bea", "S", "1", "/send")

    assert "You started “Order” earlier. Continue where you left off?" in asked
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
    await ann.press("Start the other form")
    begun = [one.message.text for one in ann.shown[-2:]]

    assert "“Other” will replace it" in asked
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
    assert ann.notice == "This form is no longer in progress."
    assert values((await events(tenant))[0]) == {"name": "Ann", "size": "M", "count": 1}
