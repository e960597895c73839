"""Verified contacts: phone numbers and email addresses, encrypted at rest."""

from collections import defaultdict
from collections.abc import Sequence

import structlog

from msgsvc_core.db import Tx
from msgsvc_core.jobs import Job, JobContext, JobSpec, in_steps
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import InvalidValue, SubscriberNotFound, ValidationFailed
from msgsvc_core.security.sealed import SealedColumn
from msgsvc_core.security.secret_box import DecryptionError, Row, SecretBox
from msgsvc_core.subscribers.contacts import store
from msgsvc_core.subscribers.contacts.models import (
    ContactKind,
    ContactRow,
    Contacts,
    normalized_contact,
)

SEALED = SealedColumn("core_subscriber_contacts", "value")

#: The job that re-encrypts contacts after a rotation of `secret_keys`.
RESEAL = "core.reseal_contacts"

#: Contacts re-encrypted in a transaction: some 50 µs each.
_STEP = 200

log = structlog.get_logger(__name__)


class VerifiedContacts:
    """`service.contacts`. A subscriber has at most one contact of each kind: the one verified last."""

    def __init__(self, *, clock: Clock, secrets: SecretBox) -> None:
        self._clock = clock
        self._secrets = secrets

    @property
    def spec(self) -> JobSpec:
        return JobSpec(RESEAL, self.reseal, every_s=3600)

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
        """Saves a contact that was verified now, in place of an earlier one of its kind.

        `source` names what verified it, e.g. the channel `telegram`. Raises `ValidationFailed` for a value
        that is not a phone number with its country code, or not an email address; the error does not contain
        it. Raises `SubscriberNotFound`.
        """
        try:
            value = normalized_contact(kind, value)
        except InvalidValue as error:
            raise ValidationFailed.of(error.findings) from None
        contact = ContactRow(
            project_id=project_id,
            subscriber_id=subscriber_id,
            kind=kind,
            sealed=self._secrets.encrypt(value, _row_of(project_id, subscriber_id, kind)),
            key_mark=self._key_mark,
            source=source,
            verified_at_ms=self._clock.now_ms(),
        )
        if not await store.save(tx, contact):
            raise SubscriberNotFound(
                "there is no subscriber {subscriber_id!r}", subscriber_id=subscriber_id
            )

    async def find(self, tx: Tx, project_id: str, subscriber_id: str) -> Contacts:
        """A subscriber's verified contacts; without any for an unknown subscriber, and for another
        project's."""
        found = await self.find_many(tx, project_id, [subscriber_id])
        return found.get(subscriber_id, Contacts())

    async def find_many(
        self, tx: Tx, project_id: str, subscriber_ids: Sequence[str]
    ) -> dict[str, Contacts]:
        """The contacts of those subscribers that have any."""
        if not subscriber_ids:
            return {}
        found: defaultdict[str, Contacts] = defaultdict(Contacts)
        for row in await store.list_of(tx, project_id, subscriber_ids):
            value = self._read(row)
            if value is not None:
                known = found[row.subscriber_id]
                found[row.subscriber_id] = known.with_contact(row.kind, value, row.verified_at_ms)
        return dict(found)

    async def reseal(self, ctx: JobContext, _jobs: Sequence[Job]) -> None:
        """Re-encrypts contacts that are encrypted under an older secret key."""
        after = ("", "", "")

        async def some(tx: Tx, most: int) -> int:
            nonlocal after
            found = await store.list_older(tx, self._key_mark, after, most)
            for contact in found:
                await self._reseal(tx, contact)
                # Those that no key reads are passed over, and tried again by the next run.
                after = (contact.project_id, contact.subscriber_id, contact.kind)
            return len(found)

        await in_steps(ctx, some, _STEP)

    async def _reseal(self, tx: Tx, contact: ContactRow) -> None:
        row = _row_of(contact.project_id, contact.subscriber_id, contact.kind)
        try:
            sealed = self._secrets.renewed(contact.sealed, row)
        except DecryptionError:
            # Counted by `msgsvc doctor`, which says what to do.
            return
        await store.reseal(tx, contact, sealed or contact.sealed, self._key_mark)

    def _read(self, contact: ContactRow) -> str | None:
        row = _row_of(contact.project_id, contact.subscriber_id, contact.kind)
        try:
            return self._secrets.decrypt(contact.sealed, row)
        except DecryptionError:
            # As if unknown: a lost key must not prevent an export or a sign-in.
            log.warning(
                "contact_unreadable", subscriber_id=contact.subscriber_id, kind=contact.kind
            )
            return None

    @property
    def _key_mark(self) -> str:
        """Says that a value is encrypted with the current key, without a decryption."""
        return self._secrets.keyed_hash("contact key", "")[:16]


def _row_of(project_id: str, subscriber_id: str, kind: ContactKind) -> Row:
    return f"{SEALED.table}.{SEALED.column}", project_id, subscriber_id, kind
