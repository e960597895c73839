"""The SQL of batches."""

from collections.abc import Sequence

from msgsvc_core.db import Row, Tx, WriteBatch
from msgsvc_core.db.sql import key_params, key_table
from msgsvc_core.kernel.values import value_object
from msgsvc_core.messages.batches.models import Batch

_COLUMNS = (
    "project_id, batch_id, total, sent, failed, skipped, created_at_ms, finished_at_ms, unknown"
)

#: The columns of `keys`; named unlike the table's, which RETURNING on PostgreSQL could not tell apart.
_KEYS = ("project", "batch", "more_sent", "more_failed", "more_skipped", "more_unknown")


@value_object
class Ended:
    """How many messages of a batch have just ended."""

    project_id: str
    batch_id: str
    sent: int
    #: Those of `unknown` among them.
    failed: int
    skipped: int
    unknown: int


def add(unit: WriteBatch, batch: Batch) -> None:
    """Adds a new batch."""
    unit.insert(
        "core_batches",
        {
            "project_id": batch.project_id,
            "batch_id": batch.batch_id,
            "total": batch.total,
            "sent": 0,
            "failed": 0,
            "unknown": 0,
            "skipped": 0,
            "created_at_ms": batch.created_at_ms,
            "finished_at_ms": batch.finished_at_ms,
        },
    )


async def find_many(tx: Tx, keys: Sequence[tuple[str, str]]) -> list[Batch]:
    """Batches by (project_id, batch_id), of several projects at once."""
    columns = ", ".join(f"b.{column}" for column in _COLUMNS.split(", "))
    rows = await tx.fetch_all(
        f"SELECT {columns} FROM {key_table(_KEYS[:2], tx.dialect)} CROSS JOIN core_batches b"
        " WHERE b.project_id = keys.project AND b.batch_id = keys.batch",
        key_params(keys, tx.dialect),
    )
    return [_batch(row) for row in rows]


async def count(tx: Tx, ended: Sequence[Ended], now_ms: int) -> list[Batch]:
    """Adds to what has ended of each batch; returns those of which all has, now."""
    rows = sorted(
        (
            *(one.project_id, one.batch_id),
            *map(str, (one.sent, one.failed, one.skipped, one.unknown)),
        )
        for one in ended
    )
    await _lock(tx, [(row[0], row[1]) for row in rows])
    more = {column: f"CAST(keys.{column} AS integer)" for column in _KEYS[2:]}
    ending = " + ".join(more[column] for column in ("more_sent", "more_failed", "more_skipped"))
    found = await tx.fetch_all(
        f"UPDATE core_batches AS b SET sent = b.sent + {more['more_sent']},"
        f" failed = b.failed + {more['more_failed']}, skipped = b.skipped + {more['more_skipped']},"
        f" unknown = b.unknown + {more['more_unknown']},"
        f" finished_at_ms = CASE WHEN b.sent + b.failed + b.skipped + {ending}"
        " >= b.total THEN CAST(:now_ms AS bigint) END"
        f" FROM {key_table(_KEYS, tx.dialect)}"
        " WHERE b.project_id = keys.project AND b.batch_id = keys.batch"
        f" AND b.finished_at_ms IS NULL RETURNING {_COLUMNS}",
        {**key_params(rows, tx.dialect), "now_ms": now_ms},
    )
    return [batch for batch in map(_batch, found) if batch.finished_at_ms is not None]


async def correct(tx: Tx, known: Sequence[Ended], with_rows_of: Sequence[Ended] = ()) -> None:
    """Counts messages that were counted as `unknown`, and so as failed, as what they are; whether their
    batch has ended stays as it is. The rows of `with_rows_of` are taken with theirs, in one order."""
    await _lock(tx, sorted({(one.project_id, one.batch_id) for one in (*known, *with_rows_of)}))
    await tx.execute(
        "UPDATE core_batches AS b SET sent = b.sent + CAST(keys.now_sent AS integer),"
        " failed = b.failed - CAST(keys.now_sent AS integer),"
        " unknown = b.unknown - CAST(keys.now_known AS integer)"
        f" FROM {key_table(('project', 'batch', 'now_sent', 'now_known'), tx.dialect)}"
        " WHERE b.project_id = keys.project AND b.batch_id = keys.batch",
        key_params(
            [
                (one.project_id, one.batch_id, str(one.sent), str(one.sent + one.failed))
                for one in known
            ],
            tx.dialect,
        ),
    )


async def count_failed(tx: Tx, failed: Sequence[Ended]) -> None:
    """Counts messages as failed that were counted as sent; whether their batch has ended stays as it is."""
    await _lock(tx, sorted({(one.project_id, one.batch_id) for one in failed}))
    await tx.execute(
        "UPDATE core_batches AS b SET sent = b.sent - CAST(keys.failed AS integer),"
        " failed = b.failed + CAST(keys.failed AS integer)"
        f" FROM {key_table(('project', 'batch', 'failed'), tx.dialect)}"
        " WHERE b.project_id = keys.project AND b.batch_id = keys.batch",
        key_params([(one.project_id, one.batch_id, str(one.failed)) for one in failed], tx.dialect),
    )


async def _lock(tx: Tx, keys: Sequence[tuple[str, str]]) -> None:
    """Takes the rows in the order of their keys: an UPDATE takes them in any, and two lanes that end
    messages of the same two batches would wait for each other."""
    if tx.dialect == "postgresql" and len(keys) > 1:
        await tx.fetch_all(
            f"SELECT b.batch_id FROM {key_table(_KEYS[:2], tx.dialect)} CROSS JOIN core_batches b"
            " WHERE b.project_id = keys.project AND b.batch_id = keys.batch"
            " ORDER BY b.project_id, b.batch_id FOR UPDATE OF b",
            key_params(keys, tx.dialect),
        )


def _batch(row: Row) -> Batch:
    return Batch(**{column: row[column] for column in _COLUMNS.split(", ")})
