"""The SQL of a filtered list of messages: newest first, along the index of one of its filters.

See docs/decisions/0044-lists-of-a-million.md.
"""

from typing import Any, get_args

from msgsvc_core.db.sql import Dialect
from msgsvc_core.messages.models import MessageQuery, MessageStatus

#: The status of most messages, which the index by status omits.
MOST = "sent"

#: Where a subscriber's messages are on SQLite: most in the index by subscriber, and those not in it yet in
#: the index of such messages, by project; see `filing`.
_FILED, _UNFILED = "filed = 1", "filed IS NULL"


def page_of(
    columns: str, project_id: str, query: MessageQuery, after: str | None, dialect: Dialect
) -> tuple[str, dict[str, Any]]:
    """The query of a page, with its size in `:most`, and its other parameters.

    The caller applies `created_after`.
    """
    params: dict[str, Any] = {"project_id": project_id}
    if after is not None:
        params["after"] = after

    def select(place: str | None = None, *, leads: bool = False) -> str:
        conditions = ["project_id = :project_id"]
        if place is not None:
            conditions.append(place)
        conditions += _conditions(query, dialect, params, is_led=leads)
        if after is not None:
            conditions.append("message_id < :after")
        ending = "ORDER BY message_id DESC LIMIT :most"
        return f"SELECT {columns} FROM core_messages WHERE {' AND '.join(conditions)} {ending}"

    if dialect == "sqlite" and query.subscriber_id is not None and query.batch_id is None:
        places = (select(_FILED), select(_UNFILED, leads=True))
        parts = " UNION ALL ".join(f"SELECT * FROM ({part})" for part in places)
        return f"{parts} ORDER BY message_id DESC LIMIT :most", params
    return select(), params


def _conditions(
    query: MessageQuery, dialect: Dialect, params: dict[str, Any], *, is_led: bool
) -> list[str]:
    """The conditions of the filters that are set; `params` gets their values. The first, which is the most
    selective, determines the index, unless the page `is_led` by the condition before them."""
    columns = ["batch_id", "subscriber_id", "reason", "status", "channel"]
    if query.status == MOST:
        columns = ["batch_id", "subscriber_id", "reason", "channel", "status"]
    conditions: list[str] = []
    for column in columns:
        if (value := getattr(query, column)) is None:
            continue
        # SQLite has no statistics to choose by, and does not use an index for a column with a plus.
        passive = "+" if dialect == "sqlite" and (is_led or conditions) else ""
        if column == "status" and value != MOST:
            # Both are literals, as in the index.
            assert value in get_args(MessageStatus), "it stands in the SQL"
            conditions.append(f"{passive}status = '{value}' AND {passive}status <> '{MOST}'")
            continue
        conditions.append(f"{passive}{column} = :{column}")
        params[column] = value
    return conditions
