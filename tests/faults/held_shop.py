"""A service in the test's process whose messenger holds everything back, and callers to be cancelled."""

import asyncio
import random
from collections.abc import Callable, Coroutine, Sequence
from itertools import count
from typing import Any

from msgsvc_core.api.context import Context
from msgsvc_core.api.endpoint import Endpoint, Router
from msgsvc_core.channels import Channel, ChannelIdentity, ChannelKind, ChannelUser, OutgoingMessage
from msgsvc_core.config.sections import Section
from msgsvc_core.messages.answers import QueuedMessageAnswer
from msgsvc_core.messages.bodies import SendBody
from msgsvc_core.messages.service import Messages
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.service import Service
from msgsvc_devkit.channel import SendOnlyChannel
from msgsvc_devkit.fixtures import Tenant

#: Turns of the loop, or milliseconds, after which a caller is cancelled, at most.
STEPS, LATE_MS = 60, 5.0

PEOPLE = 20

Call = Callable[[], Coroutine[Any, Any, None]]


class HeldChannel(SendOnlyChannel):
    """Holds everything back until `open` is set, so that no job is done before."""

    def __init__(self) -> None:
        super().__init__(ChannelIdentity("messenger_a", "messenger_a"))
        self.open = asyncio.Event()
        self.texts: list[str] = []

    async def send(self, chat_id: str, message: OutgoingMessage) -> str:
        await self.open.wait()
        self.texts.append(message.text)
        return f"{chat_id}-{len(self.texts)}"


class HeldPlugin:
    """The messenger, and an endpoint that counts in whose transaction its caller was cancelled."""

    def __init__(self) -> None:
        self.channel = HeldChannel()
        self.cut_in_transaction = 0

    @hookimpl
    def register_channel_kinds(self) -> list[ChannelKind]:
        def create(_context: Any, _name: str, _settings: Section) -> Channel:
            return self.channel

        return [ChannelKind("held", Section, create)]

    @hookimpl
    def register_endpoints(self) -> Sequence[Endpoint]:
        router = Router(area="messages")

        @router.post("/v1/fault/write", status=202)
        async def write(ctx: Context, body: SendBody, messages: Messages) -> QueuedMessageAnswer:
            """Writes a message between two reads, and has its caller cancelled meanwhile."""
            task = asyncio.current_task()
            assert task is not None
            if "X-Cut" in ctx.headers:
                cancel_soon(task)
            try:
                await ctx.tx.fetch_all("SELECT * FROM core_subscribers")
                message = await messages.queue(ctx.tx, ctx.project_id, body)
                await ctx.tx.fetch_all("SELECT * FROM core_jobs LIMIT 10")
            except asyncio.CancelledError:
                self.cut_in_transaction += 1
                raise
            return QueuedMessageAnswer(message_id=message.message_id)

        return router.endpoints


class HeldShop:
    """A service whose messenger holds everything back, and callers of many kinds."""

    def __init__(self, service: Service, tenant: Tenant, plugin: HeldPlugin) -> None:
        self.service = service
        self.tenant = tenant
        self.plugin = plugin
        self.subscribers: list[str] = []
        #: Texts of messages whose callers were told that they are accepted.
        self.accepted: list[str] = []
        self._texts = (f"message {number}" for number in count())

    @property
    def messages(self) -> Messages:
        return self.service.messages

    async def subscribe(self) -> None:
        async with self.service.db.transaction() as tx:
            for number in range(PEOPLE):
                user = ChannelUser(f"user-{number}", "Ann")
                subscriber = await self.service.subscribers.ensure(
                    tx,
                    self.tenant.project.project_id,
                    "messenger_a",
                    user,
                    f"chat-{number}",
                    source="api",
                )
                self.subscribers.append(subscriber.subscriber_id)

    def message(self) -> dict[str, Any]:
        return {"subscriber_id": random.choice(self.subscribers), "text": next(self._texts)}

    async def send_in_process(self) -> None:
        fields = self.message()
        await self.messages.send(self.tenant.project.project_id, **fields)
        self.accepted.append(fields["text"])

    async def send(self) -> None:
        await self._post("/v1/send")

    async def send_with_key(self) -> None:
        await self._post("/v1/send", _new_key())

    async def write(self) -> None:
        await self._post("/v1/fault/write", {"X-Cut": "1"})

    async def write_with_key(self) -> None:
        await self._post("/v1/fault/write", {"X-Cut": "1", **_new_key()})

    async def list_messages(self) -> None:
        answer = await self.tenant.client.get("/v1/messages?limit=10")
        assert answer.status_code == 200, answer.text

    async def make_link(self) -> None:
        """A writing endpoint that has a transaction of its own."""
        body = {"tags": [f"tag-{random.randrange(5)}"]}
        answer = await self.tenant.client.post("/v1/subscribers/links", json=body)
        assert answer.status_code == 201, answer.text

    async def roll_back(self) -> None:
        """A transaction that fails by itself, if nobody cancels it before."""
        answer = await self.tenant.client.post(
            "/v1/send",
            json={"subscriber_id": "sub_nobody", "text": "to nobody"},
            headers=_new_key(),
        )
        assert answer.status_code == 404, answer.text

    async def _post(self, path: str, headers: dict[str, str] | None = None) -> None:
        body = self.message()
        answer = await self.tenant.client.post(path, json=body, headers=headers)
        assert answer.status_code == 202, answer.text
        self.accepted.append(body["text"])

    @property
    def callers(self) -> list[Call]:
        """Half of them write in a transaction of their own, which is where it hurts."""
        own = [self.write, self.write_with_key, self.make_link] * 2
        grouped = [self.send_in_process, self.send, self.send_with_key]
        return [*own, *grouped, self.list_messages, self.roll_back]

    async def column(self, sql: str) -> list[str]:
        async with self.service.db.read() as tx:
            return [row["text"] for row in await tx.fetch_all(sql)]


def cancel_soon(task: asyncio.Task[Any]) -> None:
    """Cancels a task after some turns of the loop or some milliseconds: threads and sockets take time."""
    loop = asyncio.get_running_loop()

    def step(left: int) -> None:
        if left:
            loop.call_soon(step, left - 1)
        else:
            task.cancel()

    if random.random() < 0.5:
        step(random.randrange(STEPS))
    else:
        loop.call_later(random.uniform(0, LATE_MS) / 1000, task.cancel)


def _new_key() -> dict[str, str]:
    return {"Idempotency-Key": f"key-{random.randrange(10**12)}"}
