"""Verified contacts in memory."""

from collections.abc import Sequence

from msgsvc_core.db import Tx
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import InvalidValue, ValidationFailed
from msgsvc_core.subscribers.contacts.models import ContactKind, Contacts, normalized_contact
from msgsvc_core.subscribers.contacts.service import VerifiedContacts
from msgsvc_devkit.clock import FakeClock
from msgsvc_devkit.fakes.secrets import fake_secrets
from msgsvc_devkit.fakes.subscribers import FakeSubscribers


class FakeContacts(VerifiedContacts):
    """`known` contains the contacts by project and subscriber, `sources` what verified them, by kind too."""

    def __init__(
        self, *, clock: Clock | None = None, subscribers: FakeSubscribers | None = None
    ) -> None:
        subscribers = subscribers or FakeSubscribers(clock=clock)
        super().__init__(
            clock=clock or FakeClock(), secrets=fake_secrets(), channels=subscribers.channels
        )
        self._subscribers = subscribers
        self.known: dict[tuple[str, str], Contacts] = {}
        self.sources: dict[tuple[str, str, ContactKind], str] = {}

    async def record(
        self,
        tx: Tx,
        project_id: str,
        subscriber_id: str,
        *,
        kind: ContactKind,
        value: str,
        source: str,
    ) -> None:
        try:
            value = normalized_contact(kind, value)
        except InvalidValue as error:
            raise ValidationFailed.of(error.findings) from None
        await self._subscribers.get(tx, project_id, subscriber_id)
        known = self.known.get((project_id, subscriber_id), Contacts())
        self.known[project_id, subscriber_id] = known.with_contact(
            kind, value, self._clock.now_ms()
        )
        self.sources[project_id, subscriber_id, kind] = source

    async def find_many(
        self, tx: Tx, project_id: str, subscriber_ids: Sequence[str]
    ) -> dict[str, Contacts]:
        found = {one: self.known.get((project_id, one)) for one in subscriber_ids}
        return {one: contacts for one, contacts in found.items() if contacts is not None}

    async def find_holders(
        self, tx: Tx, project_id: str, kind: ContactKind, value: str
    ) -> list[str]:
        value = normalized_contact(kind, value)
        return [
            subscriber_id
            for (project, subscriber_id), contacts in self.known.items()
            if project == project_id and value == getattr(contacts, kind)
        ]
