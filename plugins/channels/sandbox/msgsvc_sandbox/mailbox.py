"""Bots' messages in people's chats."""

from msgsvc_core.channels import DeliveryError, OutgoingMessage, Reason
from msgsvc_core.content.markup import safe_href
from msgsvc_core.db import Database, Tx
from msgsvc_core.kernel.clock import Clock
from msgsvc_sandbox import store
from msgsvc_sandbox.formatting import to_spans
from msgsvc_sandbox.models import MAX_TEXT_CHARS, Button, Chat, Media, Message, MessageBody
from msgsvc_sandbox.wakeups import Wakeups


class Mailbox:
    """Writes bots' messages. A chat's id is the person's: one person has one chat with each bot."""

    def __init__(self, db: Database, clock: Clock, wakeups: Wakeups) -> None:
        self._db = db
        self._clock = clock
        self._wakeups = wakeups

    async def add(self, channel: str, chat_id: str, outgoing: OutgoingMessage) -> str:
        """Shows a message; returns its `ref`. One that was sent with this key before is not shown again.
        Raises `DeliveryError` as a platform would."""
        body = _read(outgoing)
        async with self._db.transaction() as tx:
            # From here on, nobody else writes to this person.
            revision = await self._raise(tx, channel, chat_id)
            if outgoing.key:
                shown = await store.ref_of_key(tx, chat_id, channel, outgoing.key)
                if shown is not None:
                    return shown
            message = Message(
                **dict(body),
                ref=str(revision),
                channel=channel,
                author="bot",
                sent_at_ms=self._clock.now_ms(),
                revision=revision,
            )
            await store.add_message(tx, chat_id, message, outgoing.key or None)
            await store.count_unread(tx, chat_id, channel)
        return message.ref

    async def replace(self, channel: str, chat_id: str, ref: str, new: OutgoingMessage) -> None:
        """Edits a message. A deleted one is `invalid_message`."""
        body = _read(new)
        async with self._db.transaction() as tx:
            revision = await self._raise(tx, channel, chat_id)
            message = await store.message(tx, chat_id, channel, ref)
            if message is None or message.author != "bot":
                raise DeliveryError(Reason.INVALID_MESSAGE, "there is no such message to edit")
            changes = {**dict(body), "revision": revision, "edited_at_ms": self._clock.now_ms()}
            # Platforms keep a message's media when an edit brings none.
            changes["media"] = body.media or message.media
            await store.change_message(tx, chat_id, message.model_copy(update=changes))

    async def remove(self, channel: str, chat_id: str, ref: str) -> None:
        """Deletes a message; deleting it again is not an error."""
        async with self._db.transaction() as tx:
            revision = await self._raise(tx, channel, chat_id)
            message = await store.message(tx, chat_id, channel, ref)
            if message is not None:
                gone = {**dict(MessageBody()), "deleted": True, "revision": revision}
                await store.change_message(tx, chat_id, message.model_copy(update=gone))

    async def answer(self, channel: str, button_ref: str, text: str | None) -> None:
        """Ends the waiting state of a pressed button, and shows `text` for a moment."""
        person_id = button_ref.partition(":")[0]
        async with self._db.transaction() as tx:
            revision = await self._raise(tx, channel, person_id)
            await store.change_chat(
                tx, person_id, channel, notice=text or "", notice_revision=revision
            )

    async def _raise(self, tx: Tx, channel: str, person_id: str) -> int:
        """A revision for a change in a chat where the bot may write."""
        revision = await store.raise_revision(tx, person_id)
        if revision is None:
            raise DeliveryError(Reason.CHAT_NOT_FOUND, "there is no such person")
        _check_open(await store.chat(tx, person_id, channel))
        tx.on_commit(lambda: self._wakeups.ring(person_id))
        return revision


def _check_open(chat: Chat | None) -> None:
    if chat is None:
        raise DeliveryError(Reason.CHAT_NOT_FOUND, "the person has not started this bot")
    if chat.blocked:
        raise DeliveryError(Reason.USER_BLOCKED_BOT, "the person has blocked this bot")


def _read(outgoing: OutgoingMessage) -> MessageBody:
    """The message as it is stored; raises `DeliveryError` for what a platform would refuse."""
    body = MessageBody(
        spans=to_spans(outgoing.text, outgoing.format),
        media=_media(outgoing),
        buttons=[
            [Button(text=button.text, url=button.url, data=button.data) for button in row]
            for row in outgoing.buttons
        ],
        silent=outgoing.silent,
    )
    if len(body.text) > MAX_TEXT_CHARS:
        raise DeliveryError(Reason.INVALID_MESSAGE, f"longer than {MAX_TEXT_CHARS} characters")
    if not body.text.strip() and body.media is None:
        raise DeliveryError(Reason.INVALID_MESSAGE, "there is neither text nor media")
    for button in (button for row in body.buttons for button in row):
        if button.url is not None and safe_href(button.url) is None:
            raise DeliveryError(
                Reason.INVALID_MESSAGE, f"button {button.text!r}: not a web address"
            )
    return body


def _media(outgoing: OutgoingMessage) -> Media | None:
    media = outgoing.media
    if media is None:
        return None
    if safe_href(media.url) is None:
        raise DeliveryError(Reason.INVALID_MESSAGE, "the media's address is not a web address")
    return Media(type=media.type, url=media.url, filename=media.filename)
