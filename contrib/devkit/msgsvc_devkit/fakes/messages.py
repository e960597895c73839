"""Messages and templates in memory."""

from collections.abc import Sequence
from dataclasses import replace

from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.api.validation import validate
from msgsvc_core.billing import BillingGate
from msgsvc_core.channels.inbound import InboundContext
from msgsvc_core.channels.registry import Channels
from msgsvc_core.channels.updates import ButtonPressed
from msgsvc_core.config.settings import LimitSettings
from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.db import DataLoader, Tx, WriteBatch
from msgsvc_core.db.counting import MOST_COUNTED, Count
from msgsvc_core.events import Event, Events
from msgsvc_core.jobs.queue import JobQueue
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import Conflict, NotFound
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.messages.batches.counting import BatchCounts
from msgsvc_core.messages.bodies import EditBody, MessageQuery, SendBody
from msgsvc_core.messages.edits import MessageChanges
from msgsvc_core.messages.history import Moment
from msgsvc_core.messages.limits import MessageLimits
from msgsvc_core.messages.models import Message, PreparedMessage
from msgsvc_core.messages.service import Messages
from msgsvc_core.messages.templates.models import (
    CreateTemplateBody,
    StoredTemplate,
    TemplateContent,
    UpdateTemplateBody,
)
from msgsvc_core.messages.templates.rendering import read_column
from msgsvc_core.messages.templates.service import Templates
from msgsvc_core.messages.validation import MessageValidation
from msgsvc_devkit.clock import FakeClock
from msgsvc_devkit.fakes.billing import FakeBilling
from msgsvc_devkit.fakes.channels import FakeChannels
from msgsvc_devkit.fakes.database import FakeDatabase
from msgsvc_devkit.fakes.events import FakeEvents
from msgsvc_devkit.fakes.jobs import FakeJobQueue
from msgsvc_devkit.fakes.routing import FakeRoutes
from msgsvc_devkit.fakes.subscribers import FakeSubscribers, Key
from msgsvc_devkit.fakes.telemetry import fake_metrics

#: The limits of the default settings.
LIMITS = MessageLimits.of(LimitSettings())


class FakeTemplates(Templates):
    """`by_key` contains the templates, by project and key."""

    def __init__(self, *, clock: Clock | None = None, channels: Channels | None = None) -> None:
        self.by_key: dict[Key, StoredTemplate] = {}
        clock = clock or FakeClock()
        super().__init__(
            clock=clock,
            db=FakeDatabase(),
            channels=channels or FakeChannels(clock=clock),
            limits=LIMITS,
            languages=("en", "ru"),
            default_lang="en",
            most=LimitSettings().templates,
        )
        self._contents = DataLoader(FakeDatabase(), self._load)

    async def create(self, tx: Tx, project_id: str, body: CreateTemplateBody) -> StoredTemplate:
        column, now_ms = self._checked(body.to_content()), self._clock.now_ms()
        if (project_id, body.key) in self.by_key:
            raise Conflict("you have a template {key!r} already", field="key", key=body.key)
        if sum(owner == project_id for owner, _ in self.by_key) >= self._most:
            raise Conflict("a project has at most {limit} templates", limit=self._most)
        template = StoredTemplate(
            project_id=project_id,
            key=body.key,
            template_id=new_id("tpl"),
            content=column,
            created_at_ms=now_ms,
            updated_at_ms=now_ms,
        )
        self.by_key[project_id, body.key] = template
        return template

    async def find(self, tx: Tx, project_id: str, key: str) -> StoredTemplate:
        if (project_id, key) not in self.by_key:
            raise NotFound("there is no template {key!r}", key=key)
        return self.by_key[project_id, key]

    async def page(
        self, tx: Tx, project_id: str, after: str | None, limit: int
    ) -> list[StoredTemplate]:
        own = [each for (owner, _), each in self.by_key.items() if owner == project_id]
        found = sorted(own, key=lambda each: each.template_id, reverse=True)
        return [each for each in found if after is None or each.template_id < after][:limit]

    async def update(
        self, tx: Tx, project_id: str, key: str, body: UpdateTemplateBody
    ) -> StoredTemplate:
        template = await self.find(tx, project_id, key)
        before = read_column(template.content).content
        content = validate(TemplateContent, body.merged(before), languages=None)
        changed = replace(
            template, content=self._checked(content), updated_at_ms=self._clock.now_ms()
        )
        self.by_key[project_id, key] = changed
        return changed

    async def delete(self, tx: Tx, project_id: str, key: str) -> None:
        await self.find(tx, project_id, key)
        del self.by_key[project_id, key]

    async def _load(self, _tx: Tx, keys: Sequence[Key]) -> dict[Key, str]:
        return {key: self.by_key[key].content for key in keys if key in self.by_key}


class FakeMessages(Messages):
    """`by_id` contains the queued messages, in order. They stay `queued` unless a test replaces them; their
    delivery jobs are in `jobs.enqueued`, if it is a `FakeJobQueue`."""

    def __init__(
        self,
        *,
        clock: Clock | None = None,
        jobs: JobQueue | None = None,
        events: Events | None = None,
        billing: BillingGate | None = None,
        channels: Channels | None = None,
        subscribers: FakeSubscribers | None = None,
        templates: FakeTemplates | None = None,
        routes: FakeRoutes | None = None,
    ) -> None:
        clock = clock or FakeClock()
        jobs, db = jobs or FakeJobQueue(clock), FakeDatabase()
        channels = channels or FakeChannels(clock=clock)
        events = events or FakeEvents(clock=clock)
        self.by_id: dict[str, Message] = {}
        subscribers = subscribers or FakeSubscribers(clock=clock, events=events, channels=channels)
        super().__init__(
            clock=clock,
            db=db,
            jobs=jobs,
            events=events,
            billing=billing or FakeBilling(),
            subscribers=subscribers,
            validation=MessageValidation(
                db=db,
                channels=channels,
                subscribers=subscribers,
                permissions=subscribers.permissions,
                templates=templates or FakeTemplates(clock=clock, channels=channels),
                limits=LIMITS,
                routes=routes or FakeRoutes(clock=clock, channels=channels),
                clock=clock,
            ),
            changes=FakeMessageChanges(
                self.by_id, clock=clock, jobs=jobs, channels=channels, events=events
            ),
        )

    @property
    def texts(self) -> list[str]:
        """The texts of the messages, in order."""
        return [message.content.text for message in self.by_id.values()]

    def put(
        self,
        unit: WriteBatch,
        project_id: str,
        body: SendBody,
        judged: PreparedMessage,
        batch_id: str | None = None,
    ) -> Message:
        message = super().put(unit, project_id, body, judged, batch_id)
        self.by_id[message.message_id] = message
        return message

    async def find(self, tx: Tx, project_id: str, message_id: str) -> Message:
        return _found(self.by_id, project_id, message_id)

    async def get_many(
        self, tx: Tx, project_id: str, message_ids: Sequence[str]
    ) -> dict[str, Message]:
        found = [self.by_id[each] for each in message_ids if each in self.by_id]
        return {each.message_id: each for each in found if each.project_id == project_id}

    async def find_by_ref(
        self, tx: Tx, bot: str, chat_id: str, user_id: str, message_ref: str
    ) -> Message | None:
        for message in self.by_id.values():
            if (message.bot, message.message_ref) == (bot, message_ref):
                key = message.project_id, message.subscriber_id
                person = (await self._subscribers.get_many(tx, [key])).get(key)
                if person and (person.chat_id, person.user_id) == (chat_id, user_id):
                    return message
        return None

    async def page(
        self, tx: Tx, project_id: str, query: MessageQuery, *, ascending: bool = False
    ) -> list[Message]:
        if query.channel is not None:
            await self._subscribers.check_channel(tx, project_id, query.channel)
        wanted = query.model_dump(
            include={"status", "reason", "subscriber_id", "channel", "batch_id"}, exclude_none=True
        )
        after, since_ms = query.after, query.created_after
        found = [
            message
            for message_id, message in sorted(self.by_id.items(), reverse=not ascending)
            if message.project_id == project_id
            and (after is None or (message_id > after if ascending else message_id < after))
            and (since_ms is None or message.created_at_ms > since_ms)
            and all(getattr(message, name) == value for name, value in wanted.items())
        ]
        return found[: query.fetch_limit]

    async def count(
        self, tx: Tx, project_id: str, query: MessageQuery, limit: int = MOST_COUNTED
    ) -> Count:
        whole = query.model_copy(update={"limit": len(self.by_id), "cursor": None})
        found = len(await self.page(tx, project_id, whole))
        return Count(min(found, limit), found <= limit)

    async def history(
        self, tx: Tx, project_id: str, subscriber_id: str, query: PageQuery
    ) -> tuple[list[Moment], str | None]:
        """Everything is on the first page."""
        messages = await self.page(tx, project_id, MessageQuery(subscriber_id=subscriber_id))
        events: list[Event] = await self._events.history(tx, project_id, subscriber_id, None, 100)
        found = [Moment(each.created_at_ms, message=each) for each in messages]
        found += [Moment(each.occurred_at_ms, event=each) for each in events]
        return sorted(found, key=lambda moment: moment.at_ms, reverse=True), None

    async def button_pressed(self, ctx: InboundContext) -> None:
        update = ctx.update
        assert isinstance(update, ButtonPressed)
        message = await self.find_by_ref(
            ctx.tx, ctx.channel, update.chat_id, update.user.user_id, update.message_ref
        )
        buttons = [each for row in message.content.buttons for each in row] if message else []
        pressed = next((each for each in buttons if each.data == update.data), None)
        if message is None or pressed is None:
            await ctx.answer_button(ctx._("This button no longer works."))
            return
        await ctx.answer_button()
        await self._events.emit(
            ctx.tx,
            message.project_id,
            "button.clicked",
            {"message_id": message.message_id, "data": update.data, "text": pressed.text},
            subscriber=await self._subscribers.get(
                ctx.tx, message.project_id, message.subscriber_id
            ),
        )


class FakeMessageChanges(MessageChanges):
    """Edits of the messages in `by_id`; sent ones are edited or deleted at once."""

    def __init__(
        self,
        by_id: dict[str, Message],
        *,
        clock: Clock | None = None,
        jobs: JobQueue | None = None,
        channels: Channels | None = None,
        events: Events | None = None,
    ) -> None:
        clock = clock or FakeClock()
        super().__init__(
            clock=clock,
            jobs=jobs or FakeJobQueue(clock),
            metrics=fake_metrics(),
            channels=channels or FakeChannels(clock=clock),
            batches=BatchCounts(clock=clock, events=events or FakeEvents(clock=clock)),
            limits=LIMITS,
        )
        self._by_id = by_id

    async def edit(self, tx: Tx, project_id: str, message_id: str, body: EditBody) -> Message:
        message = _found(self._by_id, project_id, message_id)
        content = body.changed(message.content)
        if content == message.content:
            return message
        channel = await self._channels.find(message.bot)
        if channel is None:
            raise Conflict("the bot of this message is gone")
        self._limits.check_content(channel, content)
        if message.deleted_at_ms is not None or message.status not in {"queued", "sent"}:
            raise Conflict("it is {status}", status=message.status)
        if message.status == "sent" and not channel.capabilities.edit:
            raise Conflict("this channel can't edit messages that were sent")
        self._by_id[message_id] = replace(
            message, content=content, edited_at_ms=self._clock.now_ms()
        )
        return self._by_id[message_id]

    async def delete(self, tx: Tx, project_id: str, message_id: str) -> Message:
        message = _found(self._by_id, project_id, message_id)
        if message.deleted_at_ms is not None or await self.skip(tx, message):
            return self._by_id[message_id]
        if message.status != "sent":
            raise Conflict("it is {status}", status=message.status)
        self._by_id[message_id] = replace(message, deleted_at_ms=self._clock.now_ms())
        return self._by_id[message_id]

    async def skip(self, tx: Tx, message: Message) -> bool:
        if self._by_id[message.message_id].status != "queued":
            return False
        now_ms = self._clock.now_ms()
        self._by_id[message.message_id] = replace(
            message, status="skipped", error="deleted", finished_at_ms=now_ms, deleted_at_ms=now_ms
        )
        return True

    async def blank(self, tx: Tx, project_id: str, message_ids: Sequence[str]) -> int:
        for message_id in message_ids:
            message = self._by_id.get(message_id)
            if message is not None and message.project_id == project_id:
                await self.skip(tx, message)
                now = self._by_id[message_id]
                if now.status != "sending":
                    blank = replace(now, content=OutgoingMessage(""), metadata=None, error=None)
                    self._by_id[message_id] = blank
        now_there = [self._by_id[each] for each in message_ids if each in self._by_id]
        return sum(message.status == "sending" for message in now_there)

    async def of_mailing(
        self, tx: Tx, project_id: str, job_id: str, after: str, most: int
    ) -> list[str]:
        found = [
            message.message_id
            for message in self._by_id.values()
            if (message.project_id, message.job_id) == (project_id, job_id)
        ]
        return sorted(each for each in found if each > after)[:most]


def _found(by_id: dict[str, Message], project_id: str, message_id: str) -> Message:
    message = by_id.get(message_id)
    if message is None or message.project_id != project_id:
        raise NotFound("there is no message {message_id!r}", message_id=message_id)
    return message
