"""A thread of its own for each ticket that a customer opens by writing, where their messenger has threads.

A thread is opened by a job, since that calls the platform: see docs/decisions/0016-telegram.md.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import structlog

from msgsvc_core.channels import InboundContext
from msgsvc_core.channels.system_messages.outbox import EXPIRED, BotOutbox, OnComplete
from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.db import Tx
from msgsvc_core.jobs import Job, JobContext, JobSpec
from msgsvc_helpdesk import thread_store
from msgsvc_helpdesk.models import Ticket
from msgsvc_helpdesk.thread_store import TicketThread

#: Gets the thread that was opened for a ticket.
JOB = "helpdesk.thread_opened"

log = structlog.get_logger(__name__)


async def request(ctx: InboundContext, ticket: Ticket, messages: Sequence[OutgoingMessage]) -> None:
    """Has a thread opened for a new ticket after the commit, and then sends the messages in it; to the chat
    itself where there are no threads."""
    chat_id, outbox = ctx.update.chat_id, ctx.outbox
    opening = TicketThread(
        project_id=ticket.project_id,
        ticket_id=ticket.ticket_id,
        bot=ctx.channel,
        chat_id=chat_id,
        thread=None,
    )
    await thread_store.insert(ctx.tx, opening)
    payload = {
        "project_id": ticket.project_id,
        "ticket_id": ticket.ticket_id,
        "bot": ctx.channel,
        "chat_id": chat_id,
        "lang": ctx.lang,
        "sealed": [outbox.seal(message) for message in messages],
    }
    title = f"#{ticket.number} {ticket.subject}".strip()
    await outbox.open_thread(ctx.tx, ctx.channel, chat_id, title, OnComplete(JOB, payload))


class OpenedThreads:
    """Binds threads that were opened to their tickets."""

    def __init__(self, *, outbox: BotOutbox) -> None:
        self._outbox = outbox

    @property
    def spec(self) -> JobSpec:
        return JobSpec(JOB, self.run)

    async def run(self, ctx: JobContext, jobs: Sequence[Job]) -> None:
        """Each in a transaction with the end of its job."""
        for job in jobs:
            payload = job.payload
            thread, bot, chat_id = payload["message_ref"], payload["bot"], payload["chat_id"]
            async with ctx.completing(job) as tx:
                await self._bind(tx, payload, thread)
                if payload["outcome"] == EXPIRED:
                    # An hour later nobody waits for a confirmation.
                    continue
                for sealed in payload["sealed"]:
                    message = self._outbox.unseal(sealed).in_thread(thread)
                    await self._outbox.send(tx, bot, chat_id, message, lang=payload["lang"])

    async def _bind(self, tx: Tx, payload: Mapping[str, Any], thread: str | None) -> None:
        project_id, ticket_id = payload["project_id"], payload["ticket_id"]
        if thread is not None:
            opened = TicketThread(
                project_id=project_id,
                ticket_id=ticket_id,
                bot=payload["bot"],
                chat_id=payload["chat_id"],
                thread=thread,
            )
            if await thread_store.bind(tx, opened):
                return
            log.info("ticket_thread_unbound", project_id=project_id, ticket_id=ticket_id)
        await thread_store.stop_waiting(tx, project_id, ticket_id)
