"""The SQL of erasure."""

from msgsvc_core.db import Tx


async def delete_subscriber(tx: Tx, project_id: str, subscriber_id: str) -> bool:
    """Deletes the row, and by foreign keys tags, permissions and rows of plugins."""
    return bool(
        await tx.execute(
            "DELETE FROM core_subscribers"
            " WHERE project_id = :project_id AND subscriber_id = :subscriber_id",
            {"project_id": project_id, "subscriber_id": subscriber_id},
        )
    )
