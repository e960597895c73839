"""The SQL of a filtered list of messages: newest first, along the index of one of its filters.

See docs/decisions/0044-lists-of-a-million.md.
"""

from typing import Any, get_args

from msgsvc_core.api.pagination import until_id
from msgsvc_core.db.sql import Dialect
from msgsvc_core.messages.bodies import MessageQuery
from msgsvc_core.messages.fields import MessageStatus

#: The status of most messages, which the index by status omits.
MOST = "sent"

#: Where a subscriber's messages are on SQLite: most in the index by subscriber, and those not in it yet in
#: the index of such messages, by project; see `filing`.
_FILED, _UNFILED = "filed = 1", "filed IS NULL"


def places_of_subscriber(dialect: Dialect) -> tuple[str, ...]:
    """Further conditions of a query by subscriber, each for the rows of one index, which together are all."""
    return (f" AND {_FILED}", f" AND {_UNFILED}") if dialect == "sqlite" else ("",)


def page_of(
    columns: str,
    project_id: str,
    query: MessageQuery,
    after: str | None,
    dialect: Dialect,
    *,
    ascending: bool = False,
) -> tuple[str, dict[str, Any]]:
    """The query of a page, newest or oldest first, with its size in `:most`, and its other parameters.

    The caller applies `created_after`.
    """
    params: dict[str, Any] = {"project_id": project_id}
    if after is not None:
        params["after"] = after
    if (until := until_id("msg", query.created_before)) is not None:
        params |= {"until": until, "created_before": query.created_before}

    direction = "ASC" if ascending else "DESC"

    def select(place: str | None = None, *, leads: bool = False) -> str:
        conditions = ["project_id = :project_id"]
        if place is not None:
            conditions.append(place)
        conditions += _conditions(query, dialect, params, is_led=leads)
        if until is not None:
            conditions += ["message_id < :until", "+created_at_ms < :created_before"]
        if after is not None:
            conditions.append(f"message_id {'>' if ascending else '<'} :after")
        ending = f"ORDER BY message_id {direction} LIMIT :most"
        return f"SELECT {columns} FROM core_messages WHERE {' AND '.join(conditions)} {ending}"

    if dialect == "sqlite" and query.subscriber_id is not None and query.batch_id is None:
        places = (select(_FILED), select(_UNFILED, leads=True))
        parts = " UNION ALL ".join(f"SELECT * FROM ({part})" for part in places)
        return f"{parts} ORDER BY message_id {direction} LIMIT :most", params
    return select(), params


def led_of(
    project_id: str, query: MessageQuery, dialect: Dialect
) -> tuple[list[str], str, dict[str, Any]]:
    """For a bounded count: the conditions that walk an index, each for rows of their own; that of the other
    filters on the rows walked, as `walked`; and their parameters."""
    params: dict[str, Any] = {"project_id": project_id}
    others = _given(query)
    # No index has the status of most messages: this filter is only tested.
    is_led = bool(others) and not (others[0] == "status" and query.status == MOST)
    leading = others.pop(0) if is_led else ""
    led_by = "project_id = :project_id"
    if leading:
        led_by += f" AND {_equals(leading, query, params, '')}"
    params |= {column: getattr(query, column) for column in others}
    also = " AND ".join(f"walked.{column} = :{column}" for column in others)
    if dialect == "sqlite" and leading == "subscriber_id":
        return [f"{led_by} AND {place}" for place in (_FILED, _UNFILED)], also, params
    return [led_by], also, params


def _conditions(
    query: MessageQuery, dialect: Dialect, params: dict[str, Any], *, is_led: bool
) -> list[str]:
    """The conditions of the filters that are set; `params` gets their values. The first, which is the most
    selective, determines the index, unless the page `is_led` by the condition before them."""
    conditions: list[str] = []
    for column in _given(query):
        # SQLite has no statistics to choose by, and does not use an index for a column with a plus.
        passive = "+" if dialect == "sqlite" and (is_led or conditions) else ""
        conditions.append(_equals(column, query, params, passive))
    return conditions


def _given(query: MessageQuery) -> list[str]:
    """The columns of the filters that are set, the most selective one first."""
    columns = ["batch_id", "subscriber_id", "reason", "status", "channel"]
    if query.status == MOST:
        columns = ["batch_id", "subscriber_id", "reason", "channel", "status"]
    return [column for column in columns if getattr(query, column) is not None]


def _equals(column: str, query: MessageQuery, params: dict[str, Any], passive: str) -> str:
    value = getattr(query, column)
    if column == "status" and value != MOST:
        # Both are literals, as in the index.
        assert value in get_args(MessageStatus), "it stands in the SQL"
        return f"{passive}status = '{value}' AND {passive}status <> '{MOST}'"
    params[column] = value
    return f"{passive}{column} = :{column}"
