"""An outgoing message: text in one of four formats, buttons, a file."""

from collections.abc import Mapping
from dataclasses import field, fields, replace
from typing import Any, Literal

from msgsvc_core.kernel.values import value_object

#: `rich` is HTML with headings, lists, tables, quotes, code blocks and dividers: see `blocks`.
Format = Literal["plain", "markdown", "html", "rich"]
MediaType = Literal["image", "video", "document"]

#: What a button stands out as: the action to take, one that agrees, one that can't be undone.
ButtonStyle = Literal["primary", "success", "danger"]


@value_object
class Button:
    """A button under a message: either opens `url`, or sends `data` back to the bot.

    `style` is its colour, where a messenger has such; others show the button as any.
    """

    text: str
    url: str | None = None
    data: str | None = None
    style: ButtonStyle | None = None


@value_object
class Media:
    """The file of a message, fetched by the platform from `url`."""

    type: MediaType
    url: str
    filename: str | None = None


@value_object
class ReplyTarget:
    """The message of a person that another one answers, on a channel whose messages have subjects.

    `refs` are the platform's ids of the messages of their conversation, oldest first; the last is answered.
    Without any, only the subject is known.
    """

    subject: str
    refs: tuple[str, ...] = ()


@value_object
class OutgoingMessage:
    """The content of a chat message. `buttons` are rows from top to bottom.

    `key` identifies the message to its platform: at most 64 of `A-Z a-z 0-9 _ -`, the same on every retry
    of this message, and unique to it; in `edit` it is empty. `unsubscribe_url` is set for a project's
    messages on a channel of addresses: the page on which the recipient chooses what they get, which also
    takes the POST request of RFC 8058 (`List-Unsubscribe=One-Click`). `project_id` is whose message it is,
    for channels that count them by project; None for what the service itself says. `thread` is the thread
    of the chat that it belongs to, as `Channel.open_thread` returned it; None for the chat itself.
    `recipient_only` is set for a question whose answer proves who the recipient is, e.g. a sign-in.
    `in_reply_to` is the person's message that this one answers, if the channel has `Capabilities.subjects`.
    `by_person` is set for what a person wrote to this recipient, e.g. an agent; everything else is automatic.
    None of these is part of the content.
    """

    text: str
    format: Format = "plain"
    buttons: tuple[tuple[Button, ...], ...] = ()
    media: Media | None = None
    silent: bool = False
    key: str = field(default="", compare=False)
    unsubscribe_url: str | None = field(default=None, compare=False)
    project_id: str | None = field(default=None, compare=False)
    thread: str | None = field(default=None, compare=False)
    recipient_only: bool = field(default=False, compare=False)
    in_reply_to: ReplyTarget | None = field(default=None, compare=False)
    by_person: bool = field(default=False, compare=False)

    def with_key(self, key: str) -> "OutgoingMessage":
        """The same message with a key, for a channel."""
        return replace(self, key=key)

    def with_unsubscribe_url(self, url: str) -> "OutgoingMessage":
        """The same message with the page of its recipient."""
        return replace(self, unsubscribe_url=url)

    def of_project(self, project_id: str) -> "OutgoingMessage":
        """The same message, which counts for that project."""
        return replace(self, project_id=project_id)

    def in_thread(self, thread: str | None) -> "OutgoingMessage":
        """The same message in that thread of its chat."""
        return replace(self, thread=thread)

    def replying_to(self, target: ReplyTarget | None) -> "OutgoingMessage":
        """The same message as the answer to a person's."""
        return replace(self, in_reply_to=target)

    def from_person(self) -> "OutgoingMessage":
        """The same message, which a person wrote to its recipient."""
        return replace(self, by_person=True)

    def for_recipient_only(self) -> "OutgoingMessage":
        """The same message, whose answer proves who the recipient is."""
        return replace(self, recipient_only=True)

    def to_payload(self) -> dict[str, Any]:
        """JSON for a job's payload or a column; `from_payload` reads it back."""
        payload: dict[str, Any] = {"text": self.text, "format": self.format}
        if self.buttons:
            payload["buttons"] = [
                [_without_none(text=b.text, url=b.url, data=b.data, style=b.style) for b in row]
                for row in self.buttons
            ]
        if self.media:
            payload["media"] = _without_none(
                type=self.media.type, url=self.media.url, filename=self.media.filename
            )
        for name, default in _AS_IS:
            if (value := getattr(self, name)) != default:
                payload[name] = value
        if self.in_reply_to is not None:
            payload["in_reply_to"] = {
                "subject": self.in_reply_to.subject,
                "refs": list(self.in_reply_to.refs),
            }
        return payload

    @classmethod
    def from_payload(cls, payload: Mapping[str, Any]) -> "OutgoingMessage":
        media, target = payload.get("media"), payload.get("in_reply_to")
        return cls(
            text=payload["text"],
            format=payload.get("format", "plain"),
            buttons=tuple(
                tuple(Button(**button) for button in row) for row in payload.get("buttons", ())
            ),
            media=Media(**media) if media else None,
            in_reply_to=ReplyTarget(target["subject"], tuple(target["refs"])) if target else None,
            **{name: payload[name] for name, _default in _AS_IS if name in payload},
        )


#: Fields whose JSON is written above; those that are set for each call are not stored.
_WRITTEN = frozenset({"text", "format", "buttons", "media", "in_reply_to"})
_NOT_STORED = frozenset({"key", "unsubscribe_url"})

#: All other fields with their defaults: values of JSON, stored as they are unless they have their default.
_AS_IS: tuple[tuple[str, Any], ...] = tuple(
    (each.name, each.default)
    for each in fields(OutgoingMessage)
    if each.name not in _WRITTEN | _NOT_STORED
)


def _without_none(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
