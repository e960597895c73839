"""What becomes of a thread that was opened for a ticket."""

from typing import Any

import pytest

from msgsvc_core.channels import OutgoingMessage
from msgsvc_core.channels.system_messages.outbox import EXPIRED, SENT
from msgsvc_core.jobs import NewJob
from msgsvc_devkit import MemoryCore
from msgsvc_devkit.core import PROJECT
from msgsvc_helpdesk import thread_store
from msgsvc_helpdesk.customers.threads import JOB
from msgsvc_helpdesk.thread_store import TicketThread

from .desk import add_ticket


@pytest.mark.parametrize(
    ("outcome", "thread", "said"),
    [
        (SENT, "t1", [("t1", "Thank you")]),
        (SENT, None, [(None, "Thank you")]),
        ("invalid_message", None, [(None, "Thank you")]),
        (EXPIRED, None, []),
    ],
)
async def test_a_thread_is_bound_to_its_ticket_and_the_bot_speaks_in_it(
    core: MemoryCore, outcome: str, thread: str | None, said: list[tuple[str | None, str]]
) -> None:
    async with core.db.transaction() as tx:
        ticket = await add_ticket(core, tx)
        key = {"project_id": PROJECT, "ticket_id": ticket.ticket_id}
        key |= {"bot": "messenger_a", "chat_id": "chat 1"}
        await thread_store.insert(tx, TicketThread(**key, thread=None))
    payload: dict[str, Any] = {**key, "lang": "en", "outcome": outcome, "message_ref": thread}
    payload["sealed"] = [core.outbox.seal(OutgoingMessage("Thank you"))]
    context = await core.run(NewJob(JOB, payload))

    async with core.db.read() as tx:
        sent = [call.message for call in await core.calls(tx) if call.message is not None]
        found = await thread_store.find(tx, "messenger_a", "chat 1", "t1", 0)
    assert [(message.thread, message.text) for message in sent] == said
    # Without a thread, none is waited for any more either.
    assert found == (None if thread is None else TicketThread(**key, thread=thread))
    assert len(context.completed) == 1
