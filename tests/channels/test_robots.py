"""Programs that answer whatever a bot says: the budget of automatic answers ends each loop."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

import httpx2
import pytest

from msgsvc_core.config.sections import MediaSettings
from msgsvc_core.service import Service
from msgsvc_devkit import settled, until
from msgsvc_devkit.clock import MovableClock
from msgsvc_devkit.fixtures import ServiceFactory
from msgsvc_devkit.platforms.email import DOMAIN, FakeMail, Mail
from msgsvc_devkit.platforms.matrix import FakeMatrix
from msgsvc_devkit.platforms.sms import FakeSmsCentre
from msgsvc_devkit.platforms.telegram import FakeTelegram
from msgsvc_email import plugin as email
from msgsvc_helpdesk import plugin as helpdesk
from msgsvc_helpdesk.settings import TICKETS_AT_ONCE
from msgsvc_matrix import plugin as matrix
from msgsvc_sms import plugin as sms
from msgsvc_telegram import plugin as telegram

pytestmark = pytest.mark.both_databases

PLUGINS = [
    ("email", email),
    ("matrix", matrix),
    ("sms", sms),
    ("telegram", telegram),
    ("helpdesk", helpdesk),
]

#: Loopback hosts may be fetched from in tests.
MEDIA = MediaSettings(allow_http=True, allow_cidrs=("127.0.0.0/8",))

#: How often in the simulated day a robot begins by itself, and the hours between. More often than the budget
#: of the day, and less often than that of the hour.
BEGINNINGS, HOURS = 6, 4

#: Answers of a robot to what it has just got; a loop that does not end would go on for ever.
MOST_ROUNDS = 20

#: What the service says of its automatic mails. Not every server on their way keeps it.
MARKS = ("Auto-Submitted", "X-Auto-Response-Suppress", "Precedence", "List-Unsubscribe")

Write = Callable[[str], Awaitable[object]]


@dataclass
class Robot:
    """Somebody on a channel who answers each message of the bot: `write` sends a text to it, and `read`
    counts what it has sent."""

    service: Service
    channel: str
    write: Write
    read: Callable[[], int]
    answered: int = 0

    async def begin(self, text: str = "Your message is important to us.") -> None:
        """Writes by itself, and then answers until nothing comes any more."""
        await self.say(text)
        for _ in range(MOST_ROUNDS):
            if self.answered == self.read():
                return
            while self.answered < self.read():
                self.answered += 1
                await self.say(f"I have received your message no. {self.answered}.")
        raise AssertionError(f"the loop on {self.channel} does not end")

    async def say(self, text: str) -> None:
        """Writes, and waits until everything that follows is done."""
        before = self._handled()
        await self.write(text)

        async def came() -> bool:
            return self._handled() > before

        await until(came)
        await settled(self.service)

    def _handled(self) -> float:
        labels = {"channel": self.channel, "outcome": "handled"}
        return metric(self.service, "msgsvc_channel_updates_total", **labels)


def metric(service: Service, name: str, **labels: str) -> float:
    return service.metrics.registry.get_sample_value(name, labels) or 0.0


def withheld(service: Service, channel: str, kind: str) -> float:
    return metric(service, "msgsvc_automatic_answers_withheld_total", channel=channel, kind=kind)


@dataclass
class World:
    """A service with a bot on three platforms, and a robot on each. `moved` is its clock."""

    service: Service
    client: httpx2.AsyncClient
    moved: MovableClock
    robots: dict[str, Robot]
    people: dict[str, Any]


@pytest.fixture
async def world(make_service: ServiceFactory, make_tenant: Any) -> AsyncIterator[World]:
    async with AsyncExitStack() as stack:
        platforms: dict[str, Any] = {
            "matrix": await stack.enter_async_context(FakeMatrix()),
            "sms": await stack.enter_async_context(FakeSmsCentre()),
            "telegram": await stack.enter_async_context(FakeTelegram()),
        }
        moved = MovableClock()
        service = await make_service(
            extra_plugins=PLUGINS, use_clock=moved, media=MEDIA, channels=_channels(platforms)
        )

        async def ready() -> bool:
            return all(service.channels[name].profile for name in platforms)

        await until(ready)
        people = {name: platform.person("Robot") for name, platform in platforms.items()}
        texter = people["sms"]

        async def text(words: str) -> None:
            platforms["sms"].write(texter, words)

        writes: dict[str, Write] = {"sms": text}
        robots = {
            name: Robot(
                service,
                name,
                writes.get(name) or person.write,
                lambda person=person: len(person.messages),
            )
            for name, person in people.items()
        }
        yield World(service, (await make_tenant(service)).client, moved, robots, people)
        await service.stop()


def _channels(platforms: dict[str, Any]) -> dict[str, dict[str, Any]]:
    centre, bots = platforms["sms"], platforms["telegram"]
    unlimited = ("number_hour", "number_day", "project_hour", "project_day", "segments_day")
    fast = {"per_bot_s": 1000, "per_chat_s": 1000}
    return {
        "matrix": {**platforms["matrix"].settings, **fast},
        # The channel's own limits would end the loops, too.
        "sms": {**centre.settings, **dict.fromkeys(unlimited, 0), "per_second": 1000},
        "telegram": {
            "plugin": "telegram",
            "token": bots.bot.token,
            "base_url": bots.url,
            "receiving": "poll",
            **fast,
        },
    }


async def test_a_robot_that_nobody_knows_gets_the_budget_of_strangers(world: World) -> None:
    await world.people["matrix"].start()
    await _greeted(world)
    world.robots["matrix"].answered = world.robots["matrix"].read()
    budget = world.service.settings.limits.automatic_answers_per_day
    known = {name: robot.read() for name, robot in world.robots.items()}
    for _ in range(BEGINNINGS):
        await asyncio.gather(*(robot.begin() for robot in world.robots.values()))
        world.moved.advance(HOURS * 3600)

    for name, robot in world.robots.items():
        assert robot.read() - known[name] == budget, name
        # Its answers, and what it said by itself after the budget of the day was used up.
        assert withheld(world.service, name, "stranger") == BEGINNINGS, name


async def test_a_robot_among_the_customers_gets_the_budget_of_tickets(world: World) -> None:
    await _subscribe(world)
    budget = TICKETS_AT_ONCE * world.service.settings.limits.automatic_answers_per_day
    known = {name: robot.read() for name, robot in world.robots.items()}
    for _ in range(BEGINNINGS):
        # Its answer to the question for a rating opens the ticket again, which is closed again.
        for _ in range(TICKETS_AT_ONCE + 1):
            await asyncio.gather(*(robot.begin() for robot in world.robots.values()))
            await _close_all(world)
        world.moved.advance(HOURS * 3600)

    for name, robot in world.robots.items():
        # The confirmation of the one ticket, and questions for a rating.
        assert robot.read() - known[name] == 1 + budget, name
        asked = BEGINNINGS * (TICKETS_AT_ONCE + 1)
        assert withheld(world.service, name, "rating") == asked - budget, name


async def _subscribe(world: World) -> None:
    """The robots subscribe as people do, or are added."""
    answer = (await world.client.post("/v1/subscribers/links", json={})).json()
    await world.people["telegram"].open(answer["links"]["telegram"])
    await world.people["matrix"].open(answer["links"]["matrix"])
    await world.people["matrix"].write(answer["start_messages"]["matrix"])
    address = {"channel": "sms", "address": world.people["sms"].number}
    added = await world.client.post("/v1/subscribers", json=address)
    assert added.status_code == 201, added.text

    async def all_are_there() -> bool:
        return len((await world.client.get("/v1/subscribers")).json()["data"]) == len(world.robots)

    await until(all_are_there)
    await _greeted(world)


async def _greeted(world: World) -> None:
    async def found() -> bool:
        return bool(world.people["matrix"].messages)

    await until(found)
    await settled(world.service)


async def _close_all(of: "World | Office") -> None:
    tickets = (await of.client.get("/v1/tickets", params={"limit": 100})).json()["data"]
    for ticket in tickets:
        if ticket["status"] != "closed":
            closed = await of.client.patch(
                f"/v1/tickets/{ticket['ticket_id']}", json={"status": "closed"}
            )
            assert closed.is_success, closed.text
    await settled(of.service)


# ---- two services that write to each other by email -------------------------------------------------


class Office:
    """A service whose bot is a mailbox. `partner` is the mailbox of the other one, in its mail server."""

    def __init__(self, service: Service, platform: FakeMail, client: httpx2.AsyncClient) -> None:
        self.service, self.platform, self.client = service, platform, client
        self._passed_on = 0

    async def has_read_everything(self) -> None:
        """Mails are read in their order, so that one of somebody else is read last."""
        before = self._handled()
        self.platform.deliver(_mail(f"visitor{before:.0f}@people.example", "Hello"))

        async def came() -> bool:
            return self._handled() > before

        await until(came)
        await settled(self.service)

    def pass_on(self, partner: "Office", *, marks: bool) -> int:
        """Brings what was sent to the other one's mailbox, with or without the marks of automatic mails;
        returns how many mails."""
        sent = self.partner.messages[self._passed_on :]
        for mail in sent:
            partner.platform.deliver(_copied(mail, marks=marks))
        self._passed_on += len(sent)
        return len(sent)

    @property
    def partner(self) -> Any:
        return next(one for one in self.platform.people.values() if one.address.endswith(DOMAIN))

    def _handled(self) -> float:
        name = "msgsvc_channel_updates_total"
        return metric(self.service, name, channel="email", outcome="handled")


def _mail(sender: str, text: str) -> EmailMessage:
    mail = EmailMessage()
    mail["From"], mail["To"] = sender, f"news@{DOMAIN}"
    mail["Subject"], mail["Message-ID"] = "A question", f"<{sender}>"
    mail.set_content(text)
    return mail


def _copied(mail: Mail, *, marks: bool) -> EmailMessage:
    copy = message_from_bytes(mail.raw, policy=policy.SMTP)
    assert isinstance(copy, EmailMessage)
    if not marks:
        for name in MARKS:
            del copy[name]
    return copy


@pytest.fixture
async def make_office(make_service: ServiceFactory, make_tenant: Any) -> AsyncIterator[Any]:
    async with AsyncExitStack() as stack:

        async def make(name: str, partner: str, moved: MovableClock) -> Office:
            platform = await stack.enter_async_context(FakeMail())
            # Visitors get answers, too.
            platform.person(partner, DOMAIN)
            settings = {**platform.inbound_settings, "sender": f"{name}@{DOMAIN}"}
            service = await make_service(
                extra_plugins=PLUGINS, use_clock=moved, channels={"email": settings}
            )
            return Office(service, platform, (await make_tenant(service)).client)

        yield make


@pytest.mark.parametrize("marks", [True, False])
async def test_two_services_do_not_write_to_each_other_for_ever(
    make_office: Any, marks: bool
) -> None:
    moved = MovableClock()
    shop, desk = await make_office("news", "desk", moved), await make_office("desk", "news", moved)
    address = {"channel": "email", "address": f"desk@{DOMAIN}"}
    added = await shop.client.post("/v1/subscribers", json=address)
    subscriber_id = added.json()["subscriber_id"]
    for _ in range(BEGINNINGS):
        news = {"subscriber_id": subscriber_id, "text": "We have news."}
        assert (await shop.client.post("/v1/send", json=news)).status_code == 202
        await settled(shop.service)
        for _ in range(MOST_ROUNDS):
            if shop.pass_on(desk, marks=marks) + desk.pass_on(shop, marks=marks) == 0:
                break
            await asyncio.gather(shop.has_read_everything(), desk.has_read_everything())
        else:
            raise AssertionError("the loop does not end")
        await _close_all(shop)
        moved.advance(HOURS * 3600)

    per_day = shop.service.settings.limits.automatic_answers_per_day
    answers = len(shop.partner.messages) - BEGINNINGS
    if marks:
        assert (answers, len(desk.partner.messages)) == (0, 0)
    else:
        # To strangers; and to the one customer the confirmation of a ticket and questions for a rating.
        assert len(desk.partner.messages) == per_day
        assert 0 < answers <= 2 * TICKETS_AT_ONCE * per_day
        assert withheld(desk.service, "email", "stranger") > 0
