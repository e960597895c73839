"""Confirms a sign-in in one transaction: code, subscription, event and charge."""

from dataclasses import dataclass

from msgsvc_auth import store
from msgsvc_auth.codes import Codes
from msgsvc_auth.models import Session
from msgsvc_core.billing import BillingGate, Charge
from msgsvc_core.channels import ChannelUser, Identity
from msgsvc_core.db import Tx
from msgsvc_core.events import Events
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.subscribers.contacts import VerifiedContacts
from msgsvc_core.subscribers.models import Subscriber
from msgsvc_core.subscribers.service import Subscribers

#: The paid operation of this plugin (decision 0075: a credit per confirmation).
CONFIRMED = "auth.confirmed"


@dataclass(frozen=True, slots=True)
class Confirmed:
    """The result of a Yes."""

    session: Session
    subscriber: Subscriber
    code: str


class Confirmations:
    """Confirms sessions. A code can be exchanged for `code_lifetime_s` seconds."""

    def __init__(
        self,
        *,
        clock: Clock,
        codes: Codes,
        subscribers: Subscribers,
        events: Events,
        billing: BillingGate,
        contacts: VerifiedContacts,
        code_lifetime_s: int,
    ) -> None:
        self._clock = clock
        self._codes = codes
        self._subscribers = subscribers
        self._events = events
        self._billing = billing
        self._contacts = contacts
        self._code_lifetime_s = code_lifetime_s

    async def confirm(
        self,
        tx: Tx,
        session: Session,
        channel: str,
        user: ChannelUser,
        chat_id: str,
        *,
        proves: Identity,
        on_platform: bool = False,
    ) -> Confirmed | None:
        """None if the session does not wait any more; nothing happens then."""
        now_ms = self._clock.now_ms()
        code = self._codes.issue(session.session_id)
        confirmed = await store.confirm(
            tx,
            session,
            code,
            now_ms=now_ms,
            code_expires_at_ms=now_ms + self._code_lifetime_s * 1000,
            proves=proves,
            on_platform=on_platform,
        )
        if confirmed is None:
            return None
        if session.is_direct:
            return await self._finish_direct(tx, confirmed, code.code)
        # Only after the update: a concurrent second Yes that does not count must not subscribe.
        subscriber = await self._subscribers.ensure(
            tx, session.project_id, channel, user, chat_id, source="auth"
        )
        await self._contacts.record_address(tx, subscriber)
        await store.set_subscriber(tx, confirmed, subscriber.subscriber_id)
        await self._emit_completed(tx, confirmed, subscriber)
        await self._charge(tx, confirmed)
        return Confirmed(confirmed, subscriber, code.code)

    async def _finish_direct(self, tx: Tx, confirmed: Session, code: str) -> Confirmed:
        """The person is known, and approved something: that subscribes nobody anew, and is no sign-in of
        which others are told (decision 0096)."""
        assert confirmed.subscriber_id is not None
        subscriber = await self._subscribers.get(tx, confirmed.project_id, confirmed.subscriber_id)
        await self._charge(tx, confirmed)
        return Confirmed(confirmed, subscriber, code)

    async def is_of(self, tx: Tx, session: Session, channel: str, user: ChannelUser) -> bool:
        """Whether it is this person whose Yes counted."""
        if session.subscriber_id is None or session.confirmed_at_ms is None:
            return False
        winner = await self._subscribers.get(tx, session.project_id, session.subscriber_id)
        return (winner.bot, winner.user_id) == (channel, user.user_id)

    async def _charge(self, tx: Tx, session: Session) -> None:
        # Not refusable: the person has answered, and the bill is not theirs.
        charge = Charge(session.project_id, CONFIRMED, session.session_id, refusable=False)
        await self._billing.charge(tx, charge)

    async def _emit_completed(self, tx: Tx, session: Session, subscriber: Subscriber) -> None:
        fields = {
            "session_id": session.session_id,
            "state": session.state,
            "auth_time": session.auth_time,
            "proves": session.proves,
        }
        await self._events.emit(
            tx, session.project_id, "auth.completed", fields, subscriber=subscriber
        )
