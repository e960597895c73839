"""Validates scheduled messages when saved, and queues them when due."""

from dataclasses import replace
from typing import Any, Literal

from msgsvc_core.api.validation import validate
from msgsvc_core.billing import MESSAGE, BillingGate
from msgsvc_core.db import Tx, WriteBatch
from msgsvc_core.kernel.errors import ApiError, BillingBlocked, Conflict
from msgsvc_core.mailings import Audience, MailingMessage, NewMailing
from msgsvc_core.mailings.service import Mailings
from msgsvc_core.messages.bodies import SendBody
from msgsvc_core.messages.service import Messages
from msgsvc_scheduling.models import Outcome, Record

#: What marks the mailings that were scheduled.
SOURCE = "scheduled"


class Sending:
    """Queues messages in the core."""

    def __init__(self, *, billing: BillingGate, messages: Messages, mailings: Mailings) -> None:
        self._billing = billing
        self._messages = messages
        self._mailings = mailings

    async def check(self, tx: Tx, record: Record) -> None:
        """Whether it could be sent now, but for a route none of whose steps reaches the person at this hour.
        Raises the errors of `POST /v1/send`, or of a broadcast."""
        if record.subscriber_id is not None:
            body, route_id = _to_one(record), record.route_id
            try:
                await self._messages.prepare(record.project_id, body, tx, route_id=route_id)
            except Conflict:
                if route_id is None:
                    raise
        else:
            await self._mailings.count(tx, record.project_id, _to_many(record))

    async def send_to_one(self, unit: WriteBatch, record: Record) -> Outcome:
        """Adds the message to what is written together; what can't be sent adds nothing."""
        try:
            body = _to_one(record)
            await self._billing.check(record.project_id, MESSAGE)
            prepared = await self._messages.prepare(
                record.project_id, body, route_id=record.route_id
            )
        except BillingBlocked as error:
            return _unpaid(error)
        except ApiError as error:
            # If no step of a route reaches the person now, the next time may be another.
            is_skipped = isinstance(error, Conflict) and record.route_id is not None
            outcome: Literal["skipped", "failed"] = "skipped" if is_skipped else "failed"
            return Outcome(outcome, reason=error.code, error=error.message)
        if (status := prepared.receiver.status) != "active":
            return Outcome("skipped", reason=status, error=f"the subscriber is {status}")
        message = self._messages.put(unit, record.project_id, body, prepared)
        return Outcome("sent", message_id=message.message_id)

    async def send_to_many(self, tx: Tx, record: Record) -> Outcome:
        """Starts the mailing; what can't be sent leaves nothing behind."""
        try:
            async with tx.savepoint():
                new = replace(_to_many(record), was_kept=True)
                mailing = await self._mailings.start(tx, record.project_id, new)
        except BillingBlocked as error:
            return _unpaid(error)
        except ApiError as error:
            return Outcome("failed", reason=error.code, error=error.message)
        return Outcome("sent", job_id=mailing.job_id)


def _unpaid(error: BillingBlocked) -> Outcome:
    """Nothing is wrong with it: a recurring one is sent again when credits are there."""
    return Outcome("skipped", reason=error.code, error=error.message)


def _to_one(record: Record) -> SendBody:
    """Raises `ValidationFailed`: what a message to one subscriber may hold is less than a mailing's."""
    return validate(SendBody, {**_without_route(record), "subscriber_id": record.subscriber_id})


def _to_many(record: Record) -> NewMailing:
    message = validate(MailingMessage, _without_route(record), languages=None)
    asked = validate(Audience, record.audience, languages=None)
    return NewMailing(SOURCE, message, asked, route_id=record.route_id)


def _without_route(record: Record) -> dict[str, Any]:
    return {name: value for name, value in record.message.items() if name != "route_id"}
