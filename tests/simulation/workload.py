"""What the tenants send: a mailing each, single messages in order, and sign-in questions."""

import random
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from msgsvc_core.channels.project_channels.models import CreateChannelBody
from msgsvc_core.channels.project_channels.service import ProjectChannels
from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.mailings.audience import Audience
from msgsvc_core.mailings.models import MailingMessage, NewMailing
from msgsvc_core.messages.bodies import SendBody
from msgsvc_core.service import Service
from tests.simulation.platform import GROUP
from tests.simulation.virtual_time import VirtualTime

#: Shares of a run's messages: recipients of mailings, single messages, and sign-in questions.
MAILED, SINGLE, ASKED = 0.75, 0.2, 0.05

#: Of a tenant's subscribers one in so many uses the bot for all tenants, in the same chat.
SHARED_EVERY = 20

#: Single messages that a tenant sends to one person together.
IN_A_ROW = 3

#: People of a bot that a tenant adds while the service runs: each gets a row of messages at once, and half
#: as many questions come beside them.
PEOPLE_OF_ADDED = 10

Kind = Literal["mailing", "single", "question"]


@dataclass(slots=True)
class Item:
    """A message that was accepted. `number` counts those of one tenant to one chat; of a mailing's there is
    one."""

    kind: Kind
    bot: str
    tenant: int
    chat_id: str
    text: str
    asked_s: float
    number: int = 0
    #: Of a single message.
    message_id: str = ""

    @property
    def key(self) -> tuple[str, str]:
        return self.chat_id, self.text


@dataclass(slots=True)
class Person:
    subscriber_id: str
    chat_id: str


@dataclass(slots=True)
class Load:
    """How much is sent, and when: `messages` over `bots` bots by `tenants` tenants, in about `spread_s`."""

    messages: int
    bots: int
    tenants: int
    spread_s: float


@dataclass(slots=True)
class Workload:
    """Sends the load through the accepting process's service, at its times."""

    load: Load
    service: Service
    virtual: VirtualTime
    rng: random.Random
    items: list[Item] = field(default_factory=list)
    #: Messages that are still to be accepted.
    pending: int = 0
    project_ids: list[str] = field(default_factory=list)
    mailing_ids: list[str] = field(default_factory=list)
    failures: list[BaseException] = field(default_factory=list)
    _people: dict[tuple[int, str], list[Person]] = field(default_factory=dict)
    _subscribers: dict[tuple[int, str], str] = field(default_factory=dict)
    _sent: defaultdict[tuple[int, str], int] = field(default_factory=lambda: defaultdict(int))

    async def set_up(self, bots: list[str], per_bot: int) -> None:
        """Adds the tenants and their people: `per_bot` of each tenant on each bot."""
        for tenant in range(self.load.tenants):
            project = await self.service.projects.create(f"Tenant {tenant}")
            self.project_ids.append(project.project_id)
            rows = []
            for bot in bots:
                people = self._people[tenant, bot] = []
                for number in range(per_bot):
                    chat_id = f"{bot}-{tenant}-{number}"
                    if number % SHARED_EVERY == 1:
                        chat_id = f"{bot}-all-{number}"
                    elif number == 0:
                        chat_id = f"{GROUP}-{chat_id}"
                    person = Person(f"sub_{tenant:03}{bot}{number:07}", chat_id)
                    people.append(person)
                    self._subscribers[tenant, chat_id] = person.subscriber_id
                    rows.append(self._row(project.project_id, bot, bot, person))
            async with self.service.db.transaction() as tx:
                await tx.insert_many("core_subscribers", rows)

    async def add_bot(self, number: int, added: Callable[[str], None]) -> None:
        """A tenant adds a bot of its own, and writes to people at once; `added` is told the bot's key."""
        tenant = number % self.load.tenants
        project_id, name = self.project_ids[tenant], f"added_{number}"
        body = CreateChannelBody(name=name, plugin="simulated", settings={})
        async with self.service.db.transaction() as tx:
            channel = await self.service.get(ProjectChannels).create(tx, project_id, body)
            bot = channel.channel_id
            people = [
                Person(f"sub_{name}_{person:07}", f"{name}-{tenant}-{person}")
                for person in range(PEOPLE_OF_ADDED)
            ]
            await tx.insert_many(
                "core_subscribers", [self._row(project_id, name, bot, person) for person in people]
            )
            added(bot)
        for person in people:
            self._subscribers[tenant, person.chat_id] = person.subscriber_id
            await self._send_row(tenant, bot, person)
        for question in range(PEOPLE_OF_ADDED // 2):
            await self._ask(bot, question)

    def _row(self, project_id: str, channel: str, bot: str, person: Person) -> dict[str, object]:
        now_ms = self.service.clock.now_ms()
        return {
            "project_id": project_id,
            "subscriber_id": person.subscriber_id,
            "channel": channel,
            "bot": bot,
            "user_id": person.chat_id,
            "chat_id": person.chat_id,
            "first_name": "Ann",
            "lang": "en",
            "status": "active",
            "source": "api",
            "created_at_ms": now_ms,
            "last_seen_at_ms": now_ms,
        }

    def recipient_of(self, item: Item) -> tuple[str, str]:
        """The project and the subscriber of a tenant's message."""
        return self.project_ids[item.tenant], self._subscribers[item.tenant, item.chat_id]

    async def start_mailings(self) -> None:
        """Every tenant writes to all its people, at the same moment."""
        for tenant, project_id in enumerate(self.project_ids):
            text = f"news of tenant {tenant}"
            message = MailingMessage.model_validate({"text": text})
            audience = Audience.model_validate({"all": True})
            async with self.service.db.transaction() as tx:
                mailing = await self.service.mailings.start(
                    tx, project_id, NewMailing("broadcasts", message, audience)
                )
            self.mailing_ids.append(mailing.job_id)
            self.items += [
                Item("mailing", bot, tenant, person.chat_id, text, self.virtual.now_s)
                for (of, bot), people in self._people.items()
                if of == tenant
                for person in people
            ]

    def schedule(self, loop_of_site: "object", bots: list[str]) -> None:
        """Spreads single messages and questions over the time."""
        rng, load, begins_s = self.rng, self.load, self.virtual.now_s
        rows, questions = round(load.messages * SINGLE / IN_A_ROW), round(load.messages * ASKED)
        self.pending = rows + questions
        for _ in range(rows):
            at_s = begins_s + rng.uniform(0, load.spread_s)
            tenant, bot = rng.randrange(load.tenants), rng.choice(bots)
            person = rng.choice(self._people[tenant, bot])
            self._later(loop_of_site, at_s, self._send_row, tenant, bot, person)
        for number in range(questions):
            at_s = begins_s + rng.uniform(0, load.spread_s)
            self._later(loop_of_site, at_s, self._ask, rng.choice(bots), number)

    def schedule_bot(
        self, loop_of_site: "object", at_s: float, number: int, added: Callable[[str], None]
    ) -> None:
        """Adds a bot at that time."""
        self.pending += 1
        self._later(loop_of_site, at_s, self.add_bot, number, added)

    def _later(self, loop: Any, at_s: float, send: Any, *arguments: object) -> None:
        async def run() -> None:
            try:
                await send(*arguments)
            except Exception as error:  # noqa: BLE001 - reported with the seed
                self.failures.append(error)
            finally:
                self.pending -= 1

        self.virtual.at(at_s, lambda: loop.create_task(run()))

    async def _send_row(self, tenant: int, bot: str, person: Person) -> None:
        for _ in range(IN_A_ROW):
            key = tenant, person.chat_id
            number = self._sent[key] = self._sent[key] + 1
            text = f"single {number} of tenant {tenant}"
            item = Item(
                "single",
                bot,
                tenant,
                person.chat_id,
                text,
                self.virtual.now_s,
                number,
            )
            body = SendBody(subscriber_id=person.subscriber_id, text=text)
            message = await self.service.messages.send(self.project_ids[tenant], body)
            item.message_id = message.message_id
            self.items.append(item)

    async def _ask(self, bot: str, number: int) -> None:
        chat_id, text = f"{bot}-login-{number}", f"Sign in? {number}"
        item = Item("question", bot, -1, chat_id, text, self.virtual.now_s)
        async with self.service.db.transaction() as tx:
            await self.service.outbox.send(tx, bot, chat_id, OutgoingMessage(text))
        self.items.append(item)
