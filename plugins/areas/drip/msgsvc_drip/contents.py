"""What the messages of a batch of steps come to: made once for all who are shown the same."""

import asyncio
from collections.abc import Iterable
from dataclasses import replace

from msgsvc_core.errors import ApiError
from msgsvc_core.messages import SendBody
from msgsvc_core.messages.service import Judged
from msgsvc_core.record import record
from msgsvc_core.service import Service
from msgsvc_core.subscribers.models import Receiver, Subscriber
from msgsvc_drip.course import StepMessage

#: What two people must have in common to be shown the same: project, bot and language; and with a
#: template their names, which it may hold.
_Likeness = tuple[str | None, ...]


@record
class Made:
    """A message as it is sent to somebody."""

    body: SendBody
    judged: Judged


class Contents:
    """The messages of one batch."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._made: dict[tuple[int, _Likeness], Made | ApiError] = {}

    async def make(self, wanted: Iterable[tuple[StepMessage, Subscriber]]) -> None:
        """Makes all that is wanted; what differs at the same time, so that questions to the database
        are asked together. Raises what is no fault of the message."""
        first = {_key(message, person): (message, person) for message, person in wanted}
        made = await asyncio.gather(*(self._one(*each) for each in first.values()))
        self._made = dict(zip(first, made, strict=True))

    def of(self, message: StepMessage, person: Subscriber) -> Made:
        """What was made for somebody. Raises the errors of `POST /v1/send`."""
        made = self._made[_key(message, person)]
        if isinstance(made, ApiError):
            raise made
        return Made(made.body, replace(made.judged, receiver=_receiver(person)))

    async def _one(self, message: StepMessage, person: Subscriber) -> Made | ApiError:
        try:
            body = message.to_body(person, self._service.settings.default_lang)
            return Made(body, await self._service.messages.judge(person.project_id, body))
        except ApiError as error:
            if error.status >= 500:
                raise
            return error


def _key(message: StepMessage, person: Subscriber) -> tuple[int, _Likeness]:
    names = (person.first_name, person.username) if message.template is not None else ()
    return id(message), (person.project_id, person.bot, person.lang, *names)


def _receiver(person: Subscriber) -> Receiver:
    return Receiver(
        subscriber_id=person.subscriber_id,
        channel=person.channel,
        bot=person.bot,
        status=person.status,
        last_seen_at_ms=person.last_seen_at_ms,
        lang=person.lang,
    )
