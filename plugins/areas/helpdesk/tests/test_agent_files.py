"""Files between customers and the agents who have their tickets."""

import httpx2
import pytest

from msgsvc_core.channels import ReceivedFile
from msgsvc_core.service import Service

from .chats import Agent, hire, tells_replies
from .conftest import Person, listed, said

PDF = b"%PDF-1.7\n" + bytes(range(256)) * 4
BILL = ReceivedFile("document", "ref-bill", "bill <b>.pdf")


@pytest.fixture
async def mia(service: Service, client: httpx2.AsyncClient) -> Agent:
    tells_replies(service.channels["messenger_a"])
    mia = await hire(service, client, "Mia")
    mia.channel.contents["ref-bill"] = PDF
    return mia


async def test_a_customers_file_comes_to_who_has_the_ticket(
    ann: Person, ann_id: str, mia: Agent
) -> None:
    await ann.write("Help")
    await mia.press("Assign to me")
    known = len(mia.messages)

    await ann.write("My bill", files=(BILL,))

    words, file = [one.message for one in mia.messages[known:]]
    assert words.text == "#1, Ann\n\nMy bill\n📎 bill <b>.pdf"
    assert file.media is not None
    assert (file.media.type, file.media.filename) == ("document", "bill <b>.pdf")


async def test_who_takes_a_ticket_gets_the_files_that_came_before(
    ann: Person, ann_id: str, mia: Agent
) -> None:
    await ann.write("My bill", files=(BILL,))
    before = [one.message.media for one in mia.messages]

    await mia.press("Assign to me")

    assert before == [None] * len(before)
    assert mia.messages[-1].message.media is not None


async def test_an_agents_file_goes_to_the_customer_with_its_words(
    client: httpx2.AsyncClient, ann: Person, ann_id: str, mia: Agent
) -> None:
    await ann.write("Help")

    await mia.answer(mia.newest("Help"), "Here it is", files=(BILL,))

    assert ann.shown == "Here it is"
    assert ann.messages[-1].message.media is not None
    assert await said(client, (await listed(client))[0]) == ["Help", "Here it is"]
    assert mia.shown == "Sent to Ann, #1."


@pytest.mark.both_databases
async def test_an_agents_file_needs_no_words(
    client: httpx2.AsyncClient, ann: Person, ann_id: str, mia: Agent
) -> None:
    await ann.write("Help")

    await mia.answer(mia.newest("Help"), "", files=(BILL,))

    assert ann.messages[-1].message.media is not None
    assert mia.shown == "Sent to Ann, #1."


async def test_an_agent_is_told_of_a_file_that_does_not_come(
    client: httpx2.AsyncClient, ann: Person, ann_id: str, mia: Agent
) -> None:
    del mia.channel.contents["ref-bill"]
    await ann.write("Help")

    await mia.answer(mia.newest("Help"), "Here it is", files=(BILL,))

    assert mia.shown.startswith("bill <b>.pdf was not sent to the customer:")
    assert await said(client, (await listed(client))[0]) == ["Help"]


async def test_a_file_that_answers_nothing_goes_to_nobody(
    client: httpx2.AsyncClient, mia: Agent
) -> None:
    await mia.write("", files=(BILL,))

    assert mia.shown.startswith("This was not sent to anyone.")
    assert await listed(client) == []


async def test_a_file_with_words_that_answers_nothing_is_not_half_sent(
    client: httpx2.AsyncClient, ann: Person, ann_id: str, mia: Agent
) -> None:
    await ann.write("Help")
    await mia.press("Assign to me")

    await mia.write("As this picture shows", files=(BILL,))

    assert mia.shown.startswith("This was not sent to anyone.")
    assert mia.labels(mia.messages[-1]) == []
