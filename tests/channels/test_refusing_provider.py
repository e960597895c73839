"""One dead address costs one message elsewhere; a provider that refuses everybody costs nothing but time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from msgsvc_broadcasts import plugin as broadcasts
from msgsvc_core.channels import ChannelUser
from msgsvc_core.service import Service
from msgsvc_devkit import until
from msgsvc_devkit.clock import MovableClock
from msgsvc_devkit.fixtures import ServiceFactory
from msgsvc_devkit.platforms.email import FakeMail
from msgsvc_devkit.platforms.sms import FakeSmsCentre
from msgsvc_email import plugin as email
from msgsvc_sms import plugin as sms

PLUGINS = [("email", email), ("sms", sms), ("broadcasts", broadcasts)]

#: Seconds that the provider refuses everybody, and that the route waits for email.
OUTAGE_S, WITHIN_S = 2 * 3600, 24 * 3600

#: Seconds by which the clock is moved in the outage at a time.
STEP_S = 300

UNLIMITED = (
    "number_hour",
    "number_day",
    "prefix_hour",
    "new_numbers_hour",
    "new_numbers_day",
    "project_hour",
    "project_day",
    "segments_day",
)


@dataclass
class Shop:
    """A project whose people have an email address and a telephone."""

    service: Service
    client: httpx2.AsyncClient
    project_id: str
    moved: MovableClock
    mail: FakeMail
    centre: FakeSmsCentre
    route_id: str = ""

    async def fill(self, people: int) -> None:
        for number in range(people):
            self.mail.person(f"p{number}")
            self.centre.person(f"p{number}", number_of(number))
        async with self.service.db.transaction() as tx:
            for number in range(people):
                for channel, address in (
                    ("email", f"p{number}@people.example"),
                    ("sms", number_of(number)),
                ):
                    await self.service.subscribers.ensure(
                        tx,
                        self.project_id,
                        channel,
                        ChannelUser(address, f"P{number}", address),
                        address,
                        source="api",
                        external_id=f"p{number}",
                    )

    async def write_to(self, number: int) -> dict[str, Any]:
        """One message by email, as it ended while the clock stands still."""
        body = {"text": "Hello", "external_id": f"p{number}", "channel": "email"}
        answer = await self.client.post("/v1/send", json=body)
        assert answer.status_code == 202, answer.text
        path = f"/v1/messages/{answer.json()['message_id']}"

        async def ended() -> dict[str, Any] | None:
            found: dict[str, Any] = (await self.client.get(path)).json()
            return None if found["status"] in {"queued", "sending"} else found

        found = await until(ended)
        assert found is not None
        return found

    async def write_to_all(self) -> str:
        body = {"text": "We have news.", "route_id": self.route_id, "audience": {"all": True}}
        answer = await self.client.post("/v1/broadcast", json=body)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["job_id"])

    async def finished(self, job_id: str) -> bool:
        found = await self.client.get(f"/v1/broadcast/{job_id}")
        return bool(found.json()["status"] == "completed")

    @property
    def emails(self) -> int:
        return sum(len(person.messages) for person in self.mail.people.values())

    @property
    def texts(self) -> int:
        return sum(len(person.messages) for person in self.centre.people.values())

    async def statuses(self) -> list[str]:
        """Of the people by email, in order."""
        async with self.service.db.read() as tx:
            rows = await tx.fetch_all(
                "SELECT status FROM core_subscribers WHERE channel = 'email' ORDER BY external_id"
            )
        return [row["status"] for row in rows]

    async def unsubscribed(self) -> int:
        async with self.service.db.read() as tx:
            return int(
                await tx.fetch_val("SELECT COUNT(*) FROM core_subscribers WHERE status <> 'active'")
            )


def number_of(person: int) -> str:
    return f"+4915{120000000 + person}"


@pytest.fixture
async def shop(make_service: ServiceFactory, make_tenant: Any) -> AsyncIterator[Shop]:
    async with AsyncExitStack() as stack:
        mail = await stack.enter_async_context(FakeMail())
        centre = await stack.enter_async_context(FakeSmsCentre())
        moved = MovableClock()
        service = await make_service(
            extra_plugins=PLUGINS,
            use_clock=moved,
            channels={
                "email": mail.settings,
                "sms": {**centre.settings, **dict.fromkeys(UNLIMITED, 0)},
            },
            jobs={"probe_first_s": 1, "probe_most_s": 60},
        )
        tenant = await make_tenant(service)
        found = Shop(service, tenant.client, tenant.project.project_id, moved, mail, centre)
        steps = [{"channel": "email", "within_seconds": WITHIN_S}, {"channel": "sms"}]
        made = await found.client.post("/v1/routes", json={"name": "News", "steps": steps})
        assert made.status_code == 201, made.text
        found.route_id = made.json()["route_id"]
        yield found
        await service.stop()


@pytest.mark.parametrize("people", [300, pytest.param(10_000, marks=pytest.mark.slow)])
async def test_one_dead_address_among_many_costs_one_text(shop: Shop, people: int) -> None:
    await shop.fill(people)
    shop.mail.people[f"p{people // 2}@people.example"].closed = True
    job_id = await shop.write_to_all()
    await until(lambda: shop.finished(job_id), timeout_s=60 + people / 10, interval_s=0.2)

    assert (shop.emails, shop.texts) == (people - 1, 1)
    assert await shop.unsubscribed() == 1


@pytest.mark.parametrize("has_sender", [True, False], ids=["sender", "noreply"])
async def test_single_messages_to_dead_addresses_fail_alone_and_hold_up_nobody(
    shop: Shop, has_sender: bool
) -> None:
    """In Postfix's words for a mailbox that is missing in a domain that it relays for."""
    people = 10
    words = "Recipient address rejected: User unknown in relay recipient table"
    shop.mail.has_sender = has_sender
    await shop.fill(people)
    dead = range(1, people, 2)
    ended = []
    for number in range(people):
        if number in dead:
            shop.mail.faults.refuse_next("RCPT", f"550 5.1.1 <p{number}@people.example>: {words}")
        ended.append(await shop.write_to(number))
    ready = (await shop.client.get("/readyz")).json()
    calls = shop.mail.commands.count("DATA")
    statuses = await shop.statuses()

    assert [(one["status"], one["reason"], one["attempts"]) for one in ended] == [
        ("failed", "chat_not_found", 1) if number in dead else ("sent", None, 1)
        for number in range(people)
    ]
    assert ready["status"] == "ok"
    assert calls == shop.emails == people - len(dead)
    assert [number for number in range(people) if statuses[number] == "blocked"] == list(dead)


@pytest.mark.parametrize(
    "reply",
    [
        "550 5.1.1 no such user",
        "550 5.7.1 your network is blocked",
        "550 Administrative prohibition",
        "451 4.3.0 try again later",
    ],
)
async def test_a_provider_that_refuses_everybody_for_two_hours_delays_messages(
    shop: Shop, reply: str
) -> None:
    people = 30
    await shop.fill(people)
    # The provider is known to take mails.
    assert (await shop.service.channels["email"].check()).ok
    shop.mail.refuses_everybody = reply
    job_id = await shop.write_to_all()
    for _ in range(OUTAGE_S // STEP_S):
        await asyncio.sleep(0.1)  # so that what is due is tried
        shop.moved.advance(STEP_S)
    during = (shop.emails, shop.texts, await shop.unsubscribed())
    shop.mail.refuses_everybody = None

    async def goes_on() -> bool:
        shop.moved.advance(60)
        return await shop.finished(job_id)

    await until(goes_on, interval_s=0.2)

    assert during == (0, 0, 0)
    assert (shop.emails, shop.texts) == (people, 0)
    assert await shop.unsubscribed() == 0
