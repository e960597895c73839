"""Gives the buttons of a message URLs, and knows what is pressed on the pages behind them."""

import json
import secrets as random
from collections.abc import Callable
from dataclasses import dataclass, replace

import structlog

from msgsvc_core.channels import chats
from msgsvc_core.channels import linked_buttons as store
from msgsvc_core.channels.contract import Channel
from msgsvc_core.channels.registry import Channels
from msgsvc_core.channels.updates import ButtonPressed, ChannelUser
from msgsvc_core.content.outgoing import Button, OutgoingMessage
from msgsvc_core.db import Tx
from msgsvc_core.kernel.clock import DAY_MS, Clock
from msgsvc_core.kernel.errors import NotFound
from msgsvc_core.kernel.json import to_json
from msgsvc_core.security import DecryptionError, SecretBox

#: What tokens are derived for, and hashed for.
PURPOSE = "button page"

#: Bytes of a token: 128 bits can't be guessed.
TOKEN_BYTES = 16

#: Path of the pages.
PATH = "/b"

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ButtonPage:
    """What a page shows, and whose press it is. `project_id` is None for a bot that serves several, in a chat
    that belongs to none."""

    channel: Channel
    chat_id: str
    user_id: str
    project_id: str | None
    lang: str
    message: OutgoingMessage
    button: Button
    message_ref: str

    @property
    def username(self) -> str | None:
        """The address, where people are known by one."""
        return self.user_id if self.channel.capabilities.addresses else None

    def press(self, token: str, attempt: str) -> ButtonPressed:
        """The press as an update; the same for a form that is sent twice."""
        return ButtonPressed(
            update_id=f"page:{token}:{attempt}",
            chat_id=self.chat_id,
            user=ChannelUser(self.user_id, "", self.username, self.lang or None),
            data=self.button.data or "",
            message_ref=self.message_ref,
            button_ref="",
            text=self.button.text,
        )


class ButtonPages:
    """The pages of all bots whose platform has buttons for URLs only. They exist for `days`."""

    def __init__(self, *, clock: Clock, secrets: SecretBox, base_url: str, days: int) -> None:
        self._clock = clock
        self._secrets = secrets
        self._base_url = base_url.rstrip("/")
        self._days = days

    async def offer(
        self, tx: Tx, channel: Channel, chat_id: str, message: OutgoingMessage, lang: str
    ) -> tuple[OutgoingMessage, str]:
        """The message with the URL of a page in place of each button's data, and the digest for
        `set_ref`. A repeated attempt (`OutgoingMessage.key`) gets the same URLs."""
        parts = (channel.key, chat_id, message.key)
        derived = self._secrets.derive(PURPOSE, *parts)[:TOKEN_BYTES]
        token = (derived if message.key else random.token_bytes(TOKEN_BYTES)).hex()
        digest = self._secrets.keyed_hash(PURPOSE, token)
        content = {"lang": lang, "message": replace(message, media=None).to_payload()}
        await store.save(
            tx,
            digest,
            channel.key,
            chat_id,
            sealed=self._secrets.encrypt(to_json(content)),
            now_ms=self._clock.now_ms(),
        )
        numbers = iter(range(1, 1000))
        rows = tuple(
            tuple(self._linked(button, token, numbers.__next__) for button in row)
            for row in message.buttons
        )
        return replace(message, buttons=rows), digest

    def _linked(self, button: Button, token: str, number: Callable[[], int]) -> Button:
        if button.data is None:
            return button
        url = f"{self._base_url}{PATH}/{token}/{number()}"
        return Button(button.text, url=url, style=button.style)

    async def set_ref(self, tx: Tx, digest: str, message_ref: str) -> None:
        """Records which message of the platform has the buttons."""
        await store.set_ref(tx, digest, message_ref)

    async def withdraw(self, tx: Tx, channel: Channel, chat_id: str, message_ref: str) -> None:
        """Ends the pages of a message that was edited."""
        await store.delete_of_message(tx, channel.key, chat_id, message_ref)

    async def get(self, tx: Tx, channels: Channels, token: str, number: int) -> ButtonPage:
        """Raises `NotFound`, also for pages that are too old, and those of removed bots."""
        missing = NotFound("there is no page at this address")
        digests = list(self._secrets.keyed_hashes(PURPOSE, token))
        page = await store.find(tx, digests, self._clock.now_ms() - self._days * DAY_MS)
        channel = None if page is None else await channels.find(page.channel)
        if page is None or channel is None:
            raise missing
        try:
            content = json.loads(self._secrets.decrypt(page.sealed))
        except DecryptionError:
            log.warning("button_page_unreadable", channel=page.channel)
            raise missing from None
        message = OutgoingMessage.from_payload(content["message"])
        offered = [button for row in message.buttons for button in row if button.data is not None]
        chat = await chats.find(tx, page.channel, page.chat_id)
        known_by_address = channel.capabilities.addresses
        if not 1 <= number <= len(offered) or (chat is None and not known_by_address):
            raise missing
        return ButtonPage(
            channel,
            page.chat_id,
            page.chat_id if chat is None else chat.user_id,
            channel.identity.project_id or (None if chat is None else chat.project_id),
            content["lang"],
            message,
            offered[number - 1],
            page.message_ref or "",
        )
