"""Messages that show tickets to agents, and the agent in a chat."""

from typing import Literal

from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.kernel.values import value_object
from msgsvc_core.members import Member
from msgsvc_core.subscribers.models import Subscriber

#: `offer`: an unassigned ticket, to every agent. `card`: a ticket, to its assignee. `word`: a customer's
#: message.
Kind = Literal["offer", "card", "word"]

#: What a message to an agent may look like beside `taken:<member_id>` and `snoozed:<Unix ms>`: as it was
#: sent, said again below, of a ticket that is theirs, closed, or part of another.
FRESH, AGAIN, MINE, CLOSED, MERGED = "fresh", "again", "mine", "closed", "merged"


@value_object
class Note:
    """A message of the bot to an agent about a ticket."""

    project_id: str
    note_id: str
    ticket_id: str
    subscriber_id: str
    member_id: str
    bot: str
    chat_id: str
    message_ref: str | None
    kind: Kind
    shown: str
    created_at_ms: int


@value_object
class Seat:
    """A chat in which an agent works."""

    member: Member
    subscriber: Subscriber

    @property
    def project_id(self) -> str:
        return self.member.project_id


@value_object
class Draft:
    """An agent's text that was not sent yet; `ticket_id` is the ticket open in their chat."""

    text: str
    ticket_id: str | None


@value_object
class AgentMessage:
    """A message and its kind."""

    kind: Kind
    message: OutgoingMessage
