"""Sign-in to the dashboard with a messenger that was linked to the account before.

A member's link to a messenger (`MemberLinks`) gives no access to an account: it is created by
managers of a project, who could open it themselves and take over the account. Nor does a press that a user
was talked into: the bot offers three numbers, and the right one is on the page of the waiting browser
(docs/decisions/0005-sign-in.md).
"""

from collections.abc import Sequence

from msgsvc_core.channels import Channel
from msgsvc_core.channels.registry import Channels
from msgsvc_core.db import Tx
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import NotFound
from msgsvc_core.kernel.ids import new_token
from msgsvc_core.security import new_number
from msgsvc_dashboard.accounts import request_store as store
from msgsvc_dashboard.accounts.models import (
    BegunRequest,
    Browser,
    LinkedMessenger,
    MessengerRequest,
    MessengerWay,
    RequestPurpose,
)
from msgsvc_dashboard.accounts.questions import START_PREFIX
from msgsvc_dashboard.accounts.service import AGENT_LENGTH, digest_of
from msgsvc_dashboard.settings import AccountSettings

#: In place of a project's id: channels that serve the whole installation.
SHARED = ""

#: Milliseconds for which a browser waits for its number to be picked.
LASTS_MS = 10 * 60 * 1000


class MessengerSignIn:
    """`service.get(MessengerSignIn)`."""

    def __init__(self, *, clock: Clock, settings: AccountSettings, channels: Channels) -> None:
        self._clock = clock
        self._settings = settings
        self._channels = channels

    @property
    def is_on(self) -> bool:
        return self._settings.messenger_sign_in

    async def begin(
        self, tx: Tx, purpose: RequestPurpose, browser: Browser, account_id: str | None = None
    ) -> BegunRequest:
        """Begins to wait for somebody to pick the number in a messenger."""
        token, waiting = new_token(), new_token(256)
        now_ms = self._clock.now_ms()
        request = MessengerRequest(
            digest=digest_of(token),
            purpose=purpose,
            account_id=account_id,
            status="pending",
            ip=browser.ip,
            user_agent=browser.user_agent[:AGENT_LENGTH],
            created_at_ms=now_ms,
            expires_at_ms=now_ms + LASTS_MS,
            number=new_number(),
        )
        await store.insert(tx, request, digest_of(waiting))
        await self._channels.remember_start(tx, SHARED, START_PREFIX + token, request.expires_at_ms)
        return BegunRequest(token, waiting, request.number)

    def ways(self, token: str) -> list[MessengerWay]:
        """How to come to each bot that serves the whole installation and takes answers; one that has not
        told its name yet is left out."""
        payload, channels = START_PREFIX + token, self._channels
        messages = channels.start_messages(SHARED, payload, [each.name for each in self._usable])
        return [
            MessengerWay(
                channel.name,
                channels.display_name(channel.name),
                link,
                messages.get(channel.name),
            )
            for channel in self._usable
            if (link := channel.link(payload)) is not None
        ]

    @property
    def _usable(self) -> list[Channel]:
        return [each for each in self._channels.shared if each.capabilities.answers]

    async def waiting(self, tx: Tx, secret: str) -> MessengerRequest | None:
        """What a browser waits for; None if nothing, or not any more."""
        now_ms = self._clock.now_ms()
        return await store.find_by_browser(tx, digest_of(secret), now_ms)

    async def claim(self, tx: Tx, secret: str) -> str | None:
        """The account of whoever picked the number, once; None for whoever comes second, or too early."""
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
