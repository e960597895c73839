"""The SQL of a filtered list of messages: newest first, along the index of one of its filters.

See docs/decisions/0044-lists-of-a-million.md.
"""

from typing import Any, get_args

from msgsvc_core.db.sql import Dialect
from msgsvc_core.messages.models import MessageQuery, MessageStatus

#: The status that most messages end with, which the index by status leaves out.
MOST = "sent"

#: Where a subscriber's messages are on SQLite: in two indexes, see the migration core_0012.
_PLACES = ("finished_at_ms IS NULL", "finished_at_ms IS NOT NULL")


def page_of(
    columns: str, project_id: str, query: MessageQuery, after: str | None, dialect: Dialect
) -> tuple[str, dict[str, Any]]:
    """The query of a page, which has its size in `:most`, and its other parameters.

    What the page leaves out by `created_after` is for the caller.
    """
    conditions, params = _conditions(query, dialect)
    params["project_id"] = project_id
    if after is not None:
        conditions.append("message_id < :after")
        params["after"] = after

    def select(*more: str) -> str:
        where = " AND ".join(("project_id = :project_id", *conditions, *more))
        ending = "ORDER BY message_id DESC LIMIT :most"
        return f"SELECT {columns} FROM core_messages WHERE {where} {ending}"

    if dialect == "sqlite" and query.subscriber_id is not None and query.batch_id is None:
        halves = " UNION ALL ".join(f"SELECT * FROM ({select(place)})" for place in _PLACES)
        return f"{halves} ORDER BY message_id DESC LIMIT :most", params
    return select(), params


def _conditions(query: MessageQuery, dialect: Dialect) -> tuple[list[str], dict[str, Any]]:
    """Those of the filters that are set. The first, which leaves the fewest, leads."""
    columns = ["batch_id", "subscriber_id", "reason", "status", "channel"]
    if query.status == MOST:
        columns = ["batch_id", "subscriber_id", "reason", "channel", "status"]
    conditions: list[str] = []
    params: dict[str, Any] = {}
    for column in columns:
        if (value := getattr(query, column)) is None:
            continue
        # SQLite has no statistics to choose by, and takes no index for a column with a plus.
        passive = "+" if dialect == "sqlite" and conditions else ""
        if column == "status" and value != MOST:
            # Both are written out, as the index has them.
            assert value in get_args(MessageStatus), "it stands in the SQL"
            conditions.append(f"{passive}status = '{value}' AND {passive}status <> '{MOST}'")
            continue
        conditions.append(f"{passive}{column} = :{column}")
        params[column] = value
    return conditions, params
