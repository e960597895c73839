"""Callers cancelled in the middle of what they do, by the thousand, on both databases."""

import asyncio
import json
import random
import sqlite3
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, closing
from functools import partial
from itertools import count
from typing import Any

import asyncpg
import pytest

from msgsvc_core.api.context import Context
from msgsvc_core.api.endpoint import Endpoint, Router
from msgsvc_core.channels import Channel, ChannelIdentity, ChannelKind, ChannelUser, OutgoingMessage
from msgsvc_core.db.database import sqlite_path
from msgsvc_core.db.sqlite import READERS
from msgsvc_core.hookspecs import hookimpl
from msgsvc_core.messages import Messages
from msgsvc_core.messages.models import SendAnswer, SendBody
from msgsvc_core.server import Guard, Server, bind
from msgsvc_core.service import Service
from msgsvc_core.settings import Section
from msgsvc_core.testing import settled, until
from msgsvc_core.testing.channel import SendOnlyChannel
from msgsvc_core.testing.fixtures import ServiceFactory, Tenant
from tests.faults.conftest import Figure, Rounds

pytestmark = pytest.mark.faults

#: Callers at once.
AT_ONCE = 10

#: Seconds after which something hangs.
HUNG_S = 30.0

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
        def create(_service: Any, _name: str, _settings: Section) -> Channel:
            return self.channel

        return [ChannelKind("held", Section, create)]

    @hookimpl
    def register_endpoints(self) -> Sequence[Endpoint]:
        router = Router(area="messages")

        @router.post("/v1/fault/write", status=202)
        async def write(ctx: Context, body: SendBody) -> SendAnswer:
            """Writes a message between two reads, and has its caller cancelled meanwhile."""
            task = asyncio.current_task()
            assert task is not None
            if "X-Cut" in ctx.headers:
                _soon(task.cancel)
            try:
                await ctx.tx.fetch_all("SELECT * FROM core_subscribers")
                message = await ctx.service.messages.queue(ctx.tx, ctx.project_id, body)
                await ctx.tx.fetch_all("SELECT * FROM core_jobs LIMIT 10")
            except asyncio.CancelledError:
                self.cut_in_transaction += 1
                raise
            return SendAnswer(message_id=message.message_id)

        return router.endpoints


class Shop:
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


@pytest.fixture
async def shop(make_service: ServiceFactory, make_tenant: Any) -> Shop:
    plugin = HeldPlugin()
    service = await make_service(
        extra_plugins=[("held", plugin)],
        channels={"messenger_a": {"plugin": "held"}},
        limits={"requests_per_minute": 10_000_000},
        jobs={"sweep_s": 0.5, "lease_s": 3600},
    )
    made = Shop(service, await make_tenant(service), plugin)
    await made.subscribe()
    return made


async def test_callers_cancelled_in_the_middle_leave_no_trace(
    shop: Shop, rounds: Rounds, figure: Figure
) -> None:
    wanted = rounds(short=500, long=10_000)
    cut = started = 0
    async with asyncio.timeout(HUNG_S + wanted / 20):
        while shop.plugin.cut_in_transaction < wanted:
            callers = [random.choice(shop.callers) for _ in range(AT_ONCE)]
            cut += sum(await asyncio.gather(*(_cut_short(shop, caller) for caller in callers)))
            started += AT_ONCE

        await check_pool(shop.service)
        messages = await check_rows(shop)
    figure(
        f"requests cancelled, {_name(shop.service)}",
        f"{cut} of {started} cancelled, {shop.plugin.cut_in_transaction} of them in a transaction;"
        f" {len(shop.accepted)} of {messages} messages answered, 0 lost, pool whole, no lock left",
        cancelled=cut,
        cancelled_in_transaction=shop.plugin.cut_in_transaction,
        started=started,
        accepted=len(shop.accepted),
    )
    assert cut >= wanted


async def test_half_of_64_cancelled_senders_do_the_other_half_no_harm(
    shop: Shop, rounds: Rounds, figure: Figure
) -> None:
    waves = rounds(short=5, long=50)
    kept = cut = 0
    for wave in range(waves):
        send = (shop.send, shop.send_in_process, shop.send_with_key)[wave % 3]
        before = len(shop.accepted)
        tasks = [asyncio.create_task(send()) for _ in range(64)]
        for _ in range(random.randrange(STEPS)):
            await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
        done, pending = await asyncio.wait(tasks, timeout=HUNG_S)

        assert not pending
        assert [task.result() for task in tasks[1::2]] == [None] * 32
        assert len(done) == 64
        kept += len(shop.accepted) - before
        cut += sum(task.cancelled() for task in tasks)

    assert kept + cut == 64 * waves
    await check_pool(shop.service)
    await check_rows(shop)
    figure(
        f"half of 64 senders cancelled, {_name(shop.service)}",
        f"{waves} times, {cut} cancelled, {kept} accepted and kept, 0 lost",
        waves=waves,
        cancelled=cut,
        accepted=kept,
    )


async def test_clients_that_hang_up_in_the_middle_leave_no_trace(
    shop: Shop, rounds: Rounds, figure: Figure
) -> None:
    wanted = rounds(short=200, long=2_000)
    service = shop.service
    guard = Guard(service.settings.server, service.settings.errors_url, service.metrics)
    server = Server(service.app, guard, signals=False)
    with bind("127.0.0.1", 0) as listener:
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        async with asyncio.timeout(HUNG_S + wanted / 50):
            await until(partial(_has_started, server))
            for _ in range(wanted // AT_ONCE):
                ends = (hang_up(shop, listener.getsockname()[1]) for _ in range(AT_ONCE))
                await asyncio.gather(*ends)
            server.should_exit = True
            await serving

            await check_pool(shop.service)
            await check_rows(shop)
    figure(
        f"clients that hang up, {_name(shop.service)}",
        f"{wanted} hung up, pool whole, no transaction or lock left",
        hung_up=wanted,
    )


async def _cut_short(shop: Shop, call: Call) -> bool:
    """Cancels a call at a random moment; True if it was in the middle. Raises what it raised."""
    task = asyncio.create_task(call())
    if call not in (shop.write, shop.write_with_key):
        _soon(task.cancel)
    _, pending = await asyncio.wait([task], timeout=HUNG_S)
    assert not pending, "a cancelled call hangs"
    if task.cancelled():
        return True
    task.result()
    return False


def _soon(cancel: Callable[[], Any]) -> None:
    """Calls after some turns of the loop or some milliseconds: threads and sockets take time."""
    loop = asyncio.get_running_loop()

    def step(left: int) -> None:
        if left:
            loop.call_soon(step, left - 1)
        else:
            cancel()

    if random.random() < 0.5:
        step(random.randrange(STEPS))
    else:
        loop.call_later(random.uniform(0, LATE_MS) / 1000, cancel)


async def hang_up(shop: Shop, port: int) -> None:
    """Sends a request, or half of one, and closes the connection without reading the answer."""
    fields = shop.message()
    body = f'{{"subscriber_id": "{fields["subscriber_id"]}", "text": "{fields["text"]}"}}'
    request = (
        "POST /v1/send HTTP/1.1\r\nHost: shop\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {shop.tenant.key}\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    ).encode()
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request[: random.choice([len(request), random.randrange(len(request))])])
    await writer.drain()
    for _ in range(random.randrange(STEPS)):
        await asyncio.sleep(0)
    writer.transport.abort()


async def check_pool(service: Service) -> None:
    """Every connection can be had, all at once, and none of them is in a transaction."""
    db = service.db
    async with asyncio.timeout(HUNG_S), AsyncExitStack() as held:
        writers = 1 if db.dialect == "sqlite" else service.settings.database_pool
        for _ in range(writers):
            tx = await held.enter_async_context(db.transaction())
            assert await tx.fetch_val("SELECT 1") == 1
        for _ in range(READERS if db.dialect == "sqlite" else 0):
            tx = await held.enter_async_context(db.read())
            assert await tx.fetch_val("SELECT 1") == 1

    async def all_ended() -> bool:
        return not await _open_transactions(service)

    # The runner has transactions of its own; they are short.
    await until(all_ended, timeout_s=HUNG_S)


async def _open_transactions(service: Service) -> int:
    """Transactions and locks on the database that somebody holds just now."""
    url = service.settings.database_url
    if service.db.dialect == "sqlite":
        with closing(sqlite3.connect(sqlite_path(url), timeout=0, isolation_level=None)) as other:
            # Busy while anybody writes or reads.
            return int(other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0])
    looking = await asyncpg.connect(url)
    try:
        found = await looking.fetchval(
            "SELECT (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND pid <> pg_backend_pid() AND backend_type = 'client backend' AND state <> 'idle')"
            " + (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
            " AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))"
        )
        return int(found)
    finally:
        await looking.close()


async def check_rows(shop: Shop) -> int:
    """A message is there if and only if its job is; then everything goes out, once.

    Returns how many messages there are.
    """
    messages = await shop.column("SELECT message_id AS text FROM core_messages")
    payloads = await shop.column(
        "SELECT payload AS text FROM core_jobs WHERE name = 'message.deliver'"
    )
    contents = await shop.column("SELECT content AS text FROM core_messages")

    assert sorted(messages) == sorted(json.loads(payload)["message_id"] for payload in payloads)
    assert all(sum(f'"{text}"' in one for one in contents) == 1 for text in shop.accepted[-200:])

    shop.plugin.channel.open.set()
    await settled(shop.service, timeout_s=HUNG_S + len(messages) / 100)

    assert len(shop.plugin.channel.texts) == len(messages)
    assert len(set(shop.plugin.channel.texts)) == len(messages)
    assert set(shop.accepted) <= set(shop.plugin.channel.texts)
    assert set(await shop.column("SELECT DISTINCT status AS text FROM core_messages")) == {"sent"}
    assert await shop.column("SELECT job_id AS text FROM core_jobs WHERE state = 'dead'") == []
    return len(messages)


async def _has_started(server: Server) -> bool:
    return server.started


def _new_key() -> dict[str, str]:
    return {"Idempotency-Key": f"key-{random.randrange(10**12)}"}


def _name(service: Service) -> str:
    return "SQLite" if service.db.dialect == "sqlite" else "PostgreSQL"
