"""Sends agents' replies to the customers of tickets."""

from dataclasses import replace

from msgsvc_core.api.validation import validate
from msgsvc_core.channels.buttons.fallbacks import close_question
from msgsvc_core.config.settings import Settings
from msgsvc_core.content.outgoing import Format, OutgoingMessage
from msgsvc_core.db import Tx
from msgsvc_core.files.service import Files
from msgsvc_core.kernel.errors import Conflict
from msgsvc_core.messages.bodies import SendBody
from msgsvc_core.messages.service import Messages
from msgsvc_core.subscribers.service import Subscribers
from msgsvc_helpdesk import thread_store
from msgsvc_helpdesk.correspondence import Correspondence
from msgsvc_helpdesk.models import AgentReply, Ticket


class ReplySender:
    """Sends replies through the core, to customers with a messenger."""

    def __init__(
        self,
        *,
        config: Settings,
        subscribers: Subscribers,
        files: Files,
        messages: Messages,
        correspondence: Correspondence,
    ) -> None:
        self._default_lang = config.default_lang
        self._subscribers = subscribers
        self._files = files
        self._messages = messages
        self._correspondence = correspondence

    async def lang_of(self, tx: Tx, ticket: Ticket) -> str:
        """The language that a ticket's customer reads; the service's where it is not known."""
        key = (ticket.project_id, ticket.subscriber_id or "")
        customer = (await self._subscribers.get_many(tx, [key])).get(key)
        return self._default_lang if customer is None else customer.lang

    def check_text(self, text: str, text_format: Format) -> None:
        """Raises `ValidationFailed` for a text that is longer than a message may be."""
        self._messages.check_size(OutgoingMessage(text, format=text_format))

    async def send(self, tx: Tx, ticket: Ticket, reply: AgentReply, *, by_person: bool) -> str:
        """Queues an answer to the subscriber; returns the id of the core's message. `by_person` is set for
        the words of a member; a program may answer by the API.

        Raises `Conflict` for a customer who cannot be reached and for a file that is not here yet, and what
        `POST /v1/send` raises for a message that cannot be sent.
        """
        assert ticket.subscriber_id is not None
        key = (ticket.project_id, ticket.subscriber_id)
        customer = (await self._subscribers.get_many(tx, [key])).get(key)
        if customer is None or customer.status != "active":
            what = "gone" if customer is None else customer.status
            raise Conflict("the customer can't be reached: they are {status}", status=what)
        content = reply.content
        if reply.file_id is not None:
            file = await self._files.get(tx, ticket.project_id, reply.file_id)
            if not file.is_ready:
                raise Conflict("the file is {status}", field="file_id", status=file.status)
            content = replace(content, media=self._files.media(file))
        # Where people answer in words, a number is from now on said to the agent.
        await close_question(tx, customer.bot, customer.chat_id)
        thread = await thread_store.find_of(
            tx, ticket.project_id, ticket.ticket_id, customer.bot, customer.chat_id
        )
        message = await self._messages.queue(
            tx,
            ticket.project_id,
            validate(SendBody, {"subscriber_id": ticket.subscriber_id, **content.to_payload()}),
            thread=thread,
            in_reply_to=await self._correspondence.reply_target(
                tx, ticket, customer.bot, customer.chat_id
            ),
            by_person=by_person,
        )
        return message.message_id
