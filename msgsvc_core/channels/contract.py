"""The channel contract: a messenger plugin implements `Channel`."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import IO, Literal, get_args

from msgsvc_core.channels.bot_maker import BotMaker
from msgsvc_core.channels.commands import BotCommand
from msgsvc_core.channels.failures import ChannelNotReady, InvalidMiniApp, InvalidWebhook
from msgsvc_core.channels.look import MessengerLook
from msgsvc_core.channels.platform_sign_in import PlatformSignIn
from msgsvc_core.channels.spending import Budget
from msgsvc_core.channels.updates import (
    MiniAppUser,
    Polled,
    Unreadable,
    Update,
    WebhookAnswer,
    WebhookCall,
)
from msgsvc_core.content.markup import Span, TextUnit, to_spans, visible_length
from msgsvc_core.content.outgoing import Format, OutgoingMessage
from msgsvc_core.db import Tx
from msgsvc_core.kernel.errors import InvalidValue
from msgsvc_core.kernel.visible_text import has_visible

#: What a platform has for buttons: native buttons; buttons that can only open URLs, so that the others open a
#: page of this service on which the user confirms; none, so that users reply with a number or a word; or none
#: and no replies, so that only URLs can be shown.
Buttons = Literal["native", "pages", "words", "links"]

#: What the platform knows its users by, and so what a sign-in proves: an account on the platform, access to a
#: mailbox, a phone number, by a text message to it, or an account that a homeserver of the user's choice
#: vouches for.
Identity = Literal["account", "mailbox", "phone", "homeserver"]

#: What a platform reports of messages after it has accepted them, where it is able to.
Report = Literal["delivered", "read"]

#: Maximum length of the instruction for numbered replies, in any language.
HINT_LENGTH = 60

#: How updates are received: not at all, by polling the platform, or by its webhook calls.
Receiving = Literal["nothing", "poll", "webhook"]


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The capabilities of a platform.

    A project's message that exceeds them is refused before any call is made. System messages are adapted: an
    edit becomes a new message.
    """

    #: Maximum length of a text as displayed, without markup (decision 0075: 4,000 for every channel), and of
    #: a text with a file; None if it is the same.
    max_text_length: int = 4000
    max_caption_length: int | None = None
    #: The unit in which the platform counts the length.
    text_unit: TextUnit = "characters"
    formats: frozenset[Format] = frozenset({"plain", "markdown", "html"})
    #: Whether the platform shows headings, lists, tables, quotes and dividers. Otherwise `send` and `edit`
    #: get `html` in place of the format `rich`, with these as lines of the text.
    rich: bool = False
    media_types: frozenset[str] = frozenset({"image", "video", "document"})
    #: With `pages`, `send` and `edit` get buttons with a `url` only: in place of data, the URL of a page on
    #: which the user confirms the press. With `words` and `links` they get messages without buttons: the core
    #: writes URLs into the text and, for `words`, numbers the other buttons, and treats the user's reply as a
    #: press.
    buttons: Buttons = "native"
    identity: Identity = "account"
    #: Whether the platform vouches for who answers a question. If senders can be forged, a question that only
    #: its recipient may answer (`OutgoingMessage.recipient_only`), e.g. a sign-in, gets buttons as with
    #: `pages`: who opens their URL has read the message.
    proves_answers: bool = True
    #: Whether people are known by an address before they ever wrote, e.g. an email address or a phone number:
    #: see `Channel.parse_address`.
    addresses: bool = False
    #: Whether a link can start the bot with a payload; otherwise `deep_link` opens the chat, and users send
    #: `start` and a code that the service shows them.
    start_links: bool = True
    #: Whether a press of a button can be answered by a short notice (`answer_button`). Otherwise the core
    #: sends the notice as a message, unless it has replied already, and never calls `answer_button`.
    notices: bool = True
    edit: bool = True
    #: Whether an edit may replace a message's file.
    edit_media: bool = False
    delete: bool = True
    mini_app: bool = False
    #: Whether users can send files, which `fetch_file` downloads.
    receives_files: bool = False
    #: Whether updates report which message a reply refers to (`MessageReceived.reply_to`).
    tells_replies: bool = False
    #: Whether a chat can have threads, e.g. topics: `open_thread` opens them, `OutgoingMessage.thread` and
    #: `Update.thread` name them.
    threads: bool = False
    #: Whether messages have a subject and name the messages before them, as emails do: see
    #: `MessageReceived.subject` and `OutgoingMessage.in_reply_to`.
    subjects: bool = False
    #: HTTP methods of the platform's calls to `/hooks/<key>` and below; others get 405.
    hook_methods: frozenset[str] = frozenset({"POST"})
    #: Whether there is a menu of the bot's commands, which `set_commands` fills.
    commands: bool = False
    #: Whether sending is idempotent: the platform shows a message once, however often it is sent with the
    #: same `OutgoingMessage.key`, and `send` returns the same id each time. A call with a lost response is
    #: then repeated, and no message ends as `unknown` because of a broken connection or a crash.
    repeatable: bool = False
    #: What the platform reports of messages that it has accepted, each by an update `DeliveryReported`: that
    #: they arrived, that the user has read them. It may report failures too.
    reports: frozenset[Report] = frozenset()

    def __post_init__(self) -> None:
        if self.buttons not in get_args(Buttons):
            raise ValueError(
                f"Capabilities.buttons is one of {', '.join(get_args(Buttons))}, not {self.buttons!r}"
            )
        if self.identity not in get_args(Identity):
            raise ValueError(
                f"Capabilities.identity is one of {', '.join(get_args(Identity))},"
                f" not {self.identity!r}"
            )

    def takes_format(self, text_format: Format) -> bool:
        """Whether texts of the format can be sent; `rich` is sent as `html` unless `self.rich`."""
        return ("html" if text_format == "rich" else text_format) in self.formats

    @property
    def answers(self) -> bool:
        """Whether users can answer a question with buttons: by pressing one, or by replying."""
        return self.buttons != "links"

    @property
    def asks_recipients(self) -> bool:
        """Whether a question that only its recipient may answer can be sent: see `proves_answers`."""
        return self.answers or not self.proves_answers

    def buttons_of(self, message: OutgoingMessage) -> Buttons:
        """The form of a message's buttons."""
        if message.recipient_only and not self.proves_answers:
            return "pages"
        return self.buttons


@dataclass(frozen=True, slots=True)
class Pace:
    """The rate limits of a platform. None: no limit."""

    per_bot_s: float | None = None
    per_chat_s: float | None = None
    #: For group chats, see `Channel.is_group`.
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

    `refuses_messages` says that the platform knows the bot, but takes no messages of it, e.g. until a bill is
    paid: a bot that was stopped for that stays stopped. It stops none by itself: answers to people may still
    be taken.

    `account` is the platform's own id of the bot, the same for every token: updates received with one token
    are recognised with the next. The core does not pass it back to the channel.
    """

    ok: bool
    detail: str = ""
    profile: BotProfile | None = None
    revoked: bool = False
    unreachable: bool = False
    refuses_messages: bool = False
    account: str | None = None


@dataclass(frozen=True, slots=True)
class WebhookHealth:
    """Result of `check_webhook`. `detail` is for an operator: what the platform reports about its calls.

    `missing` means that no webhook is registered any more; it is then registered again.

    `given_up_after_s` is for platforms that remove a webhook after so many seconds without a successful call.
    If one that was registered longer ago is missing, the interruption is reported at once, and ends with the
    next call.
    """

    ok: bool
    detail: str = ""
    missing: bool = False
    given_up_after_s: float | None = None


@dataclass(frozen=True, slots=True)
class ChannelIdentity:
    """Identifies a channel. `name` is what the API shows, e.g. `messenger_a`.

    `key` is unique in the deployment and used wherever projects share code: in lanes, chats and addresses. It
    is the name of a channel of the configuration, and the id of a project's own channel. `title` is the
    messenger's name for users, and `mark` its drawing (`ChannelKind.mark`); empty for a kind without one.
    `look` is that of its chats (`ChannelKind.look`); None for a kind without one.
    """

    name: str
    key: str
    project_id: str | None = None
    title: str = field(default="", compare=False)
    mark: str = field(default="", compare=False)
    look: MessengerLook | None = field(default=None, compare=False)


class Channel(ABC):
    """One bot on one messenger.

    A method that calls the platform raises `DeliveryError`, and nothing else, if the call fails. Methods may
    be called concurrently.
    """

    capabilities: Capabilities = Capabilities()
    pace: Pace = Pace()
    #: Set according to the channel's settings.
    receiving: Receiving = "nothing"
    #: Set if people can sign in on the platform's own page.
    platform_sign_in: PlatformSignIn | None = None
    #: Set if people can make further bots on the platform, which this one manages.
    bot_maker: BotMaker | None = None
    #: Set if calls cost something: what the channel may take a day, by `ChannelSpending` and before the call.
    budget: Budget | None = None

    def __init__(self, identity: ChannelIdentity) -> None:
        self.identity = identity
        #: The profile of the last successful `check`, here or in another process.
        self.profile: BotProfile | None = None

    @property
    def name(self) -> str:
        return self.identity.name

    @property
    def key(self) -> str:
        return self.identity.key

    # ---- outgoing -------------------------------------------------------------------------------

    @abstractmethod
    async def send(self, chat_id: str, message: OutgoingMessage) -> str:
        """Sends `message` to the chat; returns the platform's id of it, unique within the chat.

        `message.key` is an idempotency key, the same on every attempt: pass it to a platform that drops
        duplicates (`capabilities.repeatable`), e.g. as a transaction or message id. Make the call once: the
        caller decides about retries after a failure or a crash. Only where the platform drops duplicates may
        the channel retry, with the same key.

        A chat that the user has left is `chat_not_found`, even if the platform would accept the message.
        """

    async def open_thread(self, chat_id: str, title: str) -> str | None:
        """Opens a thread in the chat; returns the platform's id of it, unique within the chat. None if this
        bot or this chat has none, e.g. because the bot's owner has not enabled them.

        A title that is longer than the platform takes is shortened. Called if `capabilities.threads` is
        True, and again after a crash, which may leave an empty thread behind. A message to a thread that is
        no longer there is sent to the chat itself.
        """
        # Not abstract: most platforms have none.
        raise NotImplementedError("where capabilities.threads is True, implement open_thread")

    @abstractmethod
    async def edit(self, chat_id: str, message_ref: str, message: OutgoingMessage) -> None:
        """Replaces text and buttons of a message that `send` returned.

        A deleted message is `invalid_message`. The file is replaced by that of `message` if there is one and
        the channel supports it (`edit_media`). An edit without changes is not an error. It is called again
        after a failure whose outcome is unknown. `message.key` is empty: a platform that wants a transaction
        id gets a new one, since a message that is edited to and fro is not a repetition.
        """

    @abstractmethod
    async def delete(self, chat_id: str, message_ref: str) -> None:
        """Deletes a message with all its edits; deleting it again is not an error, nor is a repeated call
        with one transaction id, e.g. a hash of `message_ref`."""

    @abstractmethod
    async def answer_button(self, button_ref: str, text: str | None = None) -> None:
        """Ends the waiting state of a pressed button, with an optional short notice.

        A press that has expired is not an error.
        """

    @abstractmethod
    def deep_link(self, payload: str) -> str:
        """The URL that opens the bot and makes it receive `Started(payload=payload)`.

        If `capabilities.start_links` is False it only opens the chat with the bot. `payload` is 1-64
        characters of `A-Z a-z 0-9 _ -`. Raises `ChannelNotReady` if the link needs the bot's profile, and
        that is not known yet.
        """

    @abstractmethod
    async def check(self) -> ChannelHealth:
        """Checks with the platform whether the bot works, and its profile. Never raises."""

    def problem(self, message: OutgoingMessage) -> str | None:
        """The reason why the platform can't show `message`, naming the field; None if it can.

        Called before a message is accepted and again before it is sent; makes no network calls.
        """
        takes = self.capabilities
        if not takes.takes_format(message.format):
            return f"format: this channel does not take {message.format!r}"
        if message.media and message.media.type not in takes.media_types:
            return f"media.type: this channel does not take {message.media.type!r}"
        if takes.buttons == "links" and any(
            b.data is not None for row in message.buttons for b in row
        ):
            return "buttons: people can't press any on this channel; give them a url"
        return self._problem_of_length(message)

    def text_limit(self, message: OutgoingMessage) -> int:
        """The maximum length of this message's text, in `capabilities.text_unit`; makes no network calls.

        By default `capabilities.max_text_length`, which every text may have. Larger where some texts may be
        longer, as on SMS those of its default alphabet.
        """
        return self.capabilities.max_text_length

    def appearance(self, message: OutgoingMessage) -> list[Span]:
        """The text as this messenger displays it, for previews; makes no network calls.

        Only the formatting may differ between messengers, e.g. where one can't show bold code: the
        concatenated text of the spans is that of `to_spans`.
        """
        return to_spans(message.text, message.format)

    def _problem_of_length(self, message: OutgoingMessage) -> str | None:
        takes, longest, where = self.capabilities, self.text_limit(message), ""
        if message.format != "plain" and not message.media and not _shows_something(message):
            return "text: shows nothing but markup"
        if message.media and takes.max_caption_length is not None:
            longest, where = takes.max_caption_length, " beside a file"
        if takes.buttons in {"words", "links"} and message.buttons:
            longest -= _length_in_words(message)
        # No unit counts a Python character as more than two.
        if 2 * len(message.text) <= longest:
            return None
        if visible_length(message.text, message.format, takes.text_unit) <= longest:
            return None
        unit = "characters" if takes.text_unit == "characters" else "UTF-16 code units"
        return f"text: must be at most {longest} {unit}{where} on this channel"

    def is_group(self, chat_id: str) -> bool:
        """Whether it is a group chat."""
        return False

    def parse_address(self, text: str) -> str:
        """The normal form of an address that people know their own by, e.g. `ann@example.com`.

        It is both the user's id and the id of the chat with them. Raises `InvalidValue`, which does not
        repeat the address, for anything else. Makes no network calls. Called if `capabilities.addresses` is
        True.
        """
        # Not abstract: on most platforms only a user can begin.
        raise NotImplementedError("where capabilities.addresses is True, implement parse_address")

    def parse_chat_id(self, text: str) -> str:
        """The id of a person as another program of the platform has stored it, for imports, in the form of
        `ChannelUser.user_id`.

        Only on a platform where the chat with a person has the person's id. Raises `InvalidValue`, which does
        not repeat the id, for anything else, such as the id of a group. Makes no network calls. Not called if
        `capabilities.addresses` is True.
        """
        raise InvalidValue("people of this messenger can't be imported: they begin by a link")

    async def limitation(self, tx: Tx) -> str | None:
        """What limits of the channel's own stop messages now, for an operator; None if none does.

        Shown as trouble of the channel. Reads the database alone, and makes no network calls. A message that
        such a limit stops raises `LimitReached` in `send`.
        """
        return None

    async def lift_limitation(self, tx: Tx) -> bool:
        """Has everything that `limitation` tells end now, by an operator's decision; False if nothing did."""
        return False

    # ---- incoming -------------------------------------------------------------------------------

    async def set_webhook(self, url: str, secret: str) -> None:
        """Registers `url` with the platform as the webhook for every update, authenticated by `secret`.

        Called at every start if `receiving` is `webhook`, and again when `secret` changes.
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
        """Sets the commands of the bot's menu: in the user's language if the platform supports that, and in
        `default_lang` for all others.

        Called if `capabilities.commands` is True, whenever a process starts to receive for the bot.
        """
        # Not abstract: most platforms have no such menu.
        raise NotImplementedError("where capabilities.commands is True, implement set_commands")

    def parse_update(self, call: WebhookCall) -> list[Update]:
        """Verifies and parses a webhook call of the platform.

        What can't be read is an `Unreadable` in the list; what is known and ignored is left out. Raises
        `InvalidWebhook` if the call is not from the platform.
        """
        raise InvalidWebhook("this channel takes no webhooks")

    def answer_webhook(self, call: WebhookCall) -> WebhookAnswer | None:
        """The response to a call that `parse_update` has verified, e.g. the challenge by which the platform
        verifies a URL; None for the usual `{"ok": true}`.

        Called after the call's updates were processed.
        """
        return None

    async def poll_updates(self, cursor: str | None) -> Polled:
        """Long-polls for updates, for up to 30 seconds, and returns them in order.

        Called in sequence if `receiving` is `poll`, by one process at a time. `cursor` is the previous
        call's, also across restarts: it acknowledges what that call returned. None requests everything that
        the platform has stored, and removes its webhook. Updates received before a failure need not be lost:
        see `Polled.error`. What can't be read is an `Unreadable` among the others, and does not come again.
        """
        # Not abstract: see `set_webhook`.
        raise NotImplementedError("a channel that receives by polling implements poll_updates")

    @property
    def takes_anyway(self) -> bool:
        """Whether the channel implements `take_anyway`."""
        return type(self).take_anyway is not Channel.take_anyway

    async def take_anyway(self, item: Unreadable) -> Sequence[Update]:
        """The updates of an item that could not be read when it came, at an operator's request.

        Reads it as the present version of the channel does, without the checks that may be left out because a
        person has looked at the item, such as whether a program sent it. Checks that protect sign-ins stay.
        Returns an `Unreadable` with the reason if it still can't be read. An update has the `update_id` that
        it would have had, so that one that has come meanwhile is not processed twice.
        """
        # Not abstract: some channels read all that their platform sends.
        raise NotImplementedError("this channel takes nothing anyway")

    async def fetch_file(self, file_ref: str, into: IO[bytes], max_bytes: int) -> None:
        """Writes the content of a file that a user sent, `ReceivedFile.file_ref`, into `into`.

        Raises `DeliveryError`: `invalid_message` if the file no longer exists, or has more than `max_bytes`.
        The caller discards a partial file.
        """
        # Not abstract: not every platform lets users send files to a bot.
        raise NotImplementedError("where capabilities.receives_files is True, implement fetch_file")

    def verify_mini_app(self, init_data: str) -> MiniAppUser:
        """The user who opened the bot's mini app, from the data that the platform gave the page.

        Raises `InvalidMiniApp` unless the platform signed it for this bot. The caller checks its age.
        """
        raise InvalidMiniApp("this channel has no mini apps")

    def link(self, payload: str) -> str | None:
        """`deep_link`, or None if it can't be made yet."""
        try:
            return self.deep_link(payload)
        except ChannelNotReady:
            return None

    # ---- life cycle -----------------------------------------------------------------------------

    async def close(self) -> None:  # noqa: B027 - optional
        """Frees connections; called once, after the last use."""

    def known_profile(self) -> BotProfile:
        """For `deep_link`: the profile. Raises `ChannelNotReady`."""
        if self.profile is None:
            raise ChannelNotReady(f"the platform has not told yet who the bot {self.name!r} is")
        return self.profile


def _length_in_words(message: OutgoingMessage) -> int:
    """The maximum length that buttons add to a text, each as its own line: see `words.in_words`."""
    added = [
        2 * len(button.text) + 2 * len(button.url or "") + len("\n12 - ")
        for row in message.buttons
        for button in row
    ]
    return sum(added) + HINT_LENGTH


def _shows_something(message: OutgoingMessage) -> bool:
    return any(has_visible(span.text) for span in to_spans(message.text, message.format))
