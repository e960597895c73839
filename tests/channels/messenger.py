"""A messenger inside the test's process, which several services can be connected to.

It keeps updates until they are acknowledged, as platforms do, and remembers who asked for what.
"""

import asyncio
import json
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from msgsvc_core.channels import (
    Blocked,
    BotProfile,
    Channel,
    ChannelHealth,
    ChannelIdentity,
    ChannelKind,
    ChannelUser,
    DeliveryError,
    InvalidWebhook,
    OutgoingMessage,
    Polled,
    Reason,
    Receiving,
    Started,
    Unreadable,
    Update,
    WebhookCall,
)
from msgsvc_core.config.sections import Section
from msgsvc_core.plugins.hookspecs import hookimpl

SECRET_HEADER = "x-fake-secret"

#: Seconds for which a poll waits for something to come.
POLL_S = 0.05


@dataclass
class Bot:
    """A bot as its platform knows it, and what it was told by whoever has the token."""

    username: str
    waiting: list[Update] = field(default_factory=list)
    #: The cursors that polls came with.
    polls: list[str | None] = field(default_factory=list)
    polling: int = 0
    calling: int = 0
    most_polling: int = 0
    webhooks: list[tuple[str, str]] = field(default_factory=list)
    sent: list[tuple[str, str]] = field(default_factory=list)
    checks: int = 0
    closed: int = 0
    #: Whose token it is; None where the platform does not say.
    account: str | None = None
    #: Makes every call fail.
    away: bool = False
    #: Makes every check say that the token is refused.
    revoked: bool = False
    #: What polls, and nothing else, are refused with; and how many were.
    poll_error: str | None = None
    failed_polls: int = 0
    #: Raised by the next sends, one each.
    failures: list[DeliveryError] = field(default_factory=list)
    #: What becomes of items that are taken anyway, by their bytes; others still can't be read.
    readable: dict[bytes, Update] = field(default_factory=dict)
    may_answer: asyncio.Event = field(default_factory=asyncio.Event)
    may_be_checked: asyncio.Event = field(default_factory=asyncio.Event)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.may_answer.set()
        self.may_be_checked.set()

    def bring(self, update: Update) -> None:
        """Somebody did something in a chat with the bot."""
        self.waiting.append(update)
        self.arrived.set()

    @property
    def texts(self) -> list[str]:
        return [text for _, text in self.sent]


class Platform:
    """`bots` by token. Loaded as a plugin, it brings the kind of messenger `fake`."""

    def __init__(self) -> None:
        self.bots: defaultdict[str, Bot] = defaultdict(lambda: Bot(f"bot_{len(self.bots)}"))

    @hookimpl
    def register_channel_kinds(self) -> Sequence[ChannelKind]:
        def create(_context: Any, identity: ChannelIdentity, settings: FakeSettings) -> Channel:
            return FakeChannel(identity, settings, self.bots[settings.token.get_secret_value()])

        return [ChannelKind("fake", FakeSettings, create, frozenset({"base_url"}))]


class FakeSettings(Section):
    token: SecretStr
    receiving: Receiving = "poll"
    base_url: str = "https://fake.example"
    greeting: str | None = None
    folder: Path | None = None


class FakeChannel(Channel):
    def __init__(self, identity: ChannelIdentity, settings: FakeSettings, bot: Bot) -> None:
        super().__init__(identity)
        self.settings = settings
        self.receiving = settings.receiving
        self.bot = bot
        self.open = True

    async def send(self, chat_id: str, message: OutgoingMessage) -> str:
        await self._answers()
        if self.bot.failures:
            raise self.bot.failures.pop(0)
        self.bot.sent.append((chat_id, message.text))
        return f"m{len(self.bot.sent)}"

    async def edit(self, chat_id: str, message_ref: str, message: OutgoingMessage) -> None:
        await self._answers()

    async def delete(self, chat_id: str, message_ref: str) -> None:
        await self._answers()

    async def answer_button(self, button_ref: str, text: str | None = None) -> None:
        await self._answers()

    async def take_anyway(self, item: Unreadable) -> list[Update]:
        return [self.bot.readable.get(item.raw, item)]

    def deep_link(self, payload: str) -> str:
        return f"https://fake.example/{self.known_profile().username}?start={payload}"

    async def check(self) -> ChannelHealth:
        self.bot.checks += 1
        await self.bot.may_be_checked.wait()
        if self.bot.away:
            return ChannelHealth(ok=False, detail="the platform is away", unreachable=True)
        if self.bot.revoked:
            return ChannelHealth(ok=False, detail="the token is refused", revoked=True)
        return ChannelHealth(
            ok=True, profile=BotProfile("Bot", self.bot.username), account=self.bot.account
        )

    async def set_webhook(self, url: str, secret: str) -> None:
        await self._answers()
        self.bot.webhooks.append((url, secret))

    def parse_update(self, call: WebhookCall) -> list[Update]:
        if not call.has_secret(SECRET_HEADER):
            raise InvalidWebhook("the secret is wrong")
        fields = json.loads(call.body)
        return [started(fields["payload"], update_id=fields["update_id"])]

    async def poll_updates(self, cursor: str | None) -> Polled:
        bot = self.bot
        bot.polls.append(cursor)
        bot.polling += 1
        bot.most_polling = max(bot.most_polling, bot.polling)
        try:
            await self._answers()
            if bot.poll_error is not None:
                bot.failed_polls += 1
                raise DeliveryError(Reason.PLATFORM_UNAVAILABLE, bot.poll_error)
            if cursor is not None:
                bot.waiting = [each for each in bot.waiting if each.update_id > cursor]
            if not bot.waiting:
                bot.arrived.clear()
                with suppress(TimeoutError):
                    await asyncio.wait_for(bot.arrived.wait(), POLL_S)
            updates = tuple(bot.waiting)
            return Polled(updates, updates[-1].update_id if updates else cursor)
        finally:
            bot.polling -= 1

    async def close(self) -> None:
        assert self.open, "closed once"
        self.open = False
        self.bot.closed += 1

    async def _answers(self) -> None:
        assert self.open, "a closed channel is not used"
        self.bot.calling += 1
        try:
            await self.bot.may_answer.wait()
        finally:
            self.bot.calling -= 1
        assert self.open, "no channel is closed in the midst of a call"
        if self.bot.away:
            raise DeliveryError(Reason.PLATFORM_UNAVAILABLE, "the platform is away")


def started(payload: str, *, update_id: str = "u1", name: str = "Ann") -> Started:
    """A person presses Start. Ids of updates are compared as text."""
    return Started(
        update_id=update_id, chat_id=f"chat-{name}", user=ChannelUser(name, name), payload=payload
    )


def blocked(*, update_id: str = "u9", name: str = "Ann") -> Blocked:
    return Blocked(update_id=update_id, chat_id=f"chat-{name}", user=ChannelUser(name, name))


def payload_of(link: str) -> str:
    return link.partition("start=")[2]
