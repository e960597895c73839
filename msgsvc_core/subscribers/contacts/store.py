"""The SQL of verified contacts: one row for each subscriber and kind."""

from collections.abc import Sequence

from msgsvc_core.db import Row, Tx
from msgsvc_core.db.sql import array_param, for_key_share, in_array
from msgsvc_core.subscribers.contacts.models import ContactKind, ContactRow

_COLUMNS = "project_id, subscriber_id, kind, value, key_mark, value_hash, source, verified_at_ms"


async def save(tx: Tx, contact: ContactRow) -> bool:
    """Inserts a contact, or replaces that of its kind; False if the subscriber does not exist."""
    return bool(
        await tx.execute(
            f"INSERT INTO core_subscriber_contacts ({_COLUMNS})"
            " SELECT s.project_id, s.subscriber_id, CAST(:kind AS TEXT), CAST(:value AS TEXT),"
            " CAST(:key_mark AS TEXT), CAST(:value_hash AS TEXT), CAST(:source AS TEXT),"
            " CAST(:verified_at_ms AS BIGINT)"
            " FROM core_subscribers s"
            " WHERE s.project_id = :project_id AND s.subscriber_id = :subscriber_id"
            f"{for_key_share(tx.dialect)}"
            " ON CONFLICT (project_id, subscriber_id, kind) DO UPDATE SET value = excluded.value,"
            " key_mark = excluded.key_mark, value_hash = excluded.value_hash, source = excluded.source,"
            " verified_at_ms = excluded.verified_at_ms",
            {
                "project_id": contact.project_id,
                "subscriber_id": contact.subscriber_id,
                "kind": contact.kind,
                "value": contact.sealed,
                "key_mark": contact.key_mark,
                "value_hash": contact.value_hash,
                "source": contact.source,
                "verified_at_ms": contact.verified_at_ms,
            },
        )
    )


async def list_of(tx: Tx, project_id: str, subscriber_ids: Sequence[str]) -> list[ContactRow]:
    """The contacts of these subscribers."""
    rows = await tx.fetch_all(
        f"SELECT {_COLUMNS} FROM core_subscriber_contacts WHERE project_id = :project_id"
        f" AND {in_array('subscriber_id', 'subscriber_ids', tx.dialect)}",
        {
            "project_id": project_id,
            "subscriber_ids": array_param(subscriber_ids, tx.dialect),
        },
    )
    return [_contact(row) for row in rows]


async def list_holders(
    tx: Tx, project_id: str, kind: ContactKind, hashes: Sequence[str]
) -> list[str]:
    """The subscribers with one of these contacts."""
    rows = await tx.fetch_all(
        "SELECT subscriber_id FROM core_subscriber_contacts WHERE project_id = :project_id"
        f" AND kind = :kind AND {in_array('value_hash', 'hashes', tx.dialect)}"
        " ORDER BY verified_at_ms DESC, subscriber_id",
        {
            "project_id": project_id,
            "kind": kind,
            "hashes": array_param(hashes, tx.dialect),
        },
    )
    return [row["subscriber_id"] for row in rows]


def _contact(row: Row) -> ContactRow:
    return ContactRow(
        project_id=row["project_id"],
        subscriber_id=row["subscriber_id"],
        kind=row["kind"],
        sealed=row["value"],
        key_mark=row["key_mark"],
        value_hash=row["value_hash"],
        source=row["source"],
        verified_at_ms=row["verified_at_ms"],
    )
