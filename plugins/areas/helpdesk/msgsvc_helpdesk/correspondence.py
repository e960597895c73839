"""What a ticket's next message replies to, where messages have subjects, as emails do."""

from msgsvc_core.channels.registry import Channels
from msgsvc_core.content.outgoing import ReplyTarget
from msgsvc_core.db import Tx
from msgsvc_core.messages.service import Messages
from msgsvc_helpdesk import entry_store
from msgsvc_helpdesk.models import Entry, Ticket

#: Messages that a message names as those before it.
MAX_REFS = 20


class Correspondence:
    """Finds what a message to a ticket's customer replies to."""

    def __init__(self, *, channels: Channels, messages: Messages) -> None:
        self._channels = channels
        self._messages = messages

    async def reply_target(
        self, tx: Tx, ticket: Ticket, bot: str, chat_id: str
    ) -> ReplyTarget | None:
        """The ticket's subject, and its messages in that chat, both the customer's and the project's; None on
        a channel without subjects."""
        channel = await self._channels.find(bot)
        if channel is None or not channel.capabilities.subjects:
            return None
        entries = await entry_store.list_page(
            tx, ticket.project_id, ticket.ticket_id, None, MAX_REFS
        )
        ours = [entry.message_id for entry in entries if entry.message_id is not None]
        sent = await self._messages.get_many(tx, ticket.project_id, ours)

        def ref_of(entry: Entry) -> str | None:
            if entry.message_id is None:
                return entry.message_ref if (entry.bot, entry.chat_id) == (bot, chat_id) else None
            message = sent.get(entry.message_id)
            return message.message_ref if message and message.bot == bot else None

        # What the customer wrote last is what is answered, wherever the project has written since.
        entries = sorted(entries, key=lambda entry: (entry.author == "customer", entry.entry_id))
        refs = tuple(ref for ref in map(ref_of, entries) if ref is not None)
        return ReplyTarget(ticket.subject, refs)
