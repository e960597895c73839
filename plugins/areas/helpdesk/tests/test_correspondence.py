"""Tickets by email: which mail belongs to which ticket, and how answers follow the conversation."""

from collections.abc import AsyncIterator
from email.message import EmailMessage
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from msgsvc_core.channels import OutgoingMessage, ReplyTarget
from msgsvc_core.channels.shelf import Shelf, ShelvedItem
from msgsvc_core.kernel.clock import SystemClock
from msgsvc_core.service import Service
from msgsvc_devkit import until
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from msgsvc_devkit.platforms.email import FakeMail, Mail
from msgsvc_email import plugin as email_plugin

from .conftest import LIMITS, PLUGINS, MakeMember, act, change, listed, messages_of, said, whole

pytestmark = pytest.mark.both_databases


class Desk:
    """A project's tickets, and Ann, who writes emails."""

    def __init__(self, client: httpx2.AsyncClient, platform: FakeMail) -> None:
        self.client, self.platform, self.ann = client, platform, platform.person("Ann")

    async def hears(self, text: str, subject: str, *before: str) -> str:
        """Has Ann write, with references to the messages before; returns the id of her mail. It is what a
        ticket says last by then."""
        known = [await said(self.client, one) for one in await listed(self.client)]
        mail, ref = EmailMessage(), f"{uuid4().hex}@people.example"
        mail["From"], mail["To"] = "Ann <ann@people.example>", "news@shop.example"
        mail["Subject"], mail["Message-ID"] = subject, f"<{ref}>"
        if before:
            mail["References"] = " ".join(f"<{one}>" for one in before)
            mail["In-Reply-To"] = f"<{before[-1]}>"
        mail.set_content(text)
        self.platform.deliver(mail)

        async def heard() -> bool:
            return [await said(self.client, one) for one in await listed(self.client)] != known

        await until(heard)
        return ref

    async def tickets(self) -> dict[str, list[str]]:
        """What was said in each ticket, oldest first, by its subject."""
        found = await listed(self.client)
        return {one["subject"]: await said(self.client, one) for one in reversed(found)}

    async def answers(self, ticket: Any, text: str, **body: Any) -> Mail:
        """An agent answers; returns the mail that Ann gets."""
        await act(self.client, ticket, "reply", text=text, **body)
        mail = await self.gets(text)

        async def recorded() -> bool:
            messages = (await messages_of(self.client, ticket))["data"]
            return any(
                one["text"] == text and (one["delivery"] or {}).get("status") == "sent"
                for one in messages
            )

        await until(recorded)
        return mail

    async def gets(self, text: str) -> Mail:
        async def there() -> Mail | None:
            return next((one for one in self.ann.messages if text in one.text), None)

        found = await until(there)
        assert found is not None
        return found


@pytest.fixture
async def platform() -> AsyncIterator[FakeMail]:
    async with FakeMail() as platform:
        yield platform


@pytest.fixture
async def service(make_service: ServiceFactory, platform: FakeMail) -> Service:
    return await make_service(
        extra_plugins=[*PLUGINS, ("email", email_plugin)],
        use_clock=SystemClock(),
        channels={"mail": dict(platform.inbound_settings)},
        limits=LIMITS,
    )


@pytest.fixture
async def desk(
    service: Service, tenant: Tenant, client: httpx2.AsyncClient, platform: FakeMail
) -> Desk:
    desk = Desk(client, platform)
    answer = await client.post(
        "/v1/subscribers", json={"channel": "mail", "address": desk.ann.address}
    )
    assert answer.status_code == 201, answer.text
    return desk


async def test_an_agents_answer_is_in_the_thread_and_a_persons(
    desk: Desk, member: MakeMember
) -> None:
    first = await desk.hears("It is late", "Order 7")
    confirmed = await desk.gets("Its number is 1")
    second = await desk.hears("Still", "Re: Order 7", first, confirmed.message_id.strip("<>"))
    [ticket] = await listed(desk.client)
    mia = await member("Mia")
    answer = await desk.answers(ticket, "Which one?", member_id=mia)
    again = await desk.answers(ticket, "Are you there?", member_id=mia)

    assert confirmed.header("Subject") == answer.header("Subject") == "Re: Order 7"
    assert confirmed.header("In-Reply-To") == f"<{first}>"
    assert confirmed.header("Auto-Submitted") == "auto-replied"
    assert answer.header("In-Reply-To") == f"<{second}>"
    assert answer.header("References").split() == [f"<{first}>", f"<{second}>"]
    assert (answer.header("Auto-Submitted"), answer.header("X-Auto-Response-Suppress")) == ("", "")
    assert set(again.header("References").split()) == {
        f"<{first}>",
        answer.header("Message-ID"),
        f"<{second}>",
    }
    assert again.header("In-Reply-To") == f"<{second}>"


async def test_an_answer_by_the_api_that_names_no_member_is_automatic(desk: Desk) -> None:
    ref = await desk.hears("It is late", "Order 7")
    [ticket] = await listed(desk.client)
    answer = await desk.answers(ticket, "Which one?")

    assert answer.header("In-Reply-To") == f"<{ref}>"
    assert answer.header("Auto-Submitted") == "auto-replied"


async def test_a_rating_is_asked_for_in_the_thread(desk: Desk) -> None:
    ref = await desk.hears("It is late", "Order 7")
    [ticket] = await listed(desk.client)
    await change(desk.client, ticket, status="closed")
    question = await desk.gets("How would you rate")

    assert (question.header("Subject"), question.header("In-Reply-To")) == (
        "Re: Order 7",
        f"<{ref}>",
    )


async def test_a_new_subject_opens_a_ticket(desk: Desk) -> None:
    order = await desk.hears("It is late", "Order 7")
    await desk.hears("It is wrong", "Invoice")
    await desk.hears("Still late", "Re: Order 7", order)
    await desk.hears("Very late", "Order 7")
    await desk.hears("Still wrong", "AW: Invoice")

    assert await desk.tickets() == {
        "Order 7": ["It is late", "Still late", "Very late"],
        "Invoice": ["It is wrong", "Still wrong"],
    }


async def test_a_new_subject_within_a_thread_is_kept_with_the_text(desk: Desk) -> None:
    order = await desk.hears("It is late", "Order 7")
    await desk.hears("It is wrong", "Invoice")
    await desk.hears("For the other one", "Address changed", order)

    assert await desk.tickets() == {
        "Order 7": ["It is late", "Address changed\n\nFor the other one"],
        "Invoice": ["It is wrong"],
    }


async def test_a_reply_to_an_agents_answer_goes_to_its_ticket(desk: Desk) -> None:
    await desk.hears("It is late", "Order 7")
    [ticket] = await listed(desk.client)
    answer = await desk.answers(ticket, "Which one?")
    await desk.hears("It is wrong", "Invoice")
    await desk.hears("Number 7", "Re: Order 7", answer.message_id.strip("<>"))

    assert (await desk.tickets())["Order 7"] == ["It is late", "Which one?", "Number 7"]


async def test_a_new_subject_is_no_comment_on_a_rating(desk: Desk, service: Service) -> None:
    await desk.hears("It is late", "Order 7")
    [ticket] = await listed(desk.client)
    await change(desk.client, ticket, status="closed")
    await desk.gets("How would you rate")
    await desk.hears("It is wrong", "Invoice")

    assert list(await desk.tickets()) == ["Order 7", "Invoice"]


@pytest.mark.parametrize(
    "marks", [{"Auto-Submitted": "auto-replied"}, {"Subject": "Out of office: Re: Order 7"}]
)
async def test_an_out_of_office_reply_reopens_no_ticket(
    desk: Desk, service: Service, marks: dict[str, str]
) -> None:
    """It is set aside, where somebody can have it taken anyway."""
    await desk.hears("It is late", "Order 7")
    [ticket] = await listed(desk.client)
    answer = await desk.answers(ticket, "We have sent it again")
    await change(desk.client, ticket, status="closed")
    asked = await desk.gets("How would you rate")
    away = EmailMessage()
    away["From"], away["To"] = "Ann <ann@people.example>", "news@shop.example"
    away["Message-ID"], away["In-Reply-To"] = "<away@people.example>", answer.message_id
    for name, value in {"Subject": "Re: Order 7", **marks}.items():
        away[name] = value
    away.set_content("I am back on Monday.")
    desk.platform.deliver(away)

    async def set_aside() -> list[ShelvedItem]:
        async with service.db.read() as tx:
            return await service.get(Shelf).page(tx, "mail", None, 10)

    [item] = await until(set_aside)
    found = await whole(desk.client, ticket)

    assert (item.reason, item.kind) == ("automatic", "email")
    assert found["status"] == "closed"
    assert len(desk.ann.messages) == desk.ann.messages.index(asked) + 1


def test_what_a_message_answers_is_stored_with_it() -> None:
    message = (
        OutgoingMessage("Hello").replying_to(ReplyTarget("Order 7", ("a@b", "c@d"))).from_person()
    )
    stored = OutgoingMessage.from_payload(message.to_payload())

    assert (stored.in_reply_to, stored.by_person) == (message.in_reply_to, True)
    assert stored == OutgoingMessage("Hello")


async def test_a_mail_of_somebody_whose_mailbox_was_refused_opens_a_ticket(desk: Desk) -> None:
    """The refusal was wrong, or is over: the person writes, so they are there."""
    [person] = (await desk.client.get("/v1/subscribers")).json()["data"]
    path = f"/v1/subscribers/{person['subscriber_id']}"
    body = {"subscriber_id": person["subscriber_id"], "text": "News"}

    async def is_blocked() -> bool:
        return bool((await desk.client.get(path)).json()["status"] == "blocked")

    desk.ann.closed = True
    await desk.client.post("/v1/send", json=body)
    await until(is_blocked)
    desk.ann.closed = False
    await desk.hears("It is late", "Order 7")
    [ticket] = await listed(desk.client)
    known = (await desk.client.get(path)).json()
    await desk.client.post("/v1/send", json=body)

    assert ticket["subscriber_id"] == person["subscriber_id"]
    assert known["status"] == "active"
    assert await desk.gets("News")
