"""Models of the messenger's JSON API and the test API."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

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
    """A run of text with one style; a page shows it as a text node, never as markup."""

    text: str
    marks: list[Mark] = []
    href: str | None = None


class Button(BaseModel):
    """A button under a message: it opens `url`, or sends `data` to the bot."""

    model_config = ConfigDict(title="SandboxButton")

    text: str
    url: str | None = None
    data: str | None = None


class Media(BaseModel):
    """An image, video or file of a message: by URL, or attached by a user."""

    model_config = ConfigDict(title="SandboxMedia")

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
        """The text without formatting."""
        return "".join(span.text for span in self.spans)


class Message(MessageBody):
    """One message in a chat; the bot edits and deletes it by `ref`."""

    model_config = ConfigDict(title="SandboxMessage")

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

    model_config = ConfigDict(title="SandboxPerson")

    person_id: str
    name: str
    username: str
    lang: Language
    created_at_ms: int


class NewPerson(RequestModel):
    """A new user. An empty username is allowed, as in real messengers."""

    name: Name
    username: Username = ""
    lang: Language = "en"


class PersonChange(RequestModel):
    """The same fields; omitted ones stay unchanged."""

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
    """Simulated faults of a channel. The default is none."""

    reason: Reason | None = None
    #: What a 429 asks for; only with `rate_limited`.
    retry_after_s: int = Field(default=5, ge=1, le=3600)
    #: Every call to the messenger takes this long before it works or fails.
    delay_s: float = Field(default=0, ge=0, le=120)
    #: Calls until the messenger is well again; `None` means until it is switched off.
    remaining: int | None = Field(default=None, ge=1, le=1_000_000)


class Bot(BaseModel):
    """A configured channel of this kind, as users see it, with its simulated faults."""

    model_config = ConfigDict(title="SandboxBot")

    channel: str
    title: str
    fault: Fault


class PersonState(BaseModel):
    """Everything that changed for a user since the revision in the request."""

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
    """Parameters of the mini app's link."""

    payload: str = Field(default="", pattern=START_PAYLOAD)


class OpenedMiniApp(BaseModel):
    """Launch data of the mini app's page, signed for its bot."""

    init_data: str


Text = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_TEXT_CHARS)
]


class SentText(RequestModel):
    """A user's message, and the `ref` of the message that it replies to."""

    text: Text
    reply_to: str | None = None


class ChangedText(RequestModel):
    """The new text of a user's message."""

    text: Text


class BesideFile(Query):
    """The caption of a user's file."""

    text: Annotated[str, StringConstraints(strip_whitespace=True, max_length=MAX_CAPTION_CHARS)] = (
        ""
    )


class Press(RequestModel):
    """The pressed button of a message: its index from the top left, from 0."""

    row: int = Field(ge=0, le=99)
    column: int = Field(ge=0, le=99)


class Blocking(RequestModel):
    """Whether the user has blocked the bot."""

    blocked: bool


class StateQuery(Query):
    """The client's last revision, and how long to wait for a change."""

    since: int = Field(
        0, ge=0, lt=2**63, description="Revision of the last response; 0 returns everything."
    )
    wait: int = Field(0, ge=0, le=25, description="Seconds to wait for a change if there is none.")


class EarlierQuery(Query):
    """A page of a chat's history."""

    before: int = Field(ge=0, lt=2**63, description="The `ref` of the oldest message known.")
    limit: int = Field(50, ge=1, le=200, description="Messages per response.")


class People(BaseModel):
    """All users of the messenger, oldest first."""

    data: list[Person]


class Bots(BaseModel):
    """The channels of this kind, in the order of the configuration."""

    data: list[Bot]


class Messages(BaseModel):
    """Messages of one chat, the newest first."""

    data: list[Message]
