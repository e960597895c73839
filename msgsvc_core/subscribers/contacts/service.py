"""Verified contacts: phone numbers and email addresses, encrypted at rest."""

from collections import defaultdict
from collections.abc import Sequence

import structlog

from msgsvc_core.channels.contract import Identity
from msgsvc_core.channels.registry import Channels
from msgsvc_core.db import Tx
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import InvalidValue, SubscriberNotFound, ValidationFailed
from msgsvc_core.security.sealed import SealedColumn
from msgsvc_core.security.secret_box import DecryptionError, Row, SecretBox
from msgsvc_core.subscribers.contacts import store
from msgsvc_core.subscribers.contacts.models import (
    ContactKind,
    ContactRow,
    Contacts,
    contact_of_platform,
    normalized_contact,
)
from msgsvc_core.subscribers.models import Subscriber

SEALED = SealedColumn(
    table="core_subscriber_contacts",
    column="value",
    key=("project_id", "subscriber_id", "kind"),
    bound_to=("project_id", "subscriber_id", "kind"),
    key_id_column="key_mark",
    hash_column="value_hash",
    holds="{count} verified phone number(s) and email address(es) of subscribers",
    if_lost="they are unknown until people share them again, e.g. at their next sign-in",
)

#: The contact that an address is, by what its channel proves.
_KINDS: dict[Identity, ContactKind] = {"mailbox": "email", "phone": "phone"}

log = structlog.get_logger(__name__)


class VerifiedContacts:
    """`service.contacts`. A subscriber has at most one contact of each kind: the one verified last."""

    def __init__(
        self,
        *,
        clock: Clock,
        secrets: SecretBox,
        channels: Channels,
        default_country: str | None = None,
    ) -> None:
        self._default_country = default_country
        self._clock = clock
        self._channels = channels
        self._secrets = secrets

    async def record_address(self, tx: Tx, subscriber: Subscriber) -> None:
        """Saves a subscriber's own address on a channel of addresses, whose access to it was proven now.
        Does nothing on other channels."""
        channel = self._channels.resolve(subscriber.project_id, subscriber.channel)
        if channel is None or not channel.capabilities.addresses:
            return
        kind = _KINDS.get(channel.capabilities.identity)
        if kind is not None:
            await self.record(
                tx,
                subscriber.project_id,
                subscriber.subscriber_id,
                kind=kind,
                value=subscriber.user_id,
                source=channel.name,
            )

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
            value = contact_of_platform(kind, value)
        except InvalidValue as error:
            raise ValidationFailed.of(error.findings) from None
        contact = ContactRow(
            project_id=project_id,
            subscriber_id=subscriber_id,
            kind=kind,
            sealed=self._secrets.encrypt(value, _row_of(project_id, subscriber_id, kind)),
            key_mark=self._key_mark,
            value_hash=SEALED.hash_of(self._secrets, value),
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

    def normalized(self, kind: ContactKind, value: str) -> str:
        """What a person or a program typed, as contacts are stored. Raises `InvalidValue`."""
        return normalized_contact(kind, value, self._default_country)

    async def find_holders(
        self, tx: Tx, project_id: str, kind: ContactKind, value: str
    ) -> list[str]:
        """The ids of a project's subscribers whose verified contact this is, on all channels.

        Raises `InvalidValue` for a value that is not a phone number with its country code, or not an email
        address. Contacts of an earlier release are found once the hourly job has hashed them.
        """
        hashes = SEALED.hashes_of(self._secrets, self.normalized(kind, value))
        return await store.list_holders(tx, project_id, kind, hashes)

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
        return self._secrets.key_ids[0]


def _row_of(project_id: str, subscriber_id: str, kind: ContactKind) -> Row:
    return f"{SEALED.table}.{SEALED.column}", project_id, subscriber_id, kind
