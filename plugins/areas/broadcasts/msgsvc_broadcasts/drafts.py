"""Tests of a broadcast before it is sent: the draft as a message to one subscriber."""

from collections.abc import Sequence

from msgsvc_broadcasts import store
from msgsvc_core.api.validation import validate
from msgsvc_core.billing import MESSAGE, BillingGate
from msgsvc_core.db import Tx
from msgsvc_core.mailings import MailingMessage
from msgsvc_core.mailings.service import Mailings
from msgsvc_core.messages.bodies import SendBody
from msgsvc_core.messages.models import Message
from msgsvc_core.messages.service import Messages
from msgsvc_core.subscribers.models import Subscriber
from msgsvc_core.subscribers.service import Subscribers


class DraftTests:
    """Sends drafts as messages of their own, and remembers to whom each member does."""

    def __init__(
        self,
        *,
        mailings: Mailings,
        messages: Messages,
        subscribers: Subscribers,
        billing: BillingGate,
    ) -> None:
        self._mailings = mailings
        self._messages = messages
        self._subscribers = subscribers
        self._billing = billing

    async def send(
        self, tx: Tx, project_id: str, draft: MailingMessage, subscriber_id: str
    ) -> Message:
        """Queues the draft for a subscriber, with their own values: a message like others, which counts
        and is charged as one, and is no part of a broadcast.

        Raises `SubscriberNotFound`, `BillingBlocked`, and what `Mailings.samples` and `POST /v1/send` do.
        """
        await self._billing.check(project_id, MESSAGE, tx)
        subscriber = await self._subscribers.get(tx, project_id, subscriber_id)
        message = await self._mailings.message_for(
            tx, project_id, draft, subscriber, self._subscribers.preferences
        )
        body = validate(
            SendBody,
            {
                **message.to_payload(),
                "subscriber_id": subscriber_id,
                "permission": draft.permission,
                "expires_in": draft.expires_in,
                "metadata": draft.metadata,
            },
        )
        return await self._messages.queue(tx, project_id, body)

    async def remember(self, tx: Tx, project_id: str, viewer_id: str, subscriber_id: str) -> None:
        """`viewer_id` is a member, or the account of an owner who is none."""
        await store.set_tester(tx, project_id, viewer_id, subscriber_id)

    async def forget(self, tx: Tx, project_id: str, viewer_id: str) -> None:
        await store.delete_tester(tx, project_id, viewer_id)

    async def testers(
        self, tx: Tx, project_id: str, viewer_id: str, own: Sequence[str]
    ) -> list[Subscriber]:
        """To whom somebody may want to send a test: who got their last one, then their `own` messenger
        accounts in the project."""
        last = await store.find_tester(tx, project_id, viewer_id)
        ids = dict.fromkeys([*([last] if last else []), *own])
        found = await self._subscribers.get_many(tx, [(project_id, each) for each in ids])
        return [found[project_id, each] for each in ids if (project_id, each) in found]
