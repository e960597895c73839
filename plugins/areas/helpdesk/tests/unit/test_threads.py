"""What becomes of a thread that was opened for a ticket, built from fakes."""

from typing import Any

import pytest

from msgsvc_core.channels import OutgoingMessage
from msgsvc_core.channels.outbox import EXPIRED, SENT
from msgsvc_core.jobs import NewJob
from msgsvc_devkit.fakes import PROJECT, FakeJobContext, claimed
from msgsvc_helpdesk.threads import JOB, OpenedThreads

from .desk_of_fakes import new_core


@pytest.mark.parametrize(
    ("outcome", "thread", "bound", "said"),
    [
        (SENT, "t1", ["t1"], [("t1", "Thank you")]),
        (SENT, None, [], [(None, "Thank you")]),
        ("invalid_message", None, [], [(None, "Thank you")]),
        (EXPIRED, None, [], []),
    ],
)
async def test_a_thread_is_bound_to_its_ticket_and_the_bot_speaks_in_it(
    outcome: str, thread: str | None, bound: list[str], said: list[tuple[str | None, str]]
) -> None:
    core = new_core()
    core.db.replies = {"UPDATE helpdesk_threads": 1, "DELETE FROM helpdesk_threads": 1}
    ctx, payload = FakeJobContext(core.db), dict[str, Any](project_id=PROJECT, ticket_id="tkt_1")
    payload |= {"bot": "messenger_a", "chat_id": "chat 1", "lang": "en"}
    payload |= {"sealed": [core.outbox.seal(OutgoingMessage("Thank you"))]}
    job = claimed(NewJob(JOB, {**payload, "outcome": outcome, "message_ref": thread}))

    await OpenedThreads(outbox=core.outbox).run(ctx, [job])

    rows = core.db.params_of("UPDATE helpdesk_threads")
    sent = [one.message for one in core.outbox.sent]
    assert [row["thread"] for row in rows] == bound
    assert [(message.thread, message.text) for message in sent] == said
    assert ctx.completed == [job]
