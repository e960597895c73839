"""The channel contract: a messenger plugin implements `Channel`."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import IO, Literal, get_args

from msgsvc_core.channels.commands import BotCommand
from msgsvc_core.channels.failures import ChannelNotReady, InvalidMiniApp, InvalidWebhook
from msgsvc_core.channels.updates import MiniAppUser, Polled, Update, WebhookAnswer, WebhookCall
from msgsvc_core.content.markup import Span, TextUnit, to_spans, visible_length
from msgsvc_core.content.outgoing import Format, OutgoingMessage
from msgsvc_core.kernel.visible_text import has_visible

#: What a platform has for buttons: its own; nothing, so that people answer with a number or a word; or
#: nothing and no answers either, so that only addresses can be shown.
Buttons = Literal["native", "words", "links"]

#: Characters that the instruction for numbered replies may take, in any language.
HINT_LENGTH = 60

#: How updates come: not at all by our doing, by asking the platform, or by its calls to us.
Receiving = Literal["nothing", "poll", "webhook"]


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a platform takes.

    A project's message that asks for more is refused before any call is made. System messages are adapted:
    an edit becomes a new message.
    """

    #: Length of a text as a person sees it, without markup (decision 0075: 4,000 for every
    #: channel), and the same where a file goes with it; None where that makes no difference.
    max_text_length: int = 4000
    max_caption_length: int | None = None
    #: What the platform counts.
    text_unit: TextUnit = "characters"
    formats: frozenset[Format] = frozenset({"plain", "markdown", "html"})
    media_types: frozenset[str] = frozenset({"image", "video", "document"})
    #: Where it is not `native`, `send` and `edit` get messages without any: the core writes addresses
    #: into the text, and for `words` the other buttons by number, whose answers it takes for presses.
    buttons: Buttons = "native"
    #: Whether a link can start the bot with a payload; else `deep_link` opens the chat with it, and
    #: people write `start` and a code that the service shows them.
    start_links: bool = True
    edit: bool = True
    #: Whether an edit may bring another file; else a message's file stays.
    edit_media: bool = False
    delete: bool = True
    mini_app: bool = False
    #: Whether what people send may hold files, which `fetch_file` gets.
    receives_files: bool = False
    #: Whether updates report which message a reply refers to (`MessageReceived.reply_to`).
    tells_replies: bool = False
    #: How the platform calls `/hooks/<key>` and what is below it; all else is answered with 405.
    hook_methods: frozenset[str] = frozenset({"POST"})
    #: A menu of the bot's commands, which `set_commands` fills.
    commands: bool = False
    #: Whether the platform shows a message once however often it is sent with the same
    #: `OutgoingMessage.key`, and `send` returns the same id each time. What is in doubt is then sent
    #: again, and nothing ends as `unknown` because a connection or a process broke.
    repeatable: bool = False

    def __post_init__(self) -> None:
        if self.buttons not in get_args(Buttons):
            raise ValueError(
                f"Capabilities.buttons is one of {', '.join(get_args(Buttons))}, not {self.buttons!r}"
            )

    @property
    def answers(self) -> bool:
        """Whether people can answer a question that has buttons, one way or another."""
        return self.buttons != "links"


@dataclass(frozen=True, slots=True)
class Pace:
    """How often a platform lets a bot call it. None: no limit that we keep."""

    per_bot_s: float | None = None
    per_chat_s: float | None = None
    #: Of chats of many, see `Channel.is_group`.
    per_group_min: float | None = None


@dataclass(frozen=True, slots=True)
class BotProfile:
    """The bot as the platform knows it. `username` is without the `@`."""

    name: str
    username: str | None = None


@dataclass(frozen=True, slots=True)
class ChannelHealth:
    """Result of `check`. `detail` is for an operator, e.g. the bot's name or the error.

    `revoked` says that the bot is banned, or its token invalid: every call would fail, so none is made
    until that is fixed.

    `unreachable` says that the platform did not respond, or only asked to retry: nothing is known about the
    bot. For a `DeliveryError` this is its `reason.retryable`.

    `account` is the platform's own id of the bot, the same for every token: updates received with one token
    are recognised with the next.
    """

    ok: bool
    detail: str = ""
    profile: BotProfile | None = None
    revoked: bool = False
    unreachable: bool = False
    account: str | None = None


@dataclass(frozen=True, slots=True)
class WebhookHealth:
    """Result of `check_webhook`. `detail` is for an operator: what the platform reports about its calls.

    `missing` says that no webhook is registered any more; it is then set again.

    `given_up_after_s` is for platforms that drop a webhook of which no call succeeded for so long. If one
    that was set longer ago is missing, the interruption is told at once, and ends with the next call.
    """

    ok: bool
    detail: str = ""
    missing: bool = False
    given_up_after_s: float | None = None


@dataclass(frozen=True, slots=True)
class ChannelIdentity:
    """Which channel it is. `name` is what the API shows, e.g. `messenger_a`.

    `key` is unique in the deployment and names the bot wherever projects meet: in lanes, chats and
    addresses. It is the name where the configuration makes the channel for every project, and an id
    where it is a project's own. `title` is what people call the messenger; empty for a kind without one.
    """

    name: str
    key: str
    project_id: str | None = None
    title: str = field(default="", compare=False)


class Channel(ABC):
    """One bot on one messenger.

    Every method that calls the platform raises `DeliveryError`, and nothing else, when the call does
    not succeed. Methods may be called concurrently.
    """

    capabilities: Capabilities = Capabilities()
    pace: Pace = Pace()
    #: Set by what the channel's settings say.
    receiving: Receiving = "nothing"

    def __init__(self, identity: ChannelIdentity) -> None:
        self.identity = identity
        #: What the last `check` that succeeded found, here or in another process.
        self.profile: BotProfile | None = None

    @property
    def name(self) -> str:
        return self.identity.name

    @property
    def key(self) -> str:
        return self.identity.key

    # ---- out ------------------------------------------------------------------------------------

    @abstractmethod
    async def send(self, chat_id: str, message: OutgoingMessage) -> str:
        """Shows `message` in the chat; returns the platform's id of it, unique within the chat.

        `message.key` is the same when the same message is sent again: hand it to a platform that drops
        repeats (`capabilities.repeatable`), e.g. as transaction or message id. Make the call once: whether
        it is made again, after a failure or a crash, is decided by who called. Only where the platform
        drops repeats may the channel make it again, with the same key.

        A chat that the person has left is `chat_not_found`, also on a platform that would take the message.
        """

    @abstractmethod
    async def edit(self, chat_id: str, message_ref: str, message: OutgoingMessage) -> None:
        """Replaces text and buttons of a message that `send` returned.

        A deleted message is `invalid_message`. The file is replaced by that of `message`, where the channel
        supports it (`edit_media`) and there is one. An edit without changes is not an error.
        """

    @abstractmethod
    async def delete(self, chat_id: str, message_ref: str) -> None:
        """Deletes a message with all its edits; deleting it again is not an error."""

    @abstractmethod
    async def answer_button(self, button_ref: str, text: str | None = None) -> None:
        """Ends the waiting state of a pressed button, with an optional short notice.

        One that nobody waits for any more is no error.
        """

    @abstractmethod
    def deep_link(self, payload: str) -> str:
        """The URL that opens the bot and makes it receive `Started(payload=payload)`.

        Where `capabilities.start_links` is False it opens the chat with the bot, whatever the payload.
        `payload` is 1-64 characters of `A-Z a-z 0-9 _ -`. Raises `ChannelNotReady` where the link
        needs the bot's profile, and that is not known yet.
        """

    @abstractmethod
    async def check(self) -> ChannelHealth:
        """Checks with the platform whether the bot works, and its profile. Never raises."""

    def problem(self, message: OutgoingMessage) -> str | None:
        """Why the platform can't take `message`, naming the field; None if it can.

        Asked before a message is accepted and again before it is sent; calls nobody.
        """
        takes = self.capabilities
        if message.format not in takes.formats:
            return f"format: this channel does not take {message.format!r}"
        if message.media and message.media.type not in takes.media_types:
            return f"media.type: this channel does not take {message.media.type!r}"
        if takes.buttons == "links" and any(
            b.data is not None for row in message.buttons for b in row
        ):
            return "buttons: people can't press any on this channel; give them a url"
        return self._problem_of_length(message)

    def appearance(self, message: OutgoingMessage) -> list[Span]:
        """The text as people see it on this messenger, for previews; calls nobody.

        Only looks may differ between messengers, e.g. where one shows code that is not bold as well:
        the spans' texts together are those of `to_spans`.
        """
        return to_spans(message.text, message.format)

    def _problem_of_length(self, message: OutgoingMessage) -> str | None:
        takes, longest, where = self.capabilities, self.capabilities.max_text_length, ""
        if message.format != "plain" and not message.media and not _shows_something(message):
            return "text: shows nothing but markup"
        if message.media and takes.max_caption_length is not None:
            longest, where = takes.max_caption_length, " beside a file"
        if takes.buttons != "native" and message.buttons:
            longest -= _length_in_words(message)
        # No unit counts more than two for one of Python's characters.
        if 2 * len(message.text) <= longest:
            return None
        if visible_length(message.text, message.format, takes.text_unit) <= longest:
            return None
        unit = "characters" if takes.text_unit == "characters" else "UTF-16 code units"
        return f"text: must be at most {longest} {unit}{where} on this channel"

    def is_group(self, chat_id: str) -> bool:
        """Whether many people are in the chat."""
        return False

    # ---- in -------------------------------------------------------------------------------------

    async def set_webhook(self, url: str, secret: str) -> None:
        """Has the platform call `url` with every update, and prove by `secret` that it is the platform.

        Called at every start where `receiving` is `webhook`, and again when `secret` changes.
        """
        # Not abstract: a channel needs this, or `poll_updates`, or neither.
        raise NotImplementedError("a channel that receives by webhook implements set_webhook")

    async def check_webhook(self, url: str) -> WebhookHealth:
        """Checks whether the platform calls `url`, registered by `set_webhook`, successfully.

        Called once in `jobs.webhook_check_s` where `receiving` is `webhook`. A platform that reports
        nothing counts as healthy.
        """
        return WebhookHealth(ok=True)

    async def set_commands(self, commands: Sequence[BotCommand], default_lang: str) -> None:
        """Sets the commands of the bot's menu, in the person's language where the platform supports that,
        and in `default_lang` for everyone else.

        Called where `capabilities.commands` is True, whenever a process starts to receive for the bot.
        """
        # Not abstract: most platforms have no such menu.
        raise NotImplementedError("where capabilities.commands is True, implement set_commands")

    def parse_update(self, call: WebhookCall) -> list[Update]:
        """Verifies and reads a webhook call of the platform.

        An unknown or unreadable update gives an empty list, and is logged. Raises `InvalidWebhook`
        when the call is not from the platform.
        """
        raise InvalidWebhook("this channel takes no webhooks")

    def answer_webhook(self, call: WebhookCall) -> WebhookAnswer | None:
        """What the platform is answered that `parse_update` found to be the platform, e.g. the challenge
        by which it makes sure of an address; None for the usual `{"ok": true}`.

        Asked after the call's updates were taken in.
        """
        return None

    async def poll_updates(self, cursor: str | None) -> Polled:
        """Long-polls for updates, for at most half a minute, and returns them in order.

        Called in sequence where `receiving` is `poll`, by one process at a time. `cursor` is the previous
        call's, also across restarts: it acknowledges what that call returned. None asks for everything the
        platform has kept, and removes its webhook. Updates received before a failure need not be lost: see
        `Polled.error`.
        """
        # Not abstract: see `set_webhook`.
        raise NotImplementedError("a channel that receives by polling implements poll_updates")

    async def fetch_file(self, file_ref: str, into: IO[bytes], max_bytes: int) -> None:
        """Writes the content of a file that a person sent, `ReceivedFile.file_ref`, into `into`.

        Raises `DeliveryError`: `invalid_message` where there is no such file any more, or it has more
        than `max_bytes`. What was written by then is thrown away.
        """
        # Not abstract: not every platform lets people send files to a bot.
        raise NotImplementedError("where capabilities.receives_files is True, implement fetch_file")

    def verify_mini_app(self, init_data: str) -> MiniAppUser:
        """Who opened the bot's mini app, from what the platform gave the page.

        Raises `InvalidMiniApp` unless the platform signed it for this bot. How old it may be is for
        the caller to judge.
        """
        raise InvalidMiniApp("this channel has no mini apps")

    def link(self, payload: str) -> str | None:
        """`deep_link`, or None while it can't be made."""
        try:
            return self.deep_link(payload)
        except ChannelNotReady:
            return None

    # ---- its life -------------------------------------------------------------------------------

    async def close(self) -> None:  # noqa: B027 - optional
        """Frees connections; called once, after the last use."""

    def known_profile(self) -> BotProfile:
        """For `deep_link`: the profile. Raises `ChannelNotReady`."""
        if self.profile is None:
            raise ChannelNotReady(f"the platform has not told yet who the bot {self.name!r} is")
        return self.profile


def _length_in_words(message: OutgoingMessage) -> int:
    """Maximum length that buttons add to a text, each as its own line: see `words.in_words`."""
    added = [
        2 * len(button.text) + 2 * len(button.url or "") + len("\n12 - ")
        for row in message.buttons
        for button in row
    ]
    return sum(added) + HINT_LENGTH


def _shows_something(message: OutgoingMessage) -> bool:
    return any(has_visible(span.text) for span in to_spans(message.text, message.format))
