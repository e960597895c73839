"""Tickets, their messages and actors: domain types and request bodies."""

import re
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from msgsvc_core.api import examples
from msgsvc_core.api.endpoint import Query, RequestModel
from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.api.types import Kept, MomentMs, NamedByExternalId, NamedById
from msgsvc_core.api.validation import wrong_field
from msgsvc_core.content.outgoing import Format, Media, OutgoingMessage
from msgsvc_core.content.substitution import Variables
from msgsvc_core.kernel.errors import BadRequest, InvalidValue
from msgsvc_core.kernel.values import value_object, whole_number
from msgsvc_core.messages.content import MediaBody, MediaPart, MessageText, TextPart
from msgsvc_core.plugins.tickets import Priority

Status = Literal["open", "pending", "snoozed", "closed"]
Author = Literal["customer", "agent"]
Due = Literal["overdue", "today"]

#: Orders of the lists of tickets: newest first, or with the least of a column first.
Sort = Literal["newest", "waiting", "due"]

#: Orders of the inbox: what was said last first, or one of those.
InboxSort = Literal["activity", "newest", "waiting", "due"]
SORTED_BY: dict[str, str] = {"waiting": "waiting_since_ms", "due": "due_at_ms"}

#: A ticket's place in a list: the value that it is sorted by, Unix milliseconds, and its id.
Place = tuple[int, str]

#: The times within which a ticket is due: after the first and up to the second, Unix milliseconds.
DueWithin = tuple[int, int]

#: The channel of customers without a messenger.
VIRTUAL = "virtual"

#: Maximum characters of a subject, also of one taken from the beginning of the text.
SUBJECT_LENGTH = 200

_EMAIL = re.compile(r"[^@\s]{1,64}@[^@\s.]+(\.[^@\s.]+)+")


def _check_email(email: str) -> str:
    if not _EMAIL.fullmatch(email):
        raise InvalidValue("must be an email address")
    return email


#: A label that a project puts on tickets: 1-64 characters, no control characters, no spaces at its ends.
TAG_LENGTH = 64
TAG_PATTERN = r"^[^\s\x00-\x1f,]([^\x00-\x1f,]*[^\s\x00-\x1f,])?$"
TicketTag = Annotated[
    str,
    Field(
        min_length=1,
        max_length=TAG_LENGTH,
        pattern=TAG_PATTERN,
        examples=["delivery"],
    ),
]
Subject = Annotated[str, Field(max_length=SUBJECT_LENGTH, examples=["My parcel"])]
Name = Annotated[str, Field(max_length=200, examples=["Ann"])]
Email = Annotated[
    str, Field(max_length=254, examples=["ann@example.org"]), AfterValidator(_check_email)
]
CannedKey = Annotated[str, Field(pattern=r"^[a-z0-9_-]{1,64}$", examples=["delivery"])]

#: A label in a path.
NamedTicketTag = Annotated[TicketTag, Field(description="The label.", examples=["delivery"])]

#: Ids in examples: Ann's ticket.
TICKET_ID = "tkt_032aJerz9OPYLXIWedIQEI"

#: What a ticket's status means.
STATUS = (
    "`open` waits for an agent, `pending` for the customer, and `snoozed` for a time or the customer's next"
    " message. `closed` is finished."
)

TicketId = Annotated[str, Field(description="The ticket's id.", examples=[TICKET_ID])]
TicketRef = Annotated[
    str,
    Field(
        description="The ticket's id, or its number. That of a merged ticket leads to the one that goes on.",
        examples=[TICKET_ID],
    ),
]
TicketNumber = Annotated[
    int,
    Field(description="The ticket's number in its project, from 1, for people.", examples=[1042]),
]
AssigneeId = Annotated[
    str | None,
    Field(
        description="The member who handles the ticket; null while it is unassigned.",
        examples=[examples.MEMBER_ID],
    ),
]
FileIds = Annotated[
    list[str],
    Field(
        max_length=10,
        description="Files of the customer, at most 10, as uploaded by `POST /v1/files`.",
        examples=[[examples.FILE_ID]],
    ),
]

#: Filters of the lists of tickets.
StatusFilter = Annotated[
    Status | None, Field(description="Only tickets with this status.", examples=["open"])
]
AssigneeFilter = Annotated[
    str | None,
    Field(
        description="Only tickets of this member; `none` for unassigned ones.",
        examples=[examples.MEMBER_ID],
    ),
]
PriorityFilter = Annotated[
    Priority | None, Field(description="Only tickets with this priority.", examples=["high"])
]
TagFilter = Annotated[
    str | None, Field(description="Only tickets with this tag.", examples=["delivery"])
]


DueFilter = Annotated[
    Due | None,
    Field(
        description="Only tickets with a service level target that was missed (`overdue`), or whose first one"
        " is missed by the end of the day in the time zone of the business hours (`today`).",
        examples=["overdue"],
    ),
]


@value_object
class Actor:
    """The author of a change. `member_id` is None for an API request that names no member."""

    kind: Literal["customer", "agent", "system"]
    member_id: str | None = None


#: The API without a member, the customer, and timers.
API, CUSTOMER, SYSTEM = Actor("agent"), Actor("customer"), Actor("system")


@value_object
class Ticket:
    """A ticket with its tags. `closed_at_ms` is the time of the last closing, None while it is not closed."""

    project_id: str
    ticket_id: str
    number: int
    channel: str
    subscriber_id: str | None
    customer_name: str
    customer_email: str
    subject: str
    status: Status
    priority: Priority
    assignee_id: str | None
    source: str
    source_id: str | None
    created_at_ms: int
    updated_at_ms: int
    last_message_at_ms: int
    waiting_since_ms: int | None = None
    told_waiting_at_ms: int | None = None
    snoozed_until_ms: int | None = None
    first_response_at_ms: int | None = None
    closed_at_ms: int | None = None
    merged_into: str | None = None
    csat_score: int | None = None
    csat_comment: str | None = None
    csat_at_ms: int | None = None
    erased_at_ms: int | None = None
    #: When the first of its targets is missed, or was; None while none runs.
    due_at_ms: int | None = None
    #: When its customer was last told that the desk is closed.
    away_told_at_ms: int | None = None
    tags: tuple[str, ...] = ()

    @property
    def is_virtual(self) -> bool:
        """Whether its customer has no messenger; a project's channel may have the same name."""
        return self.channel == VIRTUAL and self.subscriber_id is None


@value_object
class Edit:
    """The text of a message until `replaced_at_ms`."""

    text: str
    replaced_at_ms: int


@value_object
class Entry:
    """An entry of a ticket: by the customer, by an agent to them, or an internal note."""

    project_id: str
    entry_id: str
    ticket_id: str
    author: Author
    member_id: str | None
    internal: bool
    text: str
    format: Format
    media: Media | None
    message_id: str | None
    bot: str | None
    chat_id: str | None
    message_ref: str | None
    created_at_ms: int
    edited_at_ms: int | None = None
    files_digest: str | None = None
    #: The id of its source, e.g. of a form's submission.
    source_id: str | None = None
    file_ids: tuple[str, ...] = ()
    edits: tuple[Edit, ...] = ()


@value_object
class CustomerMessage:
    """A customer's message, with the messenger's id of it, so that edits can be applied."""

    text: str
    file_ids: tuple[str, ...] = ()
    bot: str | None = None
    chat_id: str | None = None
    message_ref: str | None = None
    files_digest: str | None = None
    #: The thread of the chat in which they wrote, where the messenger has threads.
    thread: str | None = None
    #: Its subject, of at most `SUBJECT_LENGTH` characters, the messages that it refers to, and whether it
    #: begins a conversation, on a channel whose messages have subjects.
    subject: str = ""
    refers_to: tuple[str, ...] = ()
    begins: bool = False


@value_object
class AgentReply:
    """What an agent writes: a reply to the customer, or a note. `file_id` is a stored file in place of the
    content's."""

    content: OutgoingMessage
    internal: bool = False
    file_id: str | None = None
    #: The ticket's status afterwards, unless this is a note.
    status: Literal["open", "pending", "closed"] = "pending"


@value_object
class TicketUpdate:
    """Changes of a ticket. Only those in `fields` are meant: the others are None because they are omitted."""

    fields: frozenset[str]
    status: Status | None = None
    priority: Priority | None = None
    assignee_id: str | None = None
    only_if_unassigned: bool = False
    tags: tuple[str, ...] | None = None
    snoozed_until_ms: int | None = None


@value_object
class Opening:
    """A new ticket. `message` is None if the project opens it without text."""

    source: str
    message: CustomerMessage | None
    source_id: str | None = None
    subject: str = ""
    subscriber_id: str | None = None
    customer_name: str = ""
    customer_email: str = ""
    priority: Priority = "normal"
    tags: tuple[str, ...] = ()
    assignee_id: str | None = None


@value_object
class Blocked:
    """A blocked subscriber."""

    project_id: str
    subscriber_id: str
    reason: str
    created_at_ms: int


class OpenTicketBody(RequestModel):
    """A new ticket: of a subscriber, or with `channel: "virtual"` of a customer without a messenger."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "subscriber_id": examples.SUBSCRIBER_ID,
                    "text": "Where is my parcel?",
                    "subject": "My parcel",
                    "tags": ["delivery"],
                },
                {
                    "channel": VIRTUAL,
                    "name": "Ann",
                    "email": "ann@example.org",
                    "text": "Where is my parcel?",
                },
            ]
        }
    )

    subscriber_id: NamedById = None
    external_id: NamedByExternalId = None
    channel: str | None = Field(
        None,
        description="`virtual` for a customer without a messenger; else, with `external_id`, the channel"
        " to choose.",
        examples=[examples.CHANNEL],
    )
    name: Name | None = Field(
        None, description="Name of a virtual customer; a subscriber has their own."
    )
    email: Email | None = Field(
        None, description="Email address of a virtual customer, for agents: nothing is sent to it."
    )
    text: MessageText = Field(
        description="The customer's message.", examples=["Where is my parcel?"]
    )
    subject: Subject | None = Field(
        None, description="What it is about; by default the beginning of the text."
    )
    priority: Priority = Field("normal", description="How urgent it is.")
    tags: list[TicketTag] = Field(default_factory=list, description="Labels for agents.")
    assignee_id: str | None = Field(
        None,
        description="The assigned member, not a viewer. By default nobody, or the next agent if tickets"
        " are assigned automatically.",
        examples=[examples.MEMBER_ID],
    )
    file_ids: FileIds = Field(default_factory=list)

    @model_validator(mode="after")
    def _one_customer(self) -> "OpenTicketBody":
        """With the channel `virtual`: neither `subscriber_id` nor `external_id`; on other channels: neither
        `name` nor `email`."""
        ids = {"subscriber_id": self.subscriber_id, "external_id": self.external_id}
        if self.channel == VIRTUAL and (named := [name for name in sorted(ids) if ids[name]]):
            raise wrong_field(named[0], "can't be combined with channel virtual")
        if self.channel != VIRTUAL:
            for name in ("name", "email"):
                if getattr(self, name) is not None:
                    raise wrong_field(name, "is for channel virtual; a subscriber has their own")
        return self


class ReplyToTicketBody(MediaPart[MediaBody], TextPart[MessageText | None], RequestModel):
    """A reply to the customer, or with `internal` a note that they never see."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"text": "It arrives tomorrow.", "member_id": examples.MEMBER_ID},
                {"canned": "delivery", "variables": {"name": "Ann", "days": 2}},
                {"text": "The carrier confirms it.", "internal": True},
            ]
        }
    )

    text: MessageText | None = Field(
        None,
        description="The text to the customer, or of the note. Required without `canned`.",
        examples=["It arrives tomorrow."],
    )
    canned: CannedKey | None = Field(
        None, description="Key of a canned answer, instead of `text` and `format`."
    )
    variables: Variables | None = Field(
        None, description="Variables of the canned answer.", examples=[{"name": "Ann", "days": 2}]
    )
    file_id: str | None = Field(
        None, description="An uploaded file, instead of `media`.", examples=[examples.FILE_ID]
    )
    internal: bool = Field(
        False, description="Whether it is a note for agents, which the customer never sees."
    )
    member_id: str | None = Field(
        None,
        description="The member who replies; by default nobody by name.",
        examples=[examples.MEMBER_ID],
    )
    status: Literal["open", "pending", "closed"] = Field(
        "pending", description="The ticket's status afterwards; a note doesn't change it."
    )

    @model_validator(mode="after")
    def _one_of_each(self) -> "ReplyToTicketBody":
        """Either `text` or `canned` is given; `variables` are for `canned`. At most one of `media` and
        `file_id` is given."""
        if self.canned is None:
            if self.text is None:
                raise wrong_field("text", "is required, unless canned is given")
            if self.variables is not None:
                raise wrong_field("variables", "are for a canned answer, and none is given")
        else:
            for name, given in {
                "text": self.text is not None,
                "format": self.format != "plain",
            }.items():
                if given:
                    raise wrong_field(name, "can't be combined with canned, which has its own")
        if self.media is not None and self.file_id is not None:
            raise wrong_field("file_id", "can't be combined with media")
        if self.internal and self.status != "pending":
            raise wrong_field("status", "can't be combined with internal: a note changes nothing")
        return self

    def to_reply(self, canned: OutgoingMessage | None = None) -> AgentReply:
        """The reply; `canned` is the rendered canned answer of a body that names one."""
        content = canned or OutgoingMessage(self.text or "", format=self.format)
        if self.media is not None:
            content = replace(content, media=self.media.to_media())
        return AgentReply(content, internal=self.internal, file_id=self.file_id, status=self.status)


class AddCustomerReplyBody(RequestModel):
    """A message of a virtual customer."""

    text: MessageText = Field(
        description="What the customer says.", examples=["It has arrived, thank you!"]
    )
    file_ids: FileIds = Field(default_factory=list)


class UpdateTicketBody(RequestModel):
    """Changes of a ticket; omitted fields stay unchanged."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"assignee_id": examples.MEMBER_ID, "only_if_unassigned": True, "priority": "high"},
                {"status": "snoozed", "snoozed_until": examples.LATER},
                {"status": "closed"},
            ]
        }
    )

    status: Kept[Status] = Field(
        None,
        description=f"{STATUS} A closed ticket can't be snoozed.",
        examples=["pending"],
    )
    priority: Kept[Priority] = Field(
        None, description="How urgent the ticket is.", examples=["high"]
    )
    assignee_id: str | None = Field(
        None,
        description="The assigned member, not a viewer; null unassigns the ticket.",
        examples=[examples.MEMBER_ID],
    )
    only_if_unassigned: bool = Field(
        False,
        description="With `assignee_id`: fail with 409 if another member has the ticket already.",
    )
    tags: Kept[list[TicketTag]] = Field(
        None, description="All its labels; others are removed.", examples=[["delivery"]]
    )
    snoozed_until: MomentMs | None = Field(
        None,
        description="Snoozes the ticket until this time, ahead; the customer's next message wakes it"
        " earlier. Null, or omitted with the status `snoozed`: until the customer writes.",
        examples=[examples.LATER],
    )

    @model_validator(mode="after")
    def _belong_together(self) -> "UpdateTicketBody":
        """`only_if_unassigned` takes an `assignee_id`, and a time of `snoozed_until` no `status` but
        `snoozed`."""
        if self.only_if_unassigned and self.assignee_id is None:
            raise wrong_field("only_if_unassigned", "takes an assignee_id")
        if self.snoozed_until is not None and self.status not in {None, "snoozed"}:
            raise wrong_field("snoozed_until", "can only be combined with the status snoozed")
        return self

    def to_update(self) -> TicketUpdate:
        """The changes; what is omitted is not among `fields`."""
        return TicketUpdate(
            fields=frozenset(self.model_fields_set),
            status=self.status,
            priority=self.priority,
            assignee_id=self.assignee_id,
            only_if_unassigned=self.only_if_unassigned,
            tags=None if self.tags is None else tuple(self.tags),
            snoozed_until_ms=self.snoozed_until,
        )


class MergeTicketBody(RequestModel):
    """The ticket that remains, by id or number."""

    into: str = Field(
        min_length=1,
        max_length=64,
        description="Id or number of the ticket that remains; of the same customer.",
        examples=["1041"],
    )


class TicketFilters(Query):
    """Filters, all of which a ticket must meet."""

    status: StatusFilter = None
    assignee_id: AssigneeFilter = None
    priority: PriorityFilter = None
    tag: TagFilter = None
    due: DueFilter = None
    subscriber_id: str | None = Field(
        None,
        description="Only tickets of this subscriber.",
        examples=[examples.SUBSCRIBER_ID],
    )
    channel: str | None = Field(
        None,
        description="Only tickets of customers on this channel; `virtual` for those without a messenger.",
        examples=[examples.CHANNEL],
    )
    created_after: MomentMs | None = Field(
        None, description="Only tickets that were opened after this time."
    )
    created_before: MomentMs | None = Field(
        None, description="Only tickets that were opened before this time."
    )


class TicketQuery(TicketFilters, PageQuery):
    """Filters, which are combined with AND, the order, and pagination."""

    sort: Sort = Field(
        "newest",
        description="`newest` first; `waiting`: only tickets whose customer waits, the longest wait first;"
        " `due`: only tickets with a due time, the first due one first.",
        examples=["waiting"],
    )

    def place_of(self, ticket: Ticket) -> str:
        """The position of a ticket for the cursor, in this order."""
        if self.sort == "newest":
            return ticket.ticket_id
        return f"{self.sort}_{getattr(ticket, SORTED_BY[self.sort])}_{ticket.ticket_id}"

    @property
    def place(self) -> Place | None:
        """Where the page begins: after the last ticket of the previous one. Raises `BadRequest` for the
        cursor of another order."""
        if self.after is None:
            return None
        if self.sort == "newest":
            return 0, self.after
        sort, _, place = self.after.partition("_")
        written, _, ticket_id = place.partition("_")
        at_ms = whole_number(written)
        if sort != self.sort or at_ms is None or not ticket_id:
            raise BadRequest("not one that this service gave", field="cursor")
        return at_ms, ticket_id


class InboxQuery(PageQuery):
    """Filters of the inbox, combined with AND, the order, and pagination."""

    status: StatusFilter = None
    assignee_id: AssigneeFilter = None
    priority: PriorityFilter = None
    tag: TagFilter = None
    due: DueFilter = None
    sort: InboxSort = "activity"

    def as_list(self, sort: Sort) -> TicketQuery:
        """The same as the list of tickets asks it, in one of its orders."""
        return TicketQuery(**self.model_dump(exclude={"sort"}), sort=sort)


class StatsQuery(Query):
    """The time of the statistics."""

    created_after: MomentMs | None = Field(
        None,
        description="Only tickets that were opened after this time; by default 30 days ago.",
        examples=["2026-02-01T00:00:00.000Z"],
    )
    created_before: MomentMs | None = Field(
        None, description="Only tickets that were opened before this time."
    )


class BlockCustomerBody(RequestModel):
    """The reason for the block, shown in the blocklist."""

    reason: Annotated[str, Field(max_length=500)] | None = Field(
        None, description="Why, for agents; null for none.", examples=["Spam"]
    )
