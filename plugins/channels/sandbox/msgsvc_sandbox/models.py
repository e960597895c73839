"""Models of the messenger's JSON API and the test API."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field, StringConstraints

from msgsvc_core.api.endpoint import Query, RequestModel
from msgsvc_core.kernel.i18n import Language

#: What may come after `?start=`; the messengers it stands for allow no more.
START_PAYLOAD = r"^[A-Za-z0-9_-]{0,64}$"

#: Message text: up to 4,000 characters (decision 0075).
MAX_TEXT_CHARS = 4000

#: Text beside a file that a person attaches; it is part of an address.
MAX_CAPTION_CHARS = 1000

#: How a failure is named in `delivery.failed` (decision 0075).
Reason = Literal[
    "user_blocked_bot",
    "chat_not_found",
    "bot_banned",
    "invalid_message",
    "rate_limited",
    "platform_unavailable",
    "unknown",
]

Mark = Literal["bold", "italic", "underline", "strike", "code", "pre"]

Name = Annotated[
    str,
    StringConstraints(
        strip_whitespace=True, min_length=1, max_length=64, pattern=r"^[^\x00-\x1f\x7f]+$"
    ),
]
Username = Annotated[
    str, StringConstraints(strip_whitespace=True, pattern=r"^@?[A-Za-z0-9_]{0,32}$")
]


class Span(BaseModel):
    """A run of text with one look; a page shows it as a text node, never as markup."""

    text: str
    marks: list[Mark] = []
    href: str | None = None


class Button(BaseModel):
    """A button under a message: it opens `url`, or sends `data` to the bot."""

    text: str
    url: str | None = None
    data: str | None = None


class Media(BaseModel):
    """A picture, film or file that a message carries: by its address, or one that a person attached."""

    type: Literal["image", "video", "document"]
    url: str = ""
    filename: str | None = None
    file_id: str | None = None


class MessageBody(BaseModel):
    """The part of a message that an edit replaces."""

    spans: list[Span] = []
    media: Media | None = None
    buttons: list[list[Button]] = []
    silent: bool = False
    #: The `ref` of the message that this one answers.
    reply_to: str | None = None

    @property
    def text(self) -> str:
        """The words alone, without their looks."""
        return "".join(span.text for span in self.spans)


class Message(MessageBody):
    """One message in a chat; `ref` is what the bot edits and deletes it by."""

    ref: str
    channel: str
    author: Literal["bot", "person"]
    #: `start` is the message that a messenger sends when the person presses Start.
    kind: Literal["text", "start"] = "text"
    sent_at_ms: int
    edited_at_ms: int | None = None
    deleted: bool = False
    #: The person's revision at the last change of this message.
    revision: int


class Person(BaseModel):
    """A user of the messenger; one person may chat with every bot."""

    person_id: str
    name: str
    username: str
    lang: Language
    created_at_ms: int


class NewPerson(RequestModel):
    """What makes a person. An empty username is allowed, as in real messengers."""

    name: Name
    username: Username = ""
    lang: Language = "en"


class PersonChange(RequestModel):
    """The same fields, each of which may be left out to keep what it is."""

    name: Name | None = None
    username: Username | None = None
    lang: Language | None = None


class Chat(BaseModel):
    """A person's conversation with one bot."""

    channel: str
    blocked: bool
    unread: int
    #: The last answer to a button press, shown for a moment; new when its revision is.
    notice: str
    notice_revision: int


class Fault(RequestModel):
    """How a channel misbehaves. The default is a messenger in good health."""

    reason: Reason | None = None
    #: What a 429 asks for; only with `rate_limited`.
    retry_after_s: int = Field(default=5, ge=1, le=3600)
    #: Every call to the messenger takes this long before it works or fails.
    delay_s: float = Field(default=0, ge=0, le=120)
    #: Calls until the messenger is well again; `None` means until it is switched off.
    remaining: int | None = Field(default=None, ge=1, le=1_000_000)


class Bot(BaseModel):
    """A configured channel of this kind, as people see it, and how it misbehaves."""

    channel: str
    title: str
    fault: Fault


class PersonState(BaseModel):
    """Everything that changed for a person since the revision they know."""

    revision: int
    person: Person
    bots: list[Bot]
    chats: list[Chat]
    messages: list[Message]
    #: More changes than one response holds are waiting: poll again immediately.
    more: bool = False


class OpenLink(RequestModel):
    """A start link as pasted or scanned, or the channel and payload it stands for."""

    link: str | None = Field(default=None, max_length=2048)
    channel: str | None = None
    payload: str = Field(default="", pattern=START_PAYLOAD)


class Opened(BaseModel):
    """The chat that a start link led to."""

    channel: str


class PersonMiniAppQuery(Query):
    """What the mini app's link carried."""

    payload: str = Field(default="", pattern=START_PAYLOAD)


class OpenedMiniApp(BaseModel):
    """What the mini app's page is given, signed for its bot."""

    init_data: str


Text = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_TEXT_CHARS)
]


class SentText(RequestModel):
    """What a person types, and the `ref` of the message that it answers."""

    text: Text
    reply_to: str | None = None


class ChangedText(RequestModel):
    """What a person has changed their message to."""

    text: Text


class BesideFile(Query):
    """What a person types beside a file."""

    text: Annotated[str, StringConstraints(strip_whitespace=True, max_length=MAX_CAPTION_CHARS)] = (
        ""
    )


class Press(RequestModel):
    """Which button of a message is pressed, counted from the top left, from 0."""

    row: int = Field(ge=0, le=99)
    column: int = Field(ge=0, le=99)


class Blocking(RequestModel):
    """Whether the person wants to hear from the bot."""

    blocked: bool


class StateQuery(Query):
    """What the asker knows already, and how long they can wait for more."""

    since: int = Field(
        0, ge=0, lt=2**63, description="Revision of the last answer; 0 asks for all."
    )
    wait: int = Field(0, ge=0, le=25, description="Seconds to wait for a change if there is none.")


class EarlierQuery(Query):
    """Which part of a chat's past."""

    before: int = Field(ge=0, lt=2**63, description="The `ref` of the oldest message known.")
    limit: int = Field(50, ge=1, le=200, description="Messages in one answer.")


class People(BaseModel):
    """Everybody in the messenger, the first to arrive first."""

    data: list[Person]


class Bots(BaseModel):
    """The channels of this kind, in the order of the configuration."""

    data: list[Bot]


class Messages(BaseModel):
    """Messages of one chat, the newest first."""

    data: list[Message]
