"""A channel that records its calls, and fails on request."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import IO, Any
from urllib.parse import urlencode

from msgsvc_core.channels import (
    BotProfile,
    Capabilities,
    Channel,
    ChannelHealth,
    ChannelIdentity,
    ChannelKind,
    DeliveryError,
    OutgoingMessage,
    PlatformAttempt,
    PlatformPerson,
    PlatformSignIn,
    PlatformSignInRefused,
    Reason,
    Unreadable,
    Update,
)
from msgsvc_core.config.sections import Section
from msgsvc_core.kernel import email
from msgsvc_core.kernel.errors import InvalidValue
from msgsvc_core.plugins.hookspecs import hookimpl


@dataclass(frozen=True, slots=True)
class Sent:
    """A message as the platform received it."""

    chat_id: str
    message_ref: str
    message: OutgoingMessage


class SendOnlyChannel(Channel):
    """For tests that only send; edits, deletions and answers to presses raise."""

    async def edit(self, chat_id: str, message_ref: str, message: OutgoingMessage) -> None:
        raise NotImplementedError

    async def delete(self, chat_id: str, message_ref: str) -> None:
        raise NotImplementedError

    async def answer_button(self, button_ref: str, text: str | None = None) -> None:
        raise NotImplementedError

    def deep_link(self, payload: str) -> str:
        return f"https://{self.name}.example/bot?start={payload}"

    async def check(self) -> ChannelHealth:
        return ChannelHealth(True, "send only", BotProfile(self.name))


class RecordingChannel(Channel):
    """Records calls in `sent`, `edited` and `answered`. `failures` are raised first, one per send, and
    `refusals` by edits, deletions and fetches. `contents` are the files that users sent, by `file_ref`;
    `readable` what becomes of items that are taken anyway, by their bytes.

    With `capabilities.repeatable` a message is shown once per key, and an `in_doubt` failure is raised after
    the message was shown. `keys` contains the keys of all calls of `send`.
    """

    capabilities = Capabilities(receives_files=True)

    def __init__(self, identity: ChannelIdentity) -> None:
        super().__init__(identity)
        self.sent: list[Sent] = []
        self.edited: list[Sent] = []
        self.deleted: list[tuple[str, str]] = []
        #: Chats and titles of threads, opened with `capabilities.threads`; the first is `t1`.
        self.opened: list[tuple[str, str]] = []
        self.answered: list[tuple[str, str | None]] = []
        self.keys: list[str] = []
        self.failures: list[DeliveryError] = []
        self.refusals: list[DeliveryError] = []
        self.contents: dict[str, bytes] = {}
        self.readable: dict[bytes, Sequence[Update]] = {}

    async def send(self, chat_id: str, message: OutgoingMessage) -> str:
        self.keys.append(message.key)
        failure = self.failures.pop(0) if self.failures else None
        is_lost = isinstance(failure, DeliveryError) and failure.in_doubt
        if failure is not None and not (is_lost and self.capabilities.repeatable):
            raise failure
        ref = f"m-{message.key}" if self.capabilities.repeatable else f"m{len(self.sent) + 1}"
        if all(sent.message_ref != ref for sent in self.sent):
            self.sent.append(Sent(chat_id, ref, message))
        if failure is not None:
            raise failure
        return ref

    async def open_thread(self, chat_id: str, title: str) -> str | None:
        self._refuse()
        self.opened.append((chat_id, title))
        return f"t{len(self.opened)}"

    async def edit(self, chat_id: str, message_ref: str, message: OutgoingMessage) -> None:
        self._refuse()
        self.edited.append(Sent(chat_id, message_ref, message))

    async def delete(self, chat_id: str, message_ref: str) -> None:
        self._refuse()
        self.deleted.append((chat_id, message_ref))

    async def answer_button(self, button_ref: str, text: str | None = None) -> None:
        self.answered.append((button_ref, text))

    async def fetch_file(self, file_ref: str, into: IO[bytes], max_bytes: int) -> None:
        self._refuse()
        content = self.contents.get(file_ref)
        if content is None:
            raise DeliveryError(Reason.INVALID_MESSAGE, "there is no such file")
        if len(content) > max_bytes:
            raise DeliveryError(Reason.INVALID_MESSAGE, f"it is larger than {max_bytes} bytes")
        into.write(content)

    async def take_anyway(self, item: Unreadable) -> Sequence[Update]:
        self._refuse()
        return self.readable.get(item.raw, [replace(item, detail="it still has no form")])

    def parse_address(self, text: str) -> str:
        return email.normalized(text)

    def parse_chat_id(self, text: str) -> str:
        if not text.isdecimal():
            raise InvalidValue("must be a number")
        return text

    def deep_link(self, payload: str) -> str:
        return f"https://{self.name}.example/bot?start={payload}"

    async def check(self) -> ChannelHealth:
        return ChannelHealth(True, "recording", BotProfile(self.name))

    def _refuse(self) -> None:
        if self.refusals:
            raise self.refusals.pop(0)

    @property
    def texts(self) -> list[str]:
        """The texts sent, in order."""
        return [sent.message.text for sent in self.sent]


class RecordingPage(PlatformSignIn):
    """A platform's own page, for `RecordingChannel.platform_sign_in`. `people` are those who allowed it, by
    their code, which is taken once; `failures` are raised first, one per exchange."""

    def __init__(self, name: str = "messenger_a") -> None:
        self.name = name
        self.people: dict[str, PlatformPerson] = {}
        self.failures: list[Exception] = []
        self.exchanged: list[tuple[str, PlatformAttempt]] = []

    def authorization_url(self, attempt: PlatformAttempt) -> str:
        query = {"state": attempt.state, "redirect_uri": attempt.redirect_uri}
        return f"https://{self.name}.example/page?{urlencode(query)}"

    async def exchange(self, code: str, attempt: PlatformAttempt) -> PlatformPerson:
        self.exchanged.append((code, attempt))
        if self.failures:
            raise self.failures.pop(0)
        if code not in self.people:
            raise PlatformSignInRefused("unknown code")
        return self.people.pop(code)


class RecordingBotMaker:
    """Makes bots, for `RecordingChannel.bot_maker`. `settings` are those of the bots, by their account."""

    def __init__(self) -> None:
        self.settings: dict[str, Mapping[str, Any]] = {}
        self.failures: list[DeliveryError] = []

    def suggest(self, name: str, random: str) -> str:
        return f"{name}_{random}_bot"

    def link(self, username: str, title: str) -> str:
        return f"https://messenger.example/new/{username}?{urlencode({'name': title})}"

    async def settings_of(self, account: str) -> Mapping[str, Any]:
        if self.failures:
            raise self.failures.pop(0)
        return self.settings[account]


class RecordingPlugin:
    """Registers the channel kind `recording`."""

    @hookimpl
    def register_channel_kinds(self) -> Sequence[ChannelKind]:
        def create(_context: Any, identity: ChannelIdentity, _settings: Section) -> Channel:
            return RecordingChannel(identity)

        return [ChannelKind("recording", Section, create)]
