"""A thread of its own for each ticket, on messengers that have threads."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from msgsvc_core.channels import DeliveryError, Reason
from msgsvc_core.kernel.clock import SystemClock
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, RecordingChannel, settled, until
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from msgsvc_devkit.platforms.telegram import FakeTelegram
from msgsvc_devkit.platforms.telegram import Person as TelegramPerson
from msgsvc_telegram import plugin as telegram_plugin

from .conftest import DAY_S, LIMITS, PLUGINS, Person, act, change, listed, post, said, whole

pytestmark = pytest.mark.both_databases


@pytest.fixture
def bot(service: Service) -> RecordingChannel:
    """A messenger with threads."""
    channel = service.channels["messenger_a"]
    assert isinstance(channel, RecordingChannel)
    channel.capabilities = replace(channel.capabilities, threads=True)
    return channel


def shown(person: Person) -> list[tuple[str | None, str]]:
    """What the bot has said, with its thread, and without the questions for ratings."""
    found = [(one.message.thread, one.message.text) for one in person.messages]
    return [one for one in found if "subscribed" not in one[1]]


async def test_a_ticket_gets_a_thread_in_which_both_sides_write(
    client: httpx2.AsyncClient, service: Service, bot: RecordingChannel, ann: Person, ann_id: str
) -> None:
    await ann.write("My order is late\nIt is number 7")
    [ticket] = await listed(client)
    await act(client, ticket, "reply", text="Which one?")
    await ann.write("Number 7", thread="t1")
    await change(client, ticket, status="closed")
    await settled(service)

    assert bot.opened == [(ann.chat_id, "#1 My order is late")]
    assert await said(client, ticket) == [
        "My order is late\nIt is number 7",
        "Which one?",
        "Number 7",
    ]
    assert [thread for thread, _ in shown(ann)] == ["t1", "t1", "t1"]
    confirmed, answered, asked = [text for _, text in shown(ann)]
    assert "Its number is 1" in confirmed
    assert answered == "Which one?"
    assert "How would you rate" in asked


async def test_each_thread_is_a_ticket_of_its_own(
    client: httpx2.AsyncClient, bot: RecordingChannel, ann: Person, ann_id: str
) -> None:
    await ann.write("My parcel")
    await ann.write("My invoice", thread="one of Ann's own")
    await ann.write("It is late", thread="t1")
    await ann.write("It is wrong", thread="one of Ann's own")

    second, first = await listed(client)
    assert await said(client, first) == ["My parcel", "It is late"]
    assert await said(client, second) == ["My invoice", "It is wrong"]
    assert bot.opened == [(ann.chat_id, "#1 My parcel")]
    assert shown(ann)[-1][0] == "one of Ann's own"


async def test_a_thread_goes_on_as_a_new_ticket_when_its_own_is_long_closed(
    client: httpx2.AsyncClient,
    service: Service,
    bot: RecordingChannel,
    ann: Person,
    ann_id: str,
    clock: FakeClock,
) -> None:
    await ann.write("My parcel")
    [first] = await listed(client)
    await change(client, first, status="closed")
    clock.advance(8 * DAY_S)
    await ann.write("Another one", thread="t1")
    second = (await listed(client))[0]
    await act(client, second, "reply", text="Here")
    await settled(service)

    assert second["ticket_id"] != first["ticket_id"]
    assert len(bot.opened) == 1
    assert shown(ann)[-1] == ("t1", "Here")


async def test_a_merged_ticket_leads_its_thread_to_the_other(
    client: httpx2.AsyncClient, service: Service, bot: RecordingChannel, ann: Person, ann_id: str
) -> None:
    await ann.write("My parcel")
    await ann.write("The same parcel", thread="own")
    second, first = await listed(client)
    await act(client, second, "merge", into=first["ticket_id"])
    await ann.write("Hello?", thread="own")
    await act(client, first, "reply", text="Here")
    await settled(service)

    assert (await said(client, first))[-2:] == ["Hello?", "Here"]
    assert shown(ann)[-1] == ("t1", "Here")


async def test_what_is_written_in_a_thread_before_its_id_is_known_goes_to_its_ticket(
    client: httpx2.AsyncClient,
    service: Service,
    bot: RecordingChannel,
    ann: Person,
    ann_id: str,
    clock: FakeClock,
) -> None:
    """The platform shows it as soon as it is opened; here the answer is late."""
    bot.refusals.append(DeliveryError(Reason.PLATFORM_UNAVAILABLE, "lost", in_doubt=True))
    await ann.write("My parcel")
    await ann.write("It is late", thread="t1")
    clock.advance(2)
    await settled(service)
    await ann.write("Very late", thread="t1")
    await ann.write("My invoice", thread="own")

    second, first = await listed(client)
    assert await said(client, first) == ["My parcel", "It is late", "Very late"]
    assert await said(client, second) == ["My invoice"]
    assert [thread for thread, _ in shown(ann)] == ["t1", "own"]


@pytest.mark.parametrize("is_refused", [True, False])
async def test_a_thread_is_waited_for_no_longer_than_it_may_be_opened(
    client: httpx2.AsyncClient,
    service: Service,
    bot: RecordingChannel,
    ann: Person,
    ann_id: str,
    clock: FakeClock,
    is_refused: bool,
) -> None:
    reason = Reason.INVALID_MESSAGE if is_refused else Reason.PLATFORM_UNAVAILABLE
    bot.refusals.append(DeliveryError(reason, "no", in_doubt=not is_refused))
    await ann.write("My parcel")
    if not is_refused:
        clock.advance(3601)
    await ann.write("My invoice", thread="own")

    second, first = await listed(client)
    assert await said(client, first) == ["My parcel"]
    assert await said(client, second) == ["My invoice"]


async def rate(person: Person, score: str) -> None:
    """Presses a score below the newest question for a rating, in its thread."""
    asked = next(
        one for one in reversed(person.messages) if "How would you rate" in one.message.text
    )
    data = next(b.data for row in asked.message.buttons for b in row if b.text == score)
    assert data is not None
    await person.press(data, asked.message_ref, thread=asked.message.thread)


async def test_a_comment_on_a_rating_is_what_is_written_in_its_thread(
    client: httpx2.AsyncClient, service: Service, bot: RecordingChannel, ann: Person, ann_id: str
) -> None:
    await ann.write("My parcel")
    await ann.write("My invoice", thread="own")
    second, first = await listed(client)
    for ticket in (second, first):
        await change(client, ticket, status="closed")
        await settled(service)
        await rate(ann, "5")
    await ann.write("A new question", thread="another")
    await ann.write("Well done", thread="own")
    await ann.write("Quick", thread="t1")

    third, second, first = await listed(client)
    assert (first["csat_comment"], second["csat_comment"]) == ("Quick", "Well done")
    assert await said(client, third) == ["A new question"]


async def test_a_question_in_the_thread_of_another_ticket_is_no_comment(
    client: httpx2.AsyncClient, service: Service, bot: RecordingChannel, ann: Person, ann_id: str
) -> None:
    await ann.write("My parcel")
    await ann.write("My invoice", thread="own")
    second, first = await listed(client)
    await change(client, first, status="closed")
    await settled(service)
    await rate(ann, "5")
    await ann.write("It is wrong", thread="own")

    assert await said(client, second) == ["My invoice", "It is wrong"]
    assert (await whole(client, first))["csat_comment"] is None


@pytest.mark.parametrize(
    "failure",
    [
        DeliveryError(Reason.INVALID_MESSAGE, "no threads here"),
        DeliveryError(Reason.UNKNOWN, "for a reason that is new"),
    ],
)
async def test_without_its_thread_a_ticket_is_answered_in_the_chat(
    client: httpx2.AsyncClient,
    service: Service,
    bot: RecordingChannel,
    ann: Person,
    ann_id: str,
    failure: DeliveryError,
) -> None:
    bot.refusals.append(failure)
    await ann.write("My parcel")
    [ticket] = await listed(client)
    await act(client, ticket, "reply", text="Here")
    await settled(service)

    assert [thread for thread, _ in shown(ann)] == [None, None]
    assert "Its number is 1" in shown(ann)[0][1]


async def test_a_thread_that_was_opened_twice_leaves_one_of_the_ticket(
    client: httpx2.AsyncClient,
    service: Service,
    bot: RecordingChannel,
    ann: Person,
    ann_id: str,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As after a crash between the platform's answer and its record."""
    opens, lost = bot.open_thread, ["the answer"]

    async def open_thread(chat_id: str, title: str) -> str | None:
        thread = await opens(chat_id, title)
        if lost:
            raise DeliveryError(Reason.PLATFORM_UNAVAILABLE, lost.pop(), in_doubt=True)
        return thread

    monkeypatch.setattr(bot, "open_thread", open_thread)
    await ann.write("My parcel")
    clock.advance(2)
    await settled(service)
    await ann.write("It is late", thread="t2")

    assert bot.opened == [(ann.chat_id, "#1 My parcel")] * 2
    assert shown(ann)[0][0] == "t2"
    [ticket] = await listed(client)
    assert await said(client, ticket) == ["My parcel", "It is late"]


async def test_an_erased_person_leaves_no_thread(
    client: httpx2.AsyncClient, service: Service, bot: RecordingChannel, ann: Person, ann_id: str
) -> None:
    await ann.write("My parcel")
    answer = await client.delete(f"/v1/subscribers/{ann_id}?erase=true")
    assert answer.is_success, answer.text
    await settled(service)

    async with service.db.transaction() as tx:
        assert await tx.fetch_all("SELECT thread FROM helpdesk_threads", {}) == []


class Shop:
    """A project with a Telegram bot that has topics."""

    def __init__(self, telegram: FakeTelegram, client: httpx2.AsyncClient) -> None:
        self.telegram, self.client = telegram, client

    async def customer(self) -> TelegramPerson:
        ann = self.telegram.person("Ann", lang="en")
        links = (await post(self.client, "/v1/subscribers/links"))["links"]
        await ann.open(links["messenger_a"])
        await ann.wait_for("")
        return ann

    async def heard(self, number: int, *texts: str) -> dict[str, Any]:
        """The ticket of that number, once that was said in it."""

        async def arrived() -> dict[str, Any] | None:
            for ticket in await listed(self.client):
                if ticket["number"] == number and await said(self.client, ticket) == list(texts):
                    return ticket
            return None

        found = await until(arrived)
        assert found is not None
        return found


@pytest.fixture
async def shop(make_service: ServiceFactory, make_tenant: Any) -> AsyncIterator[Shop]:
    async with FakeTelegram() as telegram:
        telegram.bot.has_topics = True
        service = await make_service(
            extra_plugins=[*PLUGINS, ("telegram", telegram_plugin)],
            channels={
                "messenger_a": {
                    "plugin": "telegram",
                    "token": telegram.bot.token,
                    "base_url": telegram.url,
                    "receiving": "poll",
                    "per_bot_s": 1000,
                    "per_chat_s": 1000,
                }
            },
            limits=LIMITS,
            use_clock=SystemClock(),
        )
        tenant: Tenant = await make_tenant(service)

        async def ready() -> bool:
            links = await tenant.client.post("/v1/subscribers/links", json={})
            return links.is_success and "messenger_a" in links.json()["links"]

        await until(ready)
        yield Shop(telegram, tenant.client)
        assert telegram.complaints == []


async def test_on_telegram_a_ticket_has_its_topic(shop: Shop) -> None:
    ann = await shop.customer()
    await ann.write("My order is late")
    ticket = await shop.heard(1, "My order is late")
    confirmed = await ann.wait_for("Its number is 1")
    topic = ann.topic("#1 My order is late")
    await act(shop.client, ticket, "reply", text="Which one?")
    answered = await ann.wait_for("Which one?")
    await ann.write("Number 7", topic=topic)
    await shop.heard(1, "My order is late", "Which one?", "Number 7")
    await change(shop.client, ticket, status="closed")
    asked = await ann.wait_for("How would you rate")
    await ann.press("5", asked)
    await ann.wait_for("You rated 5 of 5")

    assert [one.topic for one in (confirmed, answered, asked)] == [topic] * 3
    assert list(ann.chat.topics) == [topic]


async def test_on_telegram_an_answer_reaches_who_has_deleted_the_topic(shop: Shop) -> None:
    ann = await shop.customer()
    await ann.write("My order is late")
    ticket = await shop.heard(1, "My order is late")
    await ann.wait_for("Its number is 1")
    ann.delete_topic(ann.topic("#1"))
    await act(shop.client, ticket, "reply", text="Which one?")

    assert (await ann.wait_for("Which one?")).topic is None


async def test_on_telegram_a_lost_answer_leaves_an_empty_topic_and_one_of_the_ticket(
    shop: Shop,
) -> None:
    ann = await shop.customer()
    shop.telegram.break_next("createForumTopic", "reset", done=True)
    await ann.write("My order is late")
    confirmed = await ann.wait_for("Its number is 1")
    empty, own = sorted(ann.chat.topics)
    await ann.write("It is number 7", topic=own)

    await shop.heard(1, "My order is late", "It is number 7")
    assert confirmed.topic == own
    assert [one for one in ann.chat.messages.values() if one.topic == empty] == []


async def test_on_telegram_a_bot_without_topics_answers_in_the_chat(shop: Shop) -> None:
    shop.telegram.bot.has_topics = False
    ann = await shop.customer()
    await ann.write("My order is late")
    await ann.wait_for("Its number is 1")

    assert ann.chat.topics == {}
