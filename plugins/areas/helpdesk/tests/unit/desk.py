"""A helpdesk on a database in memory: Ann's tickets, and the members who answer her."""

import io
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from msgsvc_core.billing import Charge
from msgsvc_core.channels import (
    ButtonPressed,
    ChannelUser,
    InboundContext,
    MessageEdited,
    MessageReceived,
    ReceivedFile,
)
from msgsvc_core.db import Tx
from msgsvc_core.files import StoredFile
from msgsvc_core.kernel.errors import BillingBlocked
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.members import Member
from msgsvc_core.members import store as member_store
from msgsvc_core.members.models import Role
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_devkit import BotCall, MemoryCore, memory_core
from msgsvc_devkit.core import PROJECT
from msgsvc_helpdesk import entry_store, store
from msgsvc_helpdesk.models import Entry, Ticket, TicketQuery
from msgsvc_helpdesk.service import Tickets

#: Ann asked something, and nobody has her ticket.
TICKET = Ticket(
    project_id=PROJECT,
    ticket_id="tkt_1",
    number=1,
    channel="messenger_a",
    subscriber_id="sub_1",
    customer_name="Ann",
    customer_email="",
    subject="Where is it?",
    status="open",
    priority="normal",
    assignee_id=None,
    source="message",
    source_id=None,
    created_at_ms=0,
    updated_at_ms=0,
    last_message_at_ms=0,
    waiting_since_ms=0,
)

ANN, MIA_USER = ChannelUser("1", "Ann"), ChannelUser("mia", "Mia")
PHOTO = ReceivedFile("image", "file-1", "a.png", "image/png", 72)


def wrote(text: str = "Help", user: ChannelUser = ANN, **fields: Any) -> MessageReceived:
    """A message in the chat of Ann, or of another user."""
    given = {"update_id": "1", "chat_id": f"chat {user.user_id}", "message_ref": "m9", **fields}
    return MessageReceived(text=text, user=user, **given)


class Billing:
    """A billing plugin that records charges, and refuses those of operations in `refused`."""

    def __init__(self) -> None:
        self.charges: list[Charge] = []
        self.refused: set[str] = set()

    @hookimpl
    async def charge(self, charge: Charge) -> None:
        if charge.operation in self.refused:
            raise BillingBlocked("there are no credits left")
        self.charges.append(charge)


@asynccontextmanager
async def helpdesk(*plugins: object, **settings: Any) -> AsyncIterator[MemoryCore]:
    """A core with the plugin, whose settings these are, other plugins, and Ann as `sub_1`."""
    extra = [(f"extra {number}", plugin) for number, plugin in enumerate(plugins)]
    async with memory_core(plugins=["helpdesk"], extra_plugins=extra, helpdesk=settings) as core:
        async with core.db.transaction() as tx:
            await core.person(tx, "sub_1", first_name="Ann")
        yield core


async def add_ticket(core: MemoryCore, tx: Tx, **fields: Any) -> Ticket:
    """A ticket of Ann's, who waits for an answer and whom nobody has been told of."""
    now_ms = core.clock.now_ms()
    times = ("created_at_ms", "updated_at_ms", "last_message_at_ms", "waiting_since_ms")
    status = fields.get("status", "open")
    given: dict[str, Any] = dict.fromkeys(times, now_ms)
    if status == "closed":
        given |= {"closed_at_ms": now_ms, "waiting_since_ms": None}
    number = await store.next_number(tx, PROJECT)
    ticket = replace(TICKET, ticket_id=new_id("tkt"), number=number, **{**given, **fields})
    await store.insert(tx, ticket)
    return ticket


async def add_virtual(core: MemoryCore, tx: Tx, **fields: Any) -> Ticket:
    """A ticket of somebody without a messenger."""
    nobody = {"channel": "virtual", "subscriber_id": None, "customer_name": "Bob"}
    return await add_ticket(core, tx, **{**nobody, **fields})


async def add_entry(core: MemoryCore, tx: Tx, ticket: Ticket, **fields: Any) -> Entry:
    """What Ann wrote in a ticket, as the message `m1` of her chat."""
    given: dict[str, Any] = {
        "project_id": PROJECT,
        "entry_id": new_id("tmg"),
        "ticket_id": ticket.ticket_id,
        "author": "customer",
        "member_id": None,
        "internal": False,
        "text": "Where is it?",
        "format": "plain",
        "media": None,
        "message_id": None,
        "bot": "messenger_a",
        "chat_id": "chat 1",
        "message_ref": "m1",
        "created_at_ms": core.clock.now_ms(),
        **fields,
    }
    entry = Entry(**given)
    await entry_store.insert(tx, entry)
    return entry


async def now(core: MemoryCore, tx: Tx, ticket: Ticket) -> Ticket:
    """What has become of a ticket."""
    found = await store.find(tx, PROJECT, ticket.ticket_id)
    assert found is not None, "it was not removed"
    return found


async def all_tickets(core: MemoryCore, tx: Tx) -> list[Ticket]:
    """Oldest first."""
    found = await core.get(Tickets).page(tx, PROJECT, TicketQuery(limit=100))
    return list(reversed(found))


async def entries_of(core: MemoryCore, tx: Tx, ticket: Ticket) -> list[Entry]:
    """What was said in a ticket, oldest first."""
    found = await core.get(Tickets).entries(tx, PROJECT, ticket.ticket_id, None, 100)
    return list(reversed(found))


async def hire(core: MemoryCore, tx: Tx, name: str = "mia", role: Role = "agent") -> Member:
    """A member who works in a chat of their own, which is `chat mia`. They are not welcomed."""
    person = await core.person(tx, f"sub_{name}", first_name=name.title())
    member = Member(
        project_id=PROJECT,
        member_id=f"mem_{name}",
        name=name.title(),
        email=f"{name}@shop.example",
        role=role,
        status="active",
        created_at_ms=core.clock.now_ms(),
        subscriber_ids=(person.subscriber_id,),
    )
    await member_store.insert(tx, member)
    link = {"subscriber_id": person.subscriber_id, "member_id": member.member_id}
    linked_at_ms = core.clock.now_ms()
    await tx.insert(
        "core_member_subscribers", {"project_id": PROJECT, **link, "linked_at_ms": linked_at_ms}
    )
    return member


async def add_file(core: MemoryCore, tx: Tx) -> StoredFile:
    """A picture that is here."""
    content = io.BytesIO(b"\x89PNG\r\n\x1a\n" + b"\0" * 64)
    return await core.files.add(tx, PROJECT, filename="a.png", content=content)


#: The priorities of rules for messages: replies of agents, comments on ratings, other words of agents, and
#: what customers write.
REPLIES, COMMENTS, WORDS, QUESTIONS = 10, 20, 80, 90


async def handle(core: MemoryCore, ctx: InboundContext, priority: int = QUESTIONS) -> bool | None:
    """What the plugin's rule for an update says; for messages, the one of that priority."""
    [rules] = core.service.plugins.hook.register_inbound()
    update = ctx.update
    kind = "edit" if isinstance(update, MessageEdited) else "message"
    found = [rule for rule in rules if (rule.on, rule.priority) == (kind, priority)]
    if isinstance(update, ButtonPressed):
        buttons = [rule for rule in rules if rule.on == "button"]
        found = [rule for rule in buttons if update.data.startswith(f"~{rule.prefix}")]
    [rule] = found
    answer: bool | None = await rule.handler(ctx)
    return answer


async def notices(core: MemoryCore, tx: Tx) -> list[str | None]:
    """What presses of buttons were answered with."""
    calls = await core.calls(tx)
    return [call.payload["text"] for call in calls if call.call == "answer_button"]


async def calls_to(core: MemoryCore, tx: Tx, name: str, *kinds: str) -> Sequence[BotCall]:
    """The calls, of these kinds if any are named, of bots in the chat of `mia` or another."""
    calls = await core.calls(tx)
    return [
        call
        for call in calls
        if call.chat_id == f"chat {name}" and (not kinds or call.call in kinds)
    ]


async def said_to(core: MemoryCore, tx: Tx, name: str) -> list[str]:
    """What the bot has sent to a chat."""
    sent = await calls_to(core, tx, name, "send")
    return [call.message.text for call in sent if call.message is not None]
