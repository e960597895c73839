"""Inbound messages: a message that nothing else handles is a question to the chat's project."""

import hashlib

from msgsvc_core.channels import (
    InboundContext,
    InboundRule,
    MessageEdited,
    MessageReceived,
    OutgoingMessage,
)
from msgsvc_core.channels.updates import ReceivedFile
from msgsvc_core.files.service import Files
from msgsvc_core.messages.service import Messages
from msgsvc_core.projects.models import Project
from msgsvc_core.projects.service import Projects
from msgsvc_core.subscribers.service import Subscribers
from msgsvc_helpdesk import blocklist_store, entry_store
from msgsvc_helpdesk.customers import texts, threads
from msgsvc_helpdesk.customers.away import AwayMessages
from msgsvc_helpdesk.models import SUBJECT_LENGTH, CustomerMessage
from msgsvc_helpdesk.service import Tickets
from msgsvc_helpdesk.settings import TICKETS_AT_ONCE, HelpdeskSettings

#: After all dialogues: handles what is left.
PRIORITY = 90


class HelpdeskBot:
    """Opens tickets from customers' messages, and applies their edits."""

    def __init__(
        self,
        *,
        projects: Projects,
        subscribers: Subscribers,
        messages: Messages,
        files: Files,
        tickets: Tickets,
        away: AwayMessages,
        settings: HelpdeskSettings,
    ) -> None:
        self._projects = projects
        self._subscribers = subscribers
        self._messages = messages
        self._files = files
        self._tickets = tickets
        self._away = away
        self._settings = settings

    def rules(self) -> list[InboundRule]:
        return [
            InboundRule("message", self._on_message, priority=PRIORITY),
            InboundRule("edit", self._changed, priority=PRIORITY),
        ]

    async def _on_message(self, ctx: InboundContext) -> bool:
        assert isinstance(ctx.update, MessageReceived)
        project_id = await self._project_of(ctx, ctx.update)
        if project_id is None:
            await ctx.reply_by_itself("stranger", texts.stranger(ctx._))
            return True
        project = await self._projects.get(ctx.tx, project_id)
        if project.status != "active":
            return False
        if ctx.update.text.strip() or ctx.update.files:
            await self._receive(ctx, ctx.update, project)
        return True

    async def _project_of(self, ctx: InboundContext, update: MessageReceived) -> str | None:
        """That of the ticket whose thread they write in, or else of the chat."""
        if update.thread is not None:
            known = await self._tickets.find_thread(
                ctx.tx, ctx.channel, update.chat_id, update.thread
            )
            if known is not None and ctx.serves(known.project_id):
                return known.project_id
        return ctx.chat.project_id

    async def _receive(
        self, ctx: InboundContext, update: MessageReceived, project: Project
    ) -> None:
        project_id = project.project_id
        known = await self._subscribers.find_by_user(
            ctx.tx, project_id, ctx.channel_name, update.user.user_id
        )
        if known is not None and known.status != "active":
            await ctx.reply_by_itself("has_left", texts.has_left(ctx._, project.public_name))
            return
        # To write to the bot that is the project's own is to ask for its answer.
        subscriber = await self._subscribers.ensure(
            ctx.tx, project_id, ctx.channel, update.user, update.chat_id, source="helpdesk"
        )
        if await blocklist_store.find(ctx.tx, project_id, subscriber.subscriber_id) is not None:
            return
        files = await self._files.receive(ctx, project_id, subscriber.subscriber_id, update.files)
        heard = CustomerMessage(
            text=update.text.replace("\0", ""),
            file_ids=tuple(file.file_id for file in files),
            files_digest=_digest(update.files),
            bot=ctx.channel,
            chat_id=update.chat_id,
            message_ref=update.message_ref,
            thread=update.thread,
            subject=(update.subject or "").replace("\0", "")[:SUBJECT_LENGTH].strip(),
            refers_to=update.refers_to,
            begins=update.begins,
        )
        ticket, is_new = await self._tickets.receive_customer_message(
            ctx.tx,
            project_id,
            subscriber.subscriber_id,
            heard,
            await self._answered(ctx, update, project_id),
        )
        replies = []
        acknowledges = is_new and self._settings.acknowledge
        if acknowledges and await ctx.may_answer("acknowledged", TICKETS_AT_ONCE):
            replies.append(texts.acknowledged(ctx._, project.public_name, ticket.number))
        away = await self._away.claim(ctx.tx, ticket, ctx.lang)
        if away is not None and await ctx.may_answer("away", TICKETS_AT_ONCE):
            replies.append(OutgoingMessage(away))
        if is_new and update.thread is None and ctx.bot.capabilities.threads:
            await threads.request(ctx, ticket, replies)
            return
        for reply in replies:
            await ctx.reply(reply)

    async def _answered(
        self, ctx: InboundContext, update: MessageReceived, project_id: str
    ) -> str | None:
        """The project's message that the person replies to, if their messenger reports it."""
        if update.reply_to is None:
            return None
        message = await self._messages.find_by_ref(
            ctx.tx, ctx.channel, update.chat_id, update.user.user_id, update.reply_to
        )
        return message.message_id if message and message.project_id == project_id else None

    async def _changed(self, ctx: InboundContext) -> bool:
        """False for a message that is in no ticket, e.g. from before the helpdesk was installed."""
        update = ctx.update
        assert isinstance(update, MessageEdited)
        entry = await entry_store.find_by_ref(
            ctx.tx, ctx.channel, update.chat_id, update.message_ref
        )
        if entry is None:
            return False
        text, digest = update.text.replace("\0", ""), _digest(update.files)
        ticket = await self._tickets.get(ctx.tx, entry.project_id, entry.ticket_id)
        customer = ticket.subscriber_id or ""
        if await blocklist_store.find(ctx.tx, entry.project_id, customer) is not None:
            return True
        files = []
        if digest != entry.files_digest and ticket.subscriber_id is not None:
            files = await self._files.receive(
                ctx, entry.project_id, ticket.subscriber_id, update.files
            )
        if files or text != entry.text:
            await self._tickets.edit_customer_message(
                ctx.tx, entry, text, [file.file_id for file in files], digest
            )
        return True


def _digest(files: tuple[ReceivedFile, ...]) -> str | None:
    """Shows whether an edited message has other files: they are not downloaded again for a new text."""
    if not files:
        return None
    return hashlib.sha256("\n".join(file.file_ref for file in files).encode()).hexdigest()
