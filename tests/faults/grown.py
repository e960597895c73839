"""A furnished database, grown: many subscribers, messages and events like those that are there."""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

#: Digits of a row's number, at the end of its id.
_DIGITS = 8


def grow(path: Path, *, subscribers: int, messages: int) -> None:
    """Adds so many of each, and an event for each message. The messages are shared out among the people."""
    with closing(sqlite3.connect(path)) as connection, connection:
        _multiply(
            connection,
            "core_subscribers",
            subscribers,
            {
                "subscriber_id": _numbered("subscriber_id", "n"),
                "user_id": "'user-' || n",
                "chat_id": "'chat-' || n",
                "external_id": "'customer-' || n",
                "search_external_id": "'customer-' || n",
            },
        )
        person = f"n % {subscribers}"
        subscriber = f"(SELECT {_numbered('subscriber_id', person)} FROM core_subscribers LIMIT 1)"
        _multiply(
            connection,
            "core_messages",
            messages,
            {
                "message_id": _numbered("message_id", "n"),
                "subscriber_id": subscriber,
                "message_ref": "'ref-' || n",
                "content": """json_object('text', 'Order ' || n || ' — заказ готов 📦', 'format', 'plain')""",
            },
        )
        _multiply(
            connection,
            "core_events",
            messages,
            {"event_id": _numbered("event_id", "n"), "history_of": subscriber},
        )


def _numbered(column: str, number: str) -> str:
    """An id of the length and the kind of the first row's."""
    return f"substr({column}, 1, {4 + 22 - _DIGITS}) || printf('%0{_DIGITS}d', {number})"


def _multiply(
    connection: sqlite3.Connection, table: str, count: int, changed: Mapping[str, str]
) -> None:
    """Rows like the table's first one, with other values in some columns; `n` is their number."""
    names = [
        name
        for _, name, *_, hidden in connection.execute(f"PRAGMA table_xinfo({table})")
        if not hidden
    ]
    values = ", ".join(changed.get(name, name) for name in names)
    connection.execute(
        "WITH RECURSIVE numbers (n) AS (VALUES (0) UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < ?)"
        f" INSERT INTO {table} ({', '.join(names)})"
        f" SELECT {values} FROM numbers CROSS JOIN (SELECT * FROM {table} ORDER BY rowid LIMIT 1)",
        (count,),
    )
