"""The messenger for people: their actions, and what they see."""

import asyncio
import time
from contextlib import suppress
from typing import IO, TypedDict

from msgsvc_core.channels import (
    Blocked,
    ButtonPressed,
    Channels,
    ChannelUser,
    MessageEdited,
    MessageReceived,
    Started,
    Unblocked,
    Update,
)
from msgsvc_core.config.sections import MediaSettings
from msgsvc_core.db import Database, Tx
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import Conflict, NotFound, ValidationFailed
from msgsvc_core.kernel.i18n import Texts
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.security import SecretBox
from msgsvc_sandbox import files, store
from msgsvc_sandbox.channel import SandboxChannel
from msgsvc_sandbox.faults import Faults
from msgsvc_sandbox.formatting import to_spans
from msgsvc_sandbox.links import read_start_link, valid_payload
from msgsvc_sandbox.mini_app import sign
from msgsvc_sandbox.models import (
    Bot,
    Fault,
    Media,
    Message,
    NewPerson,
    Opened,
    OpenedMiniApp,
    OpenLink,
    Person,
    PersonChange,
    PersonState,
)
from msgsvc_sandbox.wakeups import Wakeups

#: Messages of each chat that a page gets when it opens.
PER_CHAT = 50

#: Changed messages per response; a page polls again immediately for the rest.
PER_ANSWER = 200

#: Seconds after which a waiting page polls the database, for changes by other processes.
LOOK_EVERY_S = 1.0


class Messenger:
    """People and their actions. Each action is stored first, then passed to the core as an update."""

    def __init__(
        self,
        *,
        clock: Clock,
        db: Database,
        secrets: SecretBox,
        texts: Texts,
        media: MediaSettings,
        channels: Channels,
        faults: Faults,
        wakeups: Wakeups,
    ) -> None:
        self._clock = clock
        self._db = db
        self._secrets = secrets
        self._texts = texts
        self._media = media
        self._channels = channels
        self._faults = faults
        self._wakeups = wakeups
        self._closing = False

    def close(self) -> None:
        """Lets nobody wait any longer: the database is about to go."""
        self._closing = True
        self._wakeups.ring_all()

    # ---- people and bots

    async def people(self) -> list[Person]:
        """Everybody, the first to arrive first."""
        async with self._db.read() as tx:
            return await store.people(tx)

    async def person(self, person_id: str) -> Person:
        """Raises `NotFound`."""
        async with self._db.read() as tx:
            return await _existing(tx, person_id)

    async def add_person(self, new: NewPerson) -> Person:
        person_id = new_id("per")
        async with self._db.transaction() as tx:
            await store.add_person(tx, person_id, new, self._clock.now_ms())
            return await _existing(tx, person_id)

    async def change_person(self, person_id: str, change: PersonChange) -> Person:
        """The core learns of it with the next update, as on real platforms."""
        async with self._db.transaction() as tx:
            await self._raise(tx, person_id)
            await store.change_person(tx, person_id, change)
            return await _existing(tx, person_id)

    async def delete_person(self, person_id: str) -> None:
        """Deletes the account; bots that write to it get `chat_not_found`."""
        async with self._db.transaction() as tx:
            if not await store.delete_person(tx, person_id):
                raise NotFound("there is no such person")
            tx.on_commit(lambda: self._wakeups.ring(person_id))

    async def bots(self) -> list[Bot]:
        """The channels of this kind, in the order of the configuration."""
        return [
            Bot(
                channel=channel.key,
                title=channel.title,
                fault=await self._faults.get(channel.key),
            )
            for channel in self._channels
            if isinstance(channel, SandboxChannel)
        ]

    def commands(self, lang: str) -> list[tuple[str, str]]:
        """What bots here understand, as `/stop`, and what it is for, in a language."""
        _ = self._texts.into(lang, __name__)
        return [(f"/{command.name}", command.about(_)) for command in self._channels.commands]

    async def fault(self, channel: str) -> Fault:
        self._check_bot(channel)
        return await self._faults.get(channel)

    async def set_fault(self, channel: str, fault: Fault) -> Fault:
        """Makes a channel fail or be slow; a default `Fault` heals it."""
        self._check_bot(channel)
        await self._faults.set(channel, fault)
        bot = self._channels[channel]
        health = await bot.check()
        if health.ok:
            # A bot that is unbanned here resumes without waiting for its next check.
            await self._channels.apply_health(bot, health, asked_at_ms=self._clock.now_ms())
        return await self._faults.get(channel)

    # ---- what a person sees

    async def state(self, person_id: str, since: int = 0, wait_s: float = 0) -> PersonState:
        """What changed since a revision (0: what a page opens with); waits for a change if none."""
        until = time.monotonic() + wait_s
        while True:
            with self._wakeups.expect(person_id) as changed:
                async with self._db.read() as tx:
                    revision = await store.revision(tx, person_id)
                left = until - time.monotonic()
                if revision != since or left <= 0 or self._closing:
                    return await self._state(person_id, since)
                with suppress(TimeoutError):
                    async with asyncio.timeout(min(left, LOOK_EVERY_S)):
                        await changed.wait()

    async def earlier(
        self, person_id: str, channel: str, before: int, limit: int = PER_CHAT
    ) -> list[Message]:
        """Messages of a chat before a position, the newest of them first."""
        async with self._db.read() as tx:
            return await store.earlier_messages(tx, person_id, channel, before, limit)

    async def mark_read(self, person_id: str, channel: str) -> None:
        async with self._db.transaction() as tx:
            chat = await store.chat(tx, person_id, channel)
            if chat is not None and chat.unread:
                await self._raise(tx, person_id)
                await store.change_chat(tx, person_id, channel, unread=0)

    # ---- what a person does

    async def open(self, person_id: str, link: OpenLink) -> Opened:
        """Opens a start link and presses Start.

        Raises `ValidationFailed` for an address that is no start link of this messenger, and
        `NotFound` for a bot that it does not have.
        """
        if (link.link is None) == (link.channel is None):
            raise ValidationFailed("give exactly one of link and channel")
        channel, payload = link.channel, link.payload
        if link.link is not None:
            start = read_start_link(link.link)
            if start is None:
                raise ValidationFailed(
                    "this is not a start link of the sandbox messenger", field="link"
                )
            channel, payload = start.channel, start.payload
        assert channel is not None
        await self._start(person_id, channel, payload)
        return Opened(channel=channel)

    async def open_mini_app(self, person_id: str, channel: str, payload: str = "") -> OpenedMiniApp:
        """Opens a bot's mini app. Raises `NotFound`."""
        self._check_bot(channel)
        now_ms = self._clock.now_ms()
        person = await self.person(person_id)
        return OpenedMiniApp(init_data=sign(self._secrets, channel, person, payload, now_ms))

    async def send_text(
        self, person_id: str, channel: str, text: str, reply_to: str | None = None
    ) -> Message:
        """Raises `Conflict` when the person has not started the bot, or blocks it, and `NotFound` for
        an answer to a message that is not there."""
        async with self._db.transaction() as tx:
            person = await self._writing(tx, person_id, channel)
            if reply_to and not await store.message(tx, person_id, channel, reply_to):
                raise NotFound("there is no such message to answer")
            message = await self._add(tx, person, channel, text, "text", reply_to=reply_to)
        await self._deliver(
            channel,
            MessageReceived(
                **_who(person, message.revision),
                text=text,
                message_ref=message.ref,
                reply_to=reply_to,
            ),
        )
        return message

    async def send_file(
        self, person_id: str, channel: str, filename: str, content: IO[bytes], text: str = ""
    ) -> Message:
        """Sends what can be read from `content`. Raises what `send_text` does, and `ValidationFailed`
        for a file that messengers don't take."""
        async with self._db.transaction() as tx:
            person = await self._writing(tx, person_id, channel)
            kind, file = await files.attach(tx, self._media, person_id, channel, filename, content)
            media = Media(type=kind, filename=file.filename, file_id=file.file_id)
            message = await self._add(tx, person, channel, text, "text", media=media)
        await self._deliver(
            channel,
            MessageReceived(
                **_who(person, message.revision),
                text=text,
                files=(files.received(kind, file),),
                message_ref=message.ref,
            ),
        )
        return message

    async def edit_text(self, person_id: str, channel: str, ref: str, text: str) -> Message:
        """Changes what the person wrote. Raises `NotFound` for what is not theirs to change."""
        async with self._db.transaction() as tx:
            person = await self._writing(tx, person_id, channel)
            message = await store.message(tx, person_id, channel, ref)
            if message is None or message.author != "person" or message.kind != "text":
                raise NotFound("there is no such message of this person")
            changes = {
                "spans": to_spans(text, "plain"),
                "edited_at_ms": self._clock.now_ms(),
                "revision": await self._raise(tx, person_id),
            }
            message = message.model_copy(update=changes)
            await store.change_message(tx, person_id, message)
        await self._deliver(
            channel,
            MessageEdited(**_who(person, message.revision), message_ref=ref, text=text),
        )
        return message

    async def file(self, person_id: str, file_id: str) -> files.AttachedFile:
        """Raises `NotFound`."""
        return await files.get(self._db, person_id, file_id)

    async def press(self, person_id: str, channel: str, ref: str, row: int, column: int) -> None:
        """Presses a button that carries data. Raises `NotFound` if it is not there (any more)."""
        async with self._db.transaction() as tx:
            person = await self._writing(tx, person_id, channel)
            message = await store.message(tx, person_id, channel, ref)
            rows = message.buttons if message else []
            if row >= len(rows) or column >= len(rows[row]):
                raise NotFound("there is no such button")
            button = rows[row][column]
            if button.data is None:
                raise ValidationFailed("this button opens a page; the bot is not told")
            revision = await self._raise(tx, person_id)
        update = ButtonPressed(
            **_who(person, revision),
            data=button.data,
            message_ref=ref,
            button_ref=f"{person_id}:{revision}",
            text=button.text,
        )
        await self._deliver(channel, update)

    async def set_blocked(self, person_id: str, channel: str, blocked: bool) -> None:
        """Blocks or unblocks a bot that the person has started."""
        async with self._db.transaction() as tx:
            person = await _existing(tx, person_id)
            chat = await store.chat(tx, person_id, channel)
            if chat is None:
                raise Conflict("the person has not started this bot")
            if chat.blocked == blocked:
                return
            revision = await self._raise(tx, person_id)
            await store.change_chat(tx, person_id, channel, blocked=int(blocked))
        kind = Blocked if blocked else Unblocked
        await self._deliver(channel, kind(**_who(person, revision)))

    async def _start(self, person_id: str, channel: str, payload: str) -> None:
        self._check_bot(channel)
        if not valid_payload(payload):
            raise ValidationFailed("at most 64 of A-Z a-z 0-9 _ and -", field="payload")
        async with self._db.transaction() as tx:
            person = await _existing(tx, person_id)
            # The person before the chat, as everybody else locks them.
            revision = await self._raise(tx, person_id)
            await store.open_chat(tx, person_id, channel)
            message = await self._add_at(tx, revision, person, channel, payload, "start")
        await self._deliver(channel, Started(**_who(person, message.revision), payload=payload))

    async def _add(
        self, tx: Tx, person: Person, channel: str, text: str, kind: str, **content: object
    ) -> Message:
        revision = await self._raise(tx, person.person_id)
        return await self._add_at(tx, revision, person, channel, text, kind, **content)

    async def _add_at(
        self,
        tx: Tx,
        revision: int,
        person: Person,
        channel: str,
        text: str,
        kind: str,
        **content: object,
    ) -> Message:
        message = Message.model_validate(
            {
                "ref": str(revision),
                "channel": channel,
                "author": "person",
                "kind": kind,
                "spans": to_spans(text, "plain"),
                "sent_at_ms": self._clock.now_ms(),
                "revision": revision,
                **content,
            }
        )
        await store.add_message(tx, person.person_id, message)
        return message

    async def _writing(self, tx: Tx, person_id: str, channel: str) -> Person:
        """The person, if they may write to the bot."""
        person = await _existing(tx, person_id)
        chat = await store.chat(tx, person_id, channel)
        if chat is None:
            raise Conflict("the person has not started this bot")
        if chat.blocked:
            raise Conflict("the person has blocked this bot")
        return person

    async def _raise(self, tx: Tx, person_id: str) -> int:
        revision = await store.raise_revision(tx, person_id)
        if revision is None:
            raise NotFound("there is no such person")
        tx.on_commit(lambda: self._wakeups.ring(person_id))
        return revision

    async def _deliver(self, channel: str, update: Update) -> None:
        await self._channels.receive(channel, update)

    async def _state(self, person_id: str, since: int) -> PersonState:
        bots = await self.bots()
        async with self._db.read() as tx:
            person = await _existing(tx, person_id)
            # Read first: what is committed while we read the rest is then only sent twice.
            revision = await store.revision(tx, person_id) or 0
            if since <= 0 or since > revision:
                messages, more = await store.newest_messages(tx, person_id, PER_CHAT), False
            else:
                messages = await store.changed_messages(tx, person_id, since, PER_ANSWER)
                more = len(messages) == PER_ANSWER
            return PersonState(
                revision=messages[-1].revision if more else revision,
                person=person,
                bots=bots,
                chats=await store.chats(tx, person_id),
                messages=messages,
                more=more,
            )

    def _check_bot(self, channel: str) -> None:
        if not isinstance(self._channels.get(channel), SandboxChannel):
            raise NotFound("there is no bot named {channel!r} here", channel=channel)


async def _existing(tx: Tx, person_id: str) -> Person:
    person = await store.person(tx, person_id)
    if person is None:
        raise NotFound("there is no such person")
    return person


class _Who(TypedDict):
    update_id: str
    chat_id: str
    user: ChannelUser


def _who(person: Person, revision: int) -> _Who:
    """The part that all updates share. A revision is never used twice, so neither is the id."""
    user = ChannelUser(person.person_id, person.name, person.username or None, person.lang)
    return _Who(update_id=f"{person.person_id}:{revision}", chat_id=person.person_id, user=user)
