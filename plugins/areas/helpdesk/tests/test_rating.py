"""How customers rate: a score by a button, a comment or none, and one event for both."""

import asyncio

import httpx2
import pytest

from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, settled
from msgsvc_devkit.fixtures import ServiceFactory, Tenant

from .chats import Agent, hire
from .conftest import (
    LIMITS,
    PLUGINS,
    Person,
    act,
    change,
    listed,
    pass_time,
    post,
    said,
    told,
    whole,
)

QUESTION = "Shop closed your question #1."


@pytest.fixture
def customer(service: Service, ann: Person) -> Agent:
    """Ann, with a finger for buttons."""
    return Agent(service, ann.user)


@pytest.fixture
async def closed(client: httpx2.AsyncClient, customer: Agent, ann_id: str) -> str:
    """The id of her ticket, which was just closed."""
    await customer.write("Help")
    [ticket] = await listed(client)
    await change(client, ticket, status="closed")
    await settled(customer.service)
    return str(ticket["ticket_id"])


async def ratings(client: httpx2.AsyncClient) -> list[tuple[int, str | None]]:
    """Score and comment of each event."""
    found = await told(client, "score", "comment")
    return [event[1:] for event in found if event[0] == "ticket.csat_received"]


async def test_a_score_and_its_comment_come_in_one_event(
    client: httpx2.AsyncClient, customer: Agent, closed: str
) -> None:
    question = customer.newest(QUESTION)
    await customer.press("4")
    before = await ratings(client)
    asked = customer.looks(question)
    await customer.write("Quick, but gruff")

    ticket = await whole(client, closed)
    assert customer.labels(question) == []
    assert before == []
    assert asked.startswith("You rated 4 of 5, thank you. Would you like to say why?")
    assert await ratings(client) == [(4, "Quick, but gruff")]
    assert (ticket["csat_score"], ticket["csat_comment"]) == (4, "Quick, but gruff")
    assert ticket["status"] == "closed"
    assert await said(client, closed) == ["Help"]
    assert customer.shown == "Thank you, your comment is saved."


async def test_the_comment_can_be_skipped(
    client: httpx2.AsyncClient, customer: Agent, closed: str
) -> None:
    await customer.press("5")
    for _ in range(2):
        await customer.press("Skip")
    await customer.write("And another thing")

    assert await ratings(client) == [(5, None)]
    assert (await whole(client, closed))["status"] == "open"


async def test_without_a_comment_the_score_is_told_when_its_time_is_over(
    service: Service, client: httpx2.AsyncClient, customer: Agent, closed: str, clock: FakeClock
) -> None:
    question = customer.newest(QUESTION)
    await customer.press("2")
    await pass_time(service, clock, 15 * 60)
    await customer.write("Too late for a comment")

    assert await ratings(client) == [(2, None)]
    assert customer.looks(question) == "You rated 2 of 5, thank you."
    assert await said(client, closed) == ["Help", "Too late for a comment"]


async def test_a_ticket_is_rated_once_whatever_is_pressed(
    client: httpx2.AsyncClient, customer: Agent, closed: str
) -> None:
    question = customer.newest(QUESTION)
    data = [button.data or "" for row in question.message.buttons for button in row]

    notices = await asyncio.gather(
        *(customer.send_press(each, question.message_ref) for each in data)
    )
    await customer.press("Skip")

    assert notices.count("You have rated this already.") == 4
    [(score, comment)] = await ratings(client)
    assert score in {1, 2, 3, 4, 5}
    assert comment is None


async def test_a_message_instead_of_a_score_opens_the_ticket_and_the_old_buttons_wait(
    client: httpx2.AsyncClient, customer: Agent, closed: str
) -> None:
    await customer.write("It is not solved")
    notice = await customer.press("1")
    open_ = await whole(client, closed)
    await change(client, open_, status="closed")
    await settled(customer.service)
    await customer.press("3")
    await customer.press("Skip")

    assert open_["status"] == "open"
    assert notice == "This conversation is still open; you can rate it when it is closed."
    assert await ratings(client) == [(3, None)]


async def test_who_has_rated_is_not_asked_again(
    client: httpx2.AsyncClient, customer: Agent, closed: str
) -> None:
    await customer.press("5")
    await customer.press("Skip")
    await customer.write("One more question")
    await change(client, await whole(client, closed), status="closed")
    await settled(customer.service)

    assert len([text for text in customer.texts if text.startswith(QUESTION)]) == 1


async def test_a_file_or_a_command_is_no_comment(
    client: httpx2.AsyncClient, customer: Agent, closed: str
) -> None:
    await customer.press("5")
    await customer.write("/help")
    await customer.write("Great")

    assert await ratings(client) == [(5, "Great")]


@pytest.mark.both_databases
async def test_an_answer_to_another_message_is_no_comment(
    client: httpx2.AsyncClient, customer: Agent, closed: str
) -> None:
    earlier, question = customer.messages[-2], customer.newest(QUESTION)
    await customer.press("5")
    await customer.write("About that", reply_to=earlier.message_ref)
    reopened = (await whole(client, closed))["status"]
    await customer.write("Quick", reply_to=question.message_ref)

    assert reopened == "open"
    assert await ratings(client) == [(5, "Quick")]


async def test_nobody_rates_for_another(
    service: Service, client: httpx2.AsyncClient, bob: Person, customer: Agent, closed: str
) -> None:
    await bob.subscribe(client)
    other = Agent(service, bob.user)

    notice = await other.send_press(f"~csat:rate:{closed}:1", "m1")

    assert notice == "Эта кнопка больше не работает."
    assert (await whole(client, closed))["csat_score"] is None


async def test_a_merged_and_a_virtual_ticket_are_not_asked_about(
    client: httpx2.AsyncClient, customer: Agent, ann_id: str
) -> None:
    first = await post(client, "/v1/tickets", subscriber_id=ann_id, text="Help")
    second = await post(client, "/v1/tickets", subscriber_id=ann_id, text="Help again")
    virtual = await post(client, "/v1/tickets", channel="virtual", text="Help")
    await act(client, first, "merge", into=second["ticket_id"])
    await change(client, virtual, status="closed")
    await settled(customer.service)

    assert [text for text in customer.texts if "closed your question" in text] == []


async def test_nobody_is_asked_where_the_setting_says_so(
    make_service: ServiceFactory, make_tenant: object, ann: Person
) -> None:
    service = await make_service(
        extra_plugins=PLUGINS, limits=LIMITS, helpdesk={"ask_rating": False}
    )
    tenant: Tenant = await make_tenant(service)  # type: ignore[operator] # a fixture, given as it is
    there = Agent(service, ann.user)
    await there.subscribe(tenant.client)
    await there.write("Help")

    await change(tenant.client, (await listed(tenant.client))[0], status="closed")
    await settled(service)

    assert [text for text in there.texts if "closed" in text] == []


async def test_an_erased_customers_comment_is_gone(
    client: httpx2.AsyncClient, customer: Agent, ann_id: str, closed: str
) -> None:
    await customer.press("4")
    await customer.write("My address is 1 Main Street")
    await client.delete(f"/v1/subscribers/{ann_id}", params={"erase": "true"})
    await settled(customer.service)

    [event] = await ratings(client)
    assert event[0] == 4
    assert not event[1]
    assert "Main Street" not in str(await whole(client, closed))


async def test_the_agent_is_told_of_the_rating(
    client: httpx2.AsyncClient, customer: Agent, ann_id: str
) -> None:
    mia = await hire(customer.service, client, "Mia")
    await customer.write("Help")
    await mia.press("Assign to me")
    await mia.press("Close")
    await customer.press("5")
    await customer.write("Lovely <b>")

    assert mia.shown == "#1, Ann: Help\n\nRated 5 of 5.\n\nLovely <b>"


async def test_what_is_asked_after_a_rating_is_answered_in_the_ticket(
    client: httpx2.AsyncClient, customer: Agent, closed: str, clock: FakeClock
) -> None:
    await customer.press("2")
    await change(client, {"ticket_id": closed}, status="open")
    await act(client, {"ticket_id": closed}, "reply", text="What went wrong?")
    await settled(customer.service)
    await customer.write("It is still broken")
    await pass_time(customer.service, clock, 15 * 60)

    assert await ratings(client) == [(2, None)]
    assert await said(client, closed) == ["Help", "What went wrong?", "It is still broken"]


@pytest.mark.both_databases
async def test_who_is_on_the_blocklist_is_not_asked(
    client: httpx2.AsyncClient, customer: Agent, ann_id: str
) -> None:
    await customer.write("Spam")
    [ticket] = await listed(client)
    await client.put(f"/v1/tickets/blocklist/{ann_id}", json={})
    shown = len(customer.messages)

    await change(client, ticket, status="closed")
    await settled(customer.service)

    assert len(customer.messages) == shown


async def test_a_long_comment_comes_to_the_agent_in_pieces(
    client: httpx2.AsyncClient, customer: Agent, ann_id: str
) -> None:
    mia = await hire(customer.service, client, "Mia")
    await customer.write("Help")
    await mia.press("Assign to me")
    await mia.press("Close")
    await customer.press("1")
    known = len(mia.messages)
    await customer.write("why " * 1000)

    first, second = mia.texts[known:]
    assert first.startswith("#1, Ann: Help\n\nRated 1 of 5.\n\nwhy why")
    assert max(len(first), len(second)) < 4096
    assert (first + second).count("why") == 1000
