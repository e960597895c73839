"""A helpdesk as its tables hold it, the people in it, and what makes its parts, from fakes."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from msgsvc_core.channels import ChannelUser
from msgsvc_core.members import Member
from msgsvc_core.members.models import Role
from msgsvc_devkit import FakeContext, plugin_context
from msgsvc_devkit.fakes import PROJECT, FakeTx
from msgsvc_devkit.fakes.database import Reply
from msgsvc_helpdesk import plugin
from msgsvc_helpdesk.agents.answering import Answering
from msgsvc_helpdesk.agents.desk import AgentDesk
from msgsvc_helpdesk.agents.models import Note
from msgsvc_helpdesk.agents.notifications import AgentNotifications
from msgsvc_helpdesk.models import Entry, Ticket
from msgsvc_helpdesk.sending import ReplySender
from msgsvc_helpdesk.service import Tickets
from msgsvc_helpdesk.settings import HelpdeskSettings

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
#: The same of somebody without a messenger.
VIRTUAL = replace(TICKET, ticket_id="tkt_2", number=2, channel="virtual", subscriber_id=None)

ENTRY = Entry(
    project_id=PROJECT,
    entry_id="tmg_1",
    ticket_id="tkt_1",
    author="customer",
    member_id=None,
    internal=False,
    text="Where is it?",
    format="plain",
    media=None,
    message_id=None,
    bot="messenger_a",
    chat_id="chat 1",
    message_ref="m1",
    created_at_ms=0,
)
#: What Mia was shown of Ann's ticket.
OFFER = Note(
    project_id=PROJECT,
    note_id="tan_1",
    ticket_id="tkt_1",
    subscriber_id="sub_mia",
    member_id="mem_mia",
    bot="messenger_a",
    chat_id="chat mia",
    message_ref="m5",
    kind="offer",
    shown="fresh",
    created_at_ms=0,
)

ANN, MIA_USER = ChannelUser("1", "Ann"), ChannelUser("mia", "Mia")


def new_core() -> FakeContext:
    """With Ann, a customer, as `sub_1`."""
    core = plugin_context(plugin=plugin)
    core.subscribers.person("sub_1", first_name="Ann")
    return core


def hire(core: FakeContext, name: str = "mia", role: Role = "agent") -> Member:
    """A member who works in a chat of their own."""
    core.subscribers.person(f"sub_{name}", first_name=name.title())
    member = Member(
        project_id=PROJECT,
        member_id=f"mem_{name}",
        name=name.title(),
        email=f"{name}@shop.example",
        role=role,
        status="active",
        created_at_ms=0,
        subscriber_ids=(f"sub_{name}",),
    )
    core.members.by_id[member.member_id] = member
    return member


def tables(
    *tickets: Ticket, others: Mapping[str, Reply] | None = None, entries: tuple[Entry, ...] = ()
) -> dict[str, Reply]:
    """What the tables answer that hold tickets and what was said; `others` come first."""

    def find(params: Mapping[str, Any]) -> list[dict[str, Any]]:
        asked = ("ticket_id", "number", "source", "source_id", "subscriber_id")
        return [
            {**asdict(each), "tags": ",".join(each.tags) or None}
            for each in tickets
            if all(params.get(name) in {None, getattr(each, name)} for name in asked)
        ]

    usual: dict[str, Reply] = {
        "INSERT INTO helpdesk_desks": [{"last_number": 7}],
        "SELECT last_assignee_id": [{"last_assignee_id": None}],
        "SELECT settings FROM helpdesk_desks": [],
        "SELECT sla, hours FROM helpdesk_desks": [],
        "SELECT hours FROM helpdesk_desks": [],
        "INTO helpdesk_sla_days": 1,
        "UPDATE helpdesk_sla_clocks": 0,
        "INTO helpdesk_sla_clocks": 1,
        "FROM helpdesk_sla_clocks": [],
        "SELECT 1 AS held FROM helpdesk_desks": [],
        "FROM helpdesk_agents": [],
        "SELECT assignee_id, COUNT": [],
        "FROM helpdesk_views": [],
        "UPDATE helpdesk_desks": 1,
        "SELECT 1 AS one": [],
        "SELECT ticket_id FROM helpdesk_tickets": [],
        "UPDATE helpdesk_tickets": 1,
        "DELETE FROM helpdesk_ticket": 1,
        "AS tags FROM helpdesk_tickets t": find,
        "DELETE FROM helpdesk_blocklist": 1,
        "INTO helpdesk_blocklist": 1,
        "FROM helpdesk_blocklist": [],
        "INTO helpdesk_entry_edits": 1,
        "DELETE FROM helpdesk_entry_edits": 1,
        "FROM helpdesk_entry_edits": [],
        "SELECT DISTINCT f.file_id": [],
        "JOIN helpdesk_entries e": [],
        "DELETE FROM helpdesk_entry_files": 1,
        "FROM helpdesk_entry_files": [],
        "SELECT ticket_id FROM helpdesk_entries": [],
        "UPDATE helpdesk_entries": 1,
        "DELETE FROM helpdesk_entries": 1,
        "FROM helpdesk_entries": [asdict(each) for each in entries],
        "SELECT 1 AS found FROM helpdesk_agent_messages": [],
        "UPDATE helpdesk_agent_messages": 1,
        "FROM helpdesk_agent_messages": [],
        "INTO helpdesk_agent_chats": 1,
        "UPDATE helpdesk_agent_chats": 1,
        "FROM helpdesk_agent_chats": [],
        "FROM helpdesk_agent_files": [],
        "FROM helpdesk_ratings": [],
        "INTO helpdesk_threads": 1,
        "UPDATE helpdesk_threads": 1,
        "DELETE FROM helpdesk_threads": 1,
        "JOIN helpdesk_threads h": [],
        "FROM helpdesk_threads h": [],
        "FROM core_offers": 0,
    }
    first = dict(others or {})
    return first | {words: usual[words] for words in usual if words not in first}


def tx_of(*tickets: Ticket, **given: Any) -> FakeTx:
    return FakeTx(replies=tables(*tickets, **given))


def notes(*shown: Note) -> dict[str, Reply]:
    """Has agents have been shown these messages."""
    return {"message_ref, kind, shown, created_at_ms FROM": [asdict(each) for each in shown]}


def written(tx: FakeTx) -> dict[str, Any]:
    """What became of tickets: the last value of each column that was written."""
    values: dict[str, Any] = {}
    for params in tx.params_of("UPDATE helpdesk_tickets"):
        values |= params
    return values


def sender(core: FakeContext) -> ReplySender:
    return ReplySender(
        config=core.config,
        subscribers=core.subscribers,
        files=core.files,
        messages=core.messages,
    )


def tickets(core: FakeContext, **settings: Any) -> Tickets:
    return Tickets(
        clock=core.clock,
        events=core.events,
        billing=core.billing,
        members=core.members,
        subscribers=core.subscribers,
        files=core.files,
        sender=sender(core),
        settings=HelpdeskSettings(**settings),
    )


def agent_desk(core: FakeContext) -> AgentDesk:
    return AgentDesk(
        clock=core.clock,
        texts=core.texts,
        channels=core.channels,
        outbox=core.outbox,
        members=core.members,
        subscribers=core.subscribers,
        files=core.files,
        tickets=tickets(core),
    )


def notifications(core: FakeContext) -> AgentNotifications:
    return AgentNotifications(
        jobs=core.jobs, members=core.members, tickets=tickets(core), desk=agent_desk(core)
    )


def answering(core: FakeContext) -> Answering:
    return Answering(
        texts=core.texts,
        members=core.members,
        outbox=core.outbox,
        files=core.files,
        subscribers=core.subscribers,
        tickets=tickets(core),
        desk=agent_desk(core),
    )
