"""Agents inside the messenger: who is told of what, and what their buttons and answers do."""

import asyncio

import httpx2
import pytest

from msgsvc_core.service import Service

from .chats import Agent, hire, tells_replies
from .conftest import Person, listed, said, told


@pytest.fixture
async def mia(service: Service, client: httpx2.AsyncClient) -> Agent:
    """Her messenger tells what a message answers."""
    tells_replies(service.channels["messenger_a"])
    return await hire(service, client, "Mia")


@pytest.fixture
async def max_(service: Service, client: httpx2.AsyncClient) -> Agent:
    return await hire(service, client, "Max", lang="ru")


async def test_a_ticket_lives_in_an_agents_chat_from_its_first_word_to_its_end(
    client: httpx2.AsyncClient, ann: Person, ann_id: str, mia: Agent
) -> None:
    await ann.write("Where is my parcel?")
    offer = mia.newest("Where is my parcel?")
    assert await mia.press("Assign to me") == "#1 is assigned to you."
    await mia.answer(mia.newest("Your ticket"), "On its way.")
    await ann.write("Thank you!")
    await mia.answer(mia.newest("Thank you!"), "You are welcome.")
    assert await mia.press("Close") == "#1 is closed."

    [ticket] = await listed(client)
    assert (ticket["status"], ticket["assignee_id"]) == ("closed", mia.member_id)
    assert await said(client, ticket) == [
        "Where is my parcel?",
        "On its way.",
        "Thank you!",
        "You are welcome.",
    ]
    assert await told(client, "status", "author", "text") == [
        ("ticket.created", "open", None, None),
        ("ticket.assigned", "open", None, None),
        ("ticket.replied", "open", "agent", "On its way."),
        ("ticket.status_changed", "pending", None, None),
        ("ticket.status_changed", "open", None, None),
        ("ticket.replied", "open", "customer", "Thank you!"),
        ("ticket.replied", "open", "agent", "You are welcome."),
        ("ticket.status_changed", "pending", None, None),
        ("ticket.status_changed", "closed", None, None),
        ("ticket.closed", "closed", None, None),
    ]
    assert offer.message.format == "plain"
    assert mia.labels(offer) == ["Reopen"]
    assert "On its way." in [one.message.text for one in ann.messages]
    assert "You are welcome." in [one.message.text for one in ann.messages]


async def test_the_first_of_two_who_take_a_ticket_has_it_and_the_other_is_told(
    client: httpx2.AsyncClient, ann: Person, ann_id: str, mia: Agent, max_: Agent
) -> None:
    await ann.write("Help")
    offers = {one.member_id: one.newest("Help") for one in (mia, max_)}

    notices = await asyncio.gather(mia.press("Assign to me"), max_.press("Назначить мне"))

    [ticket] = await listed(client)
    winner, loser = (mia, max_) if ticket["assignee_id"] == mia.member_id else (max_, mia)
    expected = {
        mia.member_id: ("#1 is assigned to you.", "#1 is already assigned to Max."),
        max_.member_id: ("№1 назначено вам.", "№1: уже назначено, отвечает Mia."),
    }
    assert ticket["assignee_id"] in {mia.member_id, max_.member_id}
    assert set(notices) == {expected[winner.member_id][0], expected[loser.member_id][1]}
    assert await told(client) == ["ticket.created", "ticket.assigned"]
    assert loser.labels(offers[loser.member_id]) == []
    assert winner.user.first_name in loser.looks(offers[loser.member_id])
    assert [text for text in loser.texts if "Ваше обращение" in text or "Your ticket" in text] == []


async def test_presses_that_come_twice_do_things_once(
    client: httpx2.AsyncClient, ann: Person, ann_id: str, mia: Agent
) -> None:
    await ann.write("Help")

    for _ in range(2):
        assert await mia.press("Assign to me") in {"#1 is assigned to you.", "Assigned to you."}
    cards = [text for text in mia.texts if text.startswith("Your ticket")]
    for _ in range(2):
        assert await mia.press("Close") == "#1 is closed."

    assert len(cards) == 1
    assert await told(client) == [
        "ticket.created",
        "ticket.assigned",
        "ticket.status_changed",
        "ticket.closed",
    ]


async def test_only_who_has_a_ticket_gets_what_its_customer_says(
    ann: Person, ann_id: str, mia: Agent, max_: Agent
) -> None:
    await ann.write("Help")
    await mia.press("Assign to me")
    known = len(max_.messages)

    await ann.write("Are you there?")

    assert mia.texts[-1] == "#1, Ann\n\nAre you there?"
    assert len(max_.messages) == known


async def test_who_takes_a_ticket_sees_what_was_said_before(
    ann: Person, ann_id: str, mia: Agent, max_: Agent
) -> None:
    await ann.write("Help")
    await ann.write("It burns")
    await max_.press("Назначить мне")

    assert max_.texts[-1] == (
        "Ваше обращение №1, Ann: Help\n\nHelp\n\nIt burns\n\n"
        "Чтобы ответить, ответьте на это сообщение."
    )


async def test_to_answer_what_nobody_has_is_to_take_it(
    client: httpx2.AsyncClient, ann: Person, ann_id: str, mia: Agent
) -> None:
    await ann.write("Help")

    await mia.answer(mia.newest("Help"), "Here I am.")

    [ticket] = await listed(client)
    assert ticket["assignee_id"] == mia.member_id
    assert await said(client, ticket) == ["Help", "Here I am."]
    assert "Sent to Ann, #1." in mia.texts


async def test_an_answer_to_a_ticket_that_another_has_goes_to_nobody(
    client: httpx2.AsyncClient, ann: Person, ann_id: str, mia: Agent, max_: Agent
) -> None:
    await ann.write("Help")
    offer = max_.newest("Help")
    await mia.press("Assign to me")

    await max_.answer(offer, "Me too.")

    assert await said(client, (await listed(client))[0]) == ["Help"]
    assert max_.shown == "№1: уже назначено, отвечает Mia. Ваше сообщение не доставлено."


async def test_an_answer_to_a_closed_ticket_goes_to_nobody_and_it_can_be_opened(
    client: httpx2.AsyncClient, ann: Person, ann_id: str, mia: Agent
) -> None:
    await ann.write("Help")
    await mia.press("Assign to me")
    card = mia.newest("Your ticket")
    await mia.press("Close")

    await mia.answer(card, "One more thing")
    refused = mia.shown
    notice = await mia.press("Reopen")
    await mia.answer(card, "One more thing")

    assert refused == "#1 is closed. Your message was not delivered."
    assert notice == "#1 is open."
    assert await said(client, (await listed(client))[0]) == ["Help", "One more thing"]


@pytest.mark.both_databases
async def test_words_that_answer_nothing_go_nowhere_until_the_agent_says_where(
    client: httpx2.AsyncClient, ann: Person, ann_id: str, mia: Agent
) -> None:
    await ann.write("Help")
    await mia.press("Assign to me")

    await mia.write("Try again")
    asked = mia.messages[-1]
    before = await said(client, (await listed(client))[0])
    await mia.press("Send to #1")
    again = await mia.press("Send to #1")

    assert asked.message.text.startswith("This was not sent to anyone.")
    assert before == ["Help"]
    assert await said(client, (await listed(client))[0]) == ["Help", "Try again"]
    assert again == "This button no longer works."
    assert len(await listed(client)) == 1


@pytest.mark.parametrize(("label", "tickets"), [("Ask as a customer", 1), ("Discard", 0)])
async def test_an_agents_own_words_become_a_ticket_only_if_they_say_so(
    client: httpx2.AsyncClient, mia: Agent, label: str, tickets: int
) -> None:
    await mia.write("My own order is late")
    before = await listed(client)
    await mia.press(label)

    assert before == []
    assert len(await listed(client)) == tickets


async def test_without_replies_words_go_to_the_ticket_that_the_agent_has_open(
    service: Service, client: httpx2.AsyncClient, ann: Person, ann_id: str
) -> None:
    lee = await hire(service, client, "Lee", channel="messenger_b")
    await lee.write("Is somebody there?")
    nowhere = lee.shown
    await ann.write("Help")
    await lee.press("Assign to me")
    card = lee.newest("Your ticket")

    await lee.write("Here I am.")
    await lee.press("Close")
    await lee.write("Still here")

    assert nowhere.startswith("This was not sent to anyone.")
    assert "What you write here now goes to the customer." in card.message.text
    assert await said(client, (await listed(client))[0]) == ["Help", "Here I am."]
    assert lee.shown.startswith("This was not sent to anyone.")


@pytest.mark.both_databases
async def test_the_list_shows_an_agents_tickets_and_those_of_nobody(
    client: httpx2.AsyncClient, ann: Person, ann_id: str, bob: Person, mia: Agent, max_: Agent
) -> None:
    await ann.write("Help")
    await mia.press("Assign to me")
    await bob.subscribe(client)
    await bob.write("Помогите")

    await mia.write("/tickets")
    mine = mia.messages[-1]
    await max_.write("/tickets")
    his = max_.messages[-1]
    await mia.press("✓ #1 Ann", mine)

    assert mine.message.text.splitlines()[:2] == ["✓ #1, Ann: Help", "• #2, Bob: Помогите"]
    assert his.message.text.splitlines()[:1] == ["• №2, Bob: Помогите"]
    assert mia.shown.startswith("Your ticket #1, Ann: Help")


async def test_the_list_is_for_agents_alone(
    client: httpx2.AsyncClient, ann: Person, ann_id: str, mia: Agent
) -> None:
    await ann.write("/tickets")

    assert await said(client, (await listed(client))[0]) == ["/tickets"]


async def test_a_ticket_is_shown_by_its_number(
    client: httpx2.AsyncClient, ann: Person, ann_id: str, mia: Agent
) -> None:
    await ann.write("Help")

    await mia.write("/tickets 7")
    missing = mia.shown
    await mia.write("/tickets #1")

    assert missing == "There is no ticket 7."
    assert mia.shown.startswith("New ticket #1, Ann: Help")
