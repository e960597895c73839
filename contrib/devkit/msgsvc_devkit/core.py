"""The core's parts on a database in memory, for unit tests of rules.

    async with memory_core(plugins=["otp"], otp={"length": 4}) as core, core.db.transaction() as tx:
        ann = await core.person(tx, "sub_ann", lang="en")
        body = SendOtpBody(subscriber_id=ann.subscriber_id)
        await core.get(OneTimeCodes).send(tx, PROJECT, body)

        [sent] = await core.calls(tx)
        assert "Your code for Shop" in sent.message.text

Everything is real, SQL included, except for what is outside of the process: the clock stands still until
`core.clock.advance`, channels record their calls, and no job runs by itself. It takes ten milliseconds.
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

from msgsvc_core.channels.context import ChannelContext
from msgsvc_core.channels.inbound import Chat
from msgsvc_core.channels.system_messages.outbox import JOB as BOT_CALL
from msgsvc_core.channels.system_messages.outbox import OPEN_THREAD
from msgsvc_core.channels.updates import Update
from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.db import Tx
from msgsvc_core.events import Event
from msgsvc_core.jobs.contract import Job, NewJob
from msgsvc_core.kernel.json import from_json
from msgsvc_core.messages.bodies import MessageQuery
from msgsvc_core.messages.models import Message
from msgsvc_core.plugins.context import PluginContext
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.service import Service
from msgsvc_core.subscribers.models import Subscriber
from msgsvc_core.subscribers.searching import columns_of
from msgsvc_devkit.channel import RecordingChannel, RecordingPlugin
from msgsvc_devkit.clock import FakeClock
from msgsvc_devkit.contexts import InboundInTest, JobInTest, claimed
from msgsvc_devkit.memory import MEMORY_URL, memory_database
from msgsvc_devkit.services import migrations_of, settings_of

#: The project that every core has, named Shop.
PROJECT = "prj_1"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class BotCall:
    """A call that a bot is to make: `call` is `send`, `edit`, `answer_button` or `open_thread`.

    `payload` has what else is stored, e.g. `button_ref`, `text`, `message_ref`, `expires_at_ms` and `then`.
    """

    call: str
    channel: str
    chat_id: str | None
    message: OutgoingMessage | None
    otherwise: OutgoingMessage | None
    payload: dict[str, Any]


class _Recorder:
    """A plugin that records the events, in order, whether or not their transaction commits."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    @hookimpl
    async def on_events(self, tx: Tx, events: Sequence[Event]) -> None:
        self.events += events


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryCore(PluginContext):
    """The parts as a plugin gets them, what a test arranges, and what it looks at."""

    clock: FakeClock
    service: Service
    #: The events emitted so far, in order.
    emitted: list[Event] = field(default_factory=list)

    @property
    def event_names(self) -> list[str]:
        """The names of the events emitted so far, in order."""
        return [event.name for event in self.emitted]

    def get(self, kind: type[T]) -> T:
        """The object of that type, of the core or of a loaded plugin. Raises `NotProvided`."""
        return self.service.get(kind)

    def recording(self, key: str = "messenger_a") -> RecordingChannel:
        """The channel of that key, which records what it sends."""
        channel = self.channels[key]
        assert isinstance(channel, RecordingChannel)
        return channel

    async def project(self, tx: Tx, project_id: str, name: str = "Other") -> str:
        """Adds a project; returns its id."""
        now_ms = self.clock.now_ms()
        row = {"project_id": project_id, "name": name, "status": "active", "created_at_ms": now_ms}
        await tx.insert("core_projects", row)
        return project_id

    async def person(
        self,
        tx: Tx,
        subscriber_id: str = "sub_1",
        *,
        project_id: str = PROJECT,
        tags: Sequence[str] = (),
        permissions: Sequence[str] = (),
        **columns: Any,
    ) -> Subscriber:
        """Adds an active subscriber of `messenger_a`, by default Anna, with these columns of
        `core_subscribers`. Tags and permissions are added to the project if it lacks them."""
        now_ms = self.clock.now_ms()
        short = subscriber_id.removeprefix("sub_")
        row = {
            "channel": "messenger_a",
            "bot": columns.get("channel", "messenger_a"),
            "user_id": short,
            "chat_id": f"chat {short}",
            "first_name": "Anna",
            "username": None,
            "lang": "en",
            "external_id": None,
            "status": "active",
            "source": "deep_link",
            "created_at_ms": now_ms,
            "last_seen_at_ms": now_ms,
            **columns,
        }
        names = ("first_name", "username", "external_id")
        row |= columns_of(**{name: row[name] for name in names})
        key = {"project_id": project_id, "subscriber_id": subscriber_id}
        await tx.insert("core_subscribers", key | row)
        await self.tags.ensure(tx, project_id, tags)
        for tag_id in await self.tags.ids_of(tx, project_id, tags):
            await tx.insert("core_subscriber_tags", key | {"tag_id": tag_id})
        for permission in permissions:
            await self._grant(tx, key, permission)
        return await self.subscribers.get(tx, project_id, subscriber_id)

    async def jobs_named(self, tx: Tx, name: str) -> list[Job]:
        """The jobs of that name that have not run, in the order in which they were enqueued."""
        return [job for job in await self.pending_jobs(tx) if job.name == name]

    async def pending_jobs(self, tx: Tx) -> list[Job]:
        """All jobs that have not run, in the order in which they were enqueued."""
        rows = await tx.fetch_all("SELECT * FROM core_jobs ORDER BY rowid")
        return [
            Job(
                job_id=row["job_id"],
                name=row["name"],
                lane=row["lane"],
                payload=from_json(row["payload"]),
                attempts=row["attempts"],
                deliveries=row["deliveries"],
                created_at_ms=row["created_at_ms"],
                project_id=row["project_id"],
                priority=row["priority"],
                run_at_ms=row["run_at_ms"],
                refused_from_ms=row["refused_from_ms"],
            )
            for row in rows
        ]

    async def run(self, *jobs: Job | NewJob) -> JobInTest:
        """Has the handler of these jobs, which are of one kind, run them in transactions of its own. Their
        rows stay, if they have any."""
        context, now_ms = JobInTest(self.db), self.clock.now_ms()
        [handler] = [each.handler for each in self.service.job_specs if each.name == jobs[0].name]
        ready = [each if isinstance(each, Job) else claimed(each, now_ms=now_ms) for each in jobs]
        await handler(context, ready)
        return context

    async def calls(self, tx: Tx) -> list[BotCall]:
        """The calls that bots are to make, of system messages, in order."""
        jobs = await self.pending_jobs(tx)
        return [self._call(job) for job in jobs if job.name in {BOT_CALL, OPEN_THREAD}]

    async def texts_sent(self, tx: Tx) -> list[str]:
        """The texts of the system messages that bots are to send, in order."""
        calls = [call for call in await self.calls(tx) if call.call == "send"]
        return [call.message.text for call in calls if call.message is not None]

    async def messages_queued(self, tx: Tx, project_id: str = PROJECT) -> list[Message]:
        """The messages of a project, of mailings too, in the order in which they were queued."""
        return await self.messages.page(tx, project_id, MessageQuery(limit=100), ascending=True)

    def inbound(
        self,
        tx: Tx,
        update: Update,
        *,
        channel: str = "messenger_a",
        project_id: str | None = PROJECT,
        lang: str = "en",
    ) -> InboundInTest:
        """The context of an update to the bot `channel`, in a chat of `project_id`."""
        bot = self.channels[channel]
        return InboundInTest(
            tx=tx,
            bot=bot,
            outbox=self.outbox,
            channel=channel,
            channel_name=bot.name,
            update=update,
            chat=Chat(channel, update.chat_id, project_id),
            lang=lang,
            _=self.texts.into(lang),
        )

    def _call(self, job: Job) -> BotCall:
        payload = dict(job.payload)
        sealed, otherwise = payload.pop("sealed", None), payload.pop("otherwise", None)
        return BotCall(
            call=payload.pop("call", "open_thread"),
            channel=job.lane.removeprefix("channel:"),
            chat_id=payload.pop("chat_id", None),
            message=None if sealed is None else self.outbox.unseal(sealed),
            otherwise=None if otherwise is None else self.outbox.unseal(otherwise),
            payload=payload,
        )

    async def _grant(self, tx: Tx, key: dict[str, str], permission: str) -> None:
        now_ms = self.clock.now_ms()
        if not await self.permissions.exists(tx, key["project_id"], permission):
            row = {"key": permission, "title": permission, "is_default": False}
            owner = {"project_id": key["project_id"], "created_at_ms": now_ms}
            await tx.insert("core_permissions", row | owner)
        row = {"permission": permission, "granted_at_ms": now_ms}
        await tx.insert("core_subscriber_permissions", key | row)


@asynccontextmanager
async def memory_core(
    *,
    plugins: Sequence[str] = (),
    extra_plugins: Iterable[tuple[str, Any]] = (),
    clock: FakeClock | None = None,
    **settings: Any,
) -> AsyncIterator[MemoryCore]:
    """A core that is not started, with the project `PROJECT`, and plugins: installed ones by the name of
    their entry point, others as objects. `settings` are those of `msgsvc.toml`, sections as dictionaries."""
    recorder, clock = _Recorder(), clock or FakeClock()
    extra = [("recording", RecordingPlugin()), ("recorder", recorder), *extra_plugins]
    async with memory_database(migrations_of(plugins, extra)) as db:
        service = Service(
            settings_of(plugins, extra, database_url=MEMORY_URL, **settings),
            clock=clock,
            extra_plugins=extra,
            database=db,
        )
        context = service.plugin_context()
        parts = {each.name: getattr(context, each.name) for each in fields(PluginContext)}
        core = MemoryCore(**parts, service=service, emitted=recorder.events)
        async with db.transaction() as tx:
            await core.project(tx, PROJECT, "Shop")
        yield core


def channel_context(**overrides: Any) -> ChannelContext:
    """The context of a channel that a test creates without a service: real parts, but for the clock and the
    database, which is not connected. `overrides` replace its fields, by name.

        channel = DoveChannel(channel_context(), ChannelIdentity("dove", "dove"), DoveSettings(token="t"))

    For a channel with tables, use `core.channels.kinds.context` of `memory_core`.
    """
    clock = overrides.get("clock") or FakeClock()
    settings = settings_of([], database_url=MEMORY_URL, channels={})
    service = Service(settings, clock=clock)
    return replace(service.channels.kinds.context, **overrides)
