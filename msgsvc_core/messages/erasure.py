"""Deletes the messages to an erased subscriber."""

from collections.abc import Sequence

from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.db import Tx
from msgsvc_core.db.sql import array_param, in_array
from msgsvc_core.jobs.contract import JobContext, Stopping
from msgsvc_core.kernel.json import to_json
from msgsvc_core.messages import route_store

#: Messages deleted per transaction.
CHUNK = 500

#: The content of a message that can't be deleted yet, because its delivery has not ended.
_NOTHING = to_json(OutgoingMessage("").to_payload())


async def erase_messages(ctx: JobContext, project_id: str, subscriber_id: str) -> int:
    """Returns how many messages and copies are left, without content, because their delivery has not ended.

    Raises `Stopping` when the runner is shutting down.
    """
    after, left = "", 0
    async with ctx.transaction() as tx:
        left += await route_store.delete_of_subscriber(tx, project_id, subscriber_id)
    while True:
        if ctx.stopping:
            raise Stopping
        # Outside the transaction: without an index, as on SQLite, the search may take a while.
        async with ctx.reading() as tx:
            found = await _find(tx, project_id, subscriber_id, after, CHUNK)
        if not found:
            return left
        async with ctx.transaction() as tx:
            left += await _delete(tx, project_id, found)
        after = found[-1]


async def _find(tx: Tx, project_id: str, subscriber_id: str, after: str, limit: int) -> list[str]:
    """The ids of messages to a subscriber, in order."""
    rows = await tx.fetch_all(
        "SELECT message_id FROM core_messages WHERE project_id = :project_id"
        " AND subscriber_id = :subscriber_id AND message_id > :after"
        " ORDER BY message_id LIMIT :most",
        {"project_id": project_id, "subscriber_id": subscriber_id, "after": after, "most": limit},
    )
    return [row["message_id"] for row in rows]


async def _delete(tx: Tx, project_id: str, message_ids: Sequence[str]) -> int:
    """Deletes messages; of those whose delivery has not ended, only the content.

    Returns how many were not deleted.
    """
    these = in_array("message_id", "ids", tx.dialect)
    params = {"project_id": project_id, "ids": array_param(message_ids, tx.dialect)}
    await route_store.delete_of_ended(tx, project_id, message_ids)
    await tx.execute(
        f"DELETE FROM core_messages WHERE project_id = :project_id AND {these}"
        " AND status NOT IN ('queued', 'sending')",
        params,
    )
    return await tx.execute(
        "UPDATE core_messages SET content = :nothing, shown = NULL, metadata = NULL, error = NULL"
        f" WHERE project_id = :project_id AND {these}",
        {**params, "nothing": _NOTHING},
    )
