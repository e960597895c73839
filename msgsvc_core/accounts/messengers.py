"""Signing in to the dashboard by a messenger that somebody linked to their account before.

A member's link to a messenger (`service.member_links`) opens no account: it is handed out by those who
manage a project, who could open it themselves, and be somebody else everywhere.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgsvc_core.accounts import request_store as store
from msgsvc_core.accounts.models import (
    Browser,
    LinkedMessenger,
    MessengerRequest,
    RequestPurpose,
)
from msgsvc_core.accounts.questions import START_PREFIX, Questions
from msgsvc_core.accounts.service import AGENT_LENGTH, digest_of
from msgsvc_core.channels.inbound import InboundRule
from msgsvc_core.db import Tx
from msgsvc_core.errors import NotFound
from msgsvc_core.ids import new_token

if TYPE_CHECKING:
    from msgsvc_core.service import Service

#: Milliseconds for which a browser waits for its Yes.
LASTS_MS = 10 * 60 * 1000


class MessengerSignIn:
    """`service.messenger_sign_in`."""

    def __init__(self, service: "Service") -> None:
        self._service = service

    @property
    def is_on(self) -> bool:
        return self._service.settings.accounts.messenger_sign_in

    def rules(self) -> list[InboundRule]:
        """What the bots do about it."""
        return Questions(self._service).rules() if self.is_on else []

    async def begin(
        self, tx: Tx, purpose: RequestPurpose, browser: Browser, account_id: str | None = None
    ) -> tuple[str, str]:
        """The secret of the link that starts a bot, and that of the browser that waits."""
        token, waiting = new_token(), new_token(256)
        now_ms = self._service.clock.now_ms()
        request = MessengerRequest(
            digest=digest_of(token),
            purpose=purpose,
            account_id=account_id,
            status="pending",
            ip=browser.ip,
            user_agent=browser.user_agent[:AGENT_LENGTH],
            created_at_ms=now_ms,
            expires_at_ms=now_ms + LASTS_MS,
        )
        await store.insert(tx, request, digest_of(waiting))
        return token, waiting

    def links(self, token: str) -> dict[str, str]:
        """The link for each bot that serves the whole installation, by the channel's name; one that has
        not told its name yet has none."""
        found = {}
        for channel in self._service.channels.shared:
            link = channel.link(START_PREFIX + token)
            if link is not None:
                found[channel.name] = link
        return found

    async def waiting(self, tx: Tx, secret: str) -> MessengerRequest | None:
        """What a browser waits for; None if nothing, or not any more."""
        now_ms = self._service.clock.now_ms()
        return await store.find_by_browser(tx, digest_of(secret), now_ms)

    async def claim(self, tx: Tx, secret: str) -> str | None:
        """The account of whoever said Yes, once; None for whoever comes second, or too early."""
        request = await self.waiting(tx, secret)
        if request is None or request.purpose != "sign_in" or request.account_id is None:
            return None
        taken = await store.settle(tx, request.digest, "confirmed", "used", None)
        return request.account_id if taken else None

    async def end_waiting(self, tx: Tx, account_id: str) -> None:
        """Has what was begun for an account, or said Yes to, come to nothing."""
        await store.end_of_account(tx, account_id)

    async def linked(self, tx: Tx, account_id: str) -> Sequence[LinkedMessenger]:
        """By which messengers somebody signs in."""
        return await store.list_linked(tx, account_id)

    async def unlink_all(self, tx: Tx, account_id: str) -> None:
        """Signs in by no messenger any more, nor by a Yes that is waited for."""
        await store.unlink_all(tx, account_id)
        await store.end_of_account(tx, account_id)

    async def unlink(self, tx: Tx, account_id: str, bot: str, user_id: str) -> None:
        """Raises `NotFound`."""
        if not await store.unlink(tx, account_id, bot, user_id):
            raise NotFound("that messenger is not linked any more")
