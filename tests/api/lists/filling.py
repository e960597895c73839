"""Projects with many rows, written by the database alone: what lists are asked of.

Rows are numbered from 1, the oldest. What a filter looks for is with the first three alone, unless it is
with nearly all of them: who went through a list from its newest entry would find it last.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from msgsvc_core.db import Tx
from msgsvc_core.kernel.ids import ALPHABET, encode_base62

#: 2026-01-01 in Unix milliseconds; row `i` was made `i` seconds after it.
START_MS = 1_767_225_600_000

#: Rows that one statement writes: a million at once takes longer than a statement may, on a busy machine.
A_PIECE = 100_000

#: Rows that carry what is rare, the oldest ones.
RARE = 3


@dataclass(frozen=True, slots=True)
class Sizes:
    """Rows of each table; `others` is for those that have no size of their own."""

    messages: int
    subscribers: int
    tickets: int
    others: int


#: An id begins with its time in 12 digits: that of `START_MS`, and what a second adds to it.
_FIRST, _SECOND = ((ms << 80) // 62**10 for ms in (START_MS, 1000))


def id_of(prefix: str, number: int) -> str:
    """The id of a row, which has its time."""
    digits = encode_base62((_FIRST + number * _SECOND).to_bytes(8, "big"), 12)
    return f"{prefix}_{digits}{'0' * 10}"


def id_column(prefix: str, number: str = "i") -> str:
    """The id of each row, in SQL. The first digit is 0 until the year 2400."""
    time = f"({_FIRST} + CAST({number} AS bigint) * {_SECOND})"
    digits = (
        f"substr('{ALPHABET}', CAST({time} / {62**place} % 62 AS integer) + 1, 1)"
        for place in reversed(range(11))
    )
    return f"'{prefix}_0' || {' || '.join(digits)} || '{'0' * 10}'"


def in_turn(rare: Sequence[str], common: str) -> str:
    """Each of `rare` with three of the oldest rows, `common` with all others."""
    cases = "".join(
        f" WHEN i <= {RARE * place} THEN '{value}'" for place, value in enumerate(rare, 1)
    )
    return f"CASE{cases} ELSE '{common}' END"


_MADE = {"created_at_ms": f"{START_MS} + CAST(i AS bigint) * 1000"}
_SUBSCRIBER = f"CASE WHEN i <= {RARE} THEN {id_column('sub', '1')} ELSE {{other}} END"

_MESSAGES = {
    "message_id": id_column("msg"),
    "subscriber_id": _SUBSCRIBER.format(other=id_column("sub", "2 + i % (:subscribers - 1)")),
    "channel": in_turn(["messenger_b"], "messenger_a"),
    "bot": "'messenger_a'",
    "status": in_turn(["failed", "queued", "sending", "skipped", "unknown"], "sent"),
    "content": '\'{"text": "Your order is on its way and arrives tomorrow between 10 and 12."}\'',
    "attempts": "1",
    "batch_id": f"CASE WHEN i <= {RARE} THEN 'bat_rare' END",
    "reason": f"CASE WHEN i <= {RARE} THEN 'user_blocked_bot' END",
    "finished_at_ms": f"CASE WHEN i <= {RARE} OR i > {3 * RARE} THEN 1 END",
    **_MADE,
}
_SUBSCRIBERS = {
    "subscriber_id": id_column("sub"),
    "channel": in_turn(["messenger_b"], "messenger_a"),
    "bot": "'messenger_a'",
    "user_id": "'user-' || CAST(i AS text)",
    "chat_id": "'chat-' || CAST(i AS text)",
    "first_name": in_turn(["Жанна"], "Ann"),
    "username": "'ann' || CAST(i AS text)",
    "external_id": "'customer-' || CAST(i AS text)",
    "search_name": in_turn(["жанна"], "ann"),
    "search_username": "'ann' || CAST(i AS text)",
    "search_external_id": "'customer-' || CAST(i AS text)",
    "lang": in_turn(["ru"], "en"),
    "status": in_turn(["unsubscribed", "blocked"], "active"),
    "source": "'api'",
    "last_seen_at_ms": "0",
    **_MADE,
}
_TICKETS = {
    "ticket_id": id_column("tkt"),
    "number": "i",
    "channel": in_turn(["messenger_b", "virtual"], "messenger_a"),
    "subscriber_id": _SUBSCRIBER.format(other=id_column("sub", "2 + i % 100")),
    **dict.fromkeys(("customer_name", "customer_email", "subject"), "''"),
    "status": in_turn(["open", "pending", "snoozed"], "closed"),
    "priority": in_turn(["urgent", "high", "low"], "normal"),
    "assignee_id": in_turn(["mem_rare"], "mem_most"),
    "source": "'message'",
    "updated_at_ms": "0",
    "last_message_at_ms": "0",
    # Of those that are not closed: long since, and one day.
    "due_at_ms": f"CASE WHEN i <= {RARE} THEN 1 WHEN i <= {3 * RARE} THEN {START_MS} * 2 END",
    **_MADE,
}
_RULE = '{"timezone": "UTC", "anchor_ms": 0, "hours": 1}'
_OTHERS: Mapping[str, Mapping[str, str]] = {
    "core_events": {
        "event_id": id_column("evt"),
        "name": in_turn(["button.clicked"], "delivery.success"),
        "data": "'{}'",
        "occurred_at_ms": "0",
        "history_of": _SUBSCRIBER.format(other=id_column("sub", "2 + i % (:subscribers - 1)")),
    },
    "core_mailings": {
        "job_id": id_column("job"),
        "source": in_turn(["recurring"], "broadcasts"),
        "status": in_turn(
            ["recurring", "scheduled", "running", "paused", "cancelled"], "completed"
        ),
        "content": '\'{"content": {"text": "Hi"}, "variables": null, "silent": false}\'',
        "audience": "'{\"all\": true}'",
        **dict.fromkeys(("total", "sent", "failed", "skipped", "next_us", "timed_from"), "0"),
        "finished_at_ms": f"CASE WHEN i > {5 * RARE} THEN 1 END",
        **_MADE,
    },
    "core_bulk_actions": {
        "bulk_action_id": id_column("blk"),
        "action": "'erase'",
        "status": "'completed'",
        **dict.fromkeys(("total", "done", "failed"), "0"),
        **_MADE,
    },
    "core_imports": {
        "import_id": id_column("imp"),
        "status": "'completed'",
        "dry_run": "FALSE",
        "columns": """'{"used": {}, "ignored": []}'""",
        "options": """'{"channel": null, "consent": "unsubscribed", "same_bot": false}'""",
        **dict.fromkeys(("total", "added", "updated", "unchanged", "refused", "must_start"), "0"),
        **_MADE,
    },
    "core_recipients": {
        "subscriber_id": id_column("sub"),
        "job_id": ":job_id",
        "bot": "'messenger_a'",
        # Whose turn has not come are the first in the list: a mailing begins with the oldest.
        "status": "CASE WHEN i > :others - :others / 5 THEN 'queued'"
        f" ELSE {in_turn(['failed', 'unknown', 'skipped'], 'sent')} END",
        "attempts": "1",
    },
    "core_members": {
        "member_id": id_column("mem"),
        "name": "'Ann'",
        "email": "'ann' || CAST(i AS text) || '@shop.example'",
        "role": in_turn(["owner", "admin", "viewer"], "agent"),
        "status": in_turn(["active"], "removed"),
        **_MADE,
    },
    "core_jobs": {
        "job_id": id_column("job"),
        "lane": in_turn(["default"], "channel:messenger_a"),
        "priority": "1",
        "run_at_ms": f"{START_MS} * 2",
        "name": in_turn(["drip.step"], "message.deliver"),
        "payload": "'{}'",
        "state": in_turn(["dead", "running"], "ready"),
        **dict.fromkeys(("attempts", "deliveries"), "0"),
        **_MADE,
    },
    "helpdesk_entries": {
        "entry_id": id_column("ent"),
        "ticket_id": id_column("tkt", "1"),
        "author": "'customer'",
        "internal": "i < 0",
        "text": "'Hi'",
        "format": "'plain'",
        **_MADE,
    },
    "helpdesk_blocklist": {"subscriber_id": id_column("sub"), "reason": "''", **_MADE},
    "drip_enrollments": {
        "enrollment_id": id_column("enr"),
        "drip_id": ":drip_id",
        "version": "1",
        "subscriber_id": _SUBSCRIBER.format(other=id_column("sub")),
        "status": in_turn(["cancelled", "stopped", "active", "paused"], "completed"),
        "next_step": "1",
        "finished_at_ms": "1",
        **_MADE,
    },
    "forms_submissions": {
        "submission_id": id_column("fsb"),
        "form_id": ":form_id",
        "version": "1",
        "source": in_turn(["messenger", "web"], "web"),
        "lang": "'en'",
        # Spam is what most of it is, as where a form is found by those who send it.
        "spam": f"CASE WHEN i > {2 * RARE} THEN 'honeypot' END",
        "answers": "'[]'",
        "leads": "'[]'",
        **_MADE,
    },
    "scheduling_records": {
        "record_id": id_column("sch"),
        "kind": in_turn(["recurring"], "once"),
        "status": in_turn(["active", "scheduled", "failed", "skipped"], "sent"),
        "message": '\'{"text": "Hi"}\'',
        "audience": "'{\"all\": true}'",
        "send_at_ms": f"CASE WHEN i > {RARE} THEN {START_MS} END",
        "rule": f"CASE WHEN i <= {RARE} THEN '{_RULE}' END",
        "finished_at_ms": "1",
        **_MADE,
    },
    "webhooks_deliveries": {
        "delivery_id": id_column("whd"),
        "webhook_id": ":webhook_id",
        "event_id": id_column("evt"),
        "event": in_turn(["button.clicked"], "delivery.success"),
        "body": "'{}'",
        "status": in_turn(["failed", "pending", "cancelled"], "delivered"),
        **dict.fromkeys(("attempts", "step"), "1"),
        **_MADE,
    },
}

#: What a channel could not read.
_ON_SHELF = {
    "item_id": id_column("shf"),
    "channel": ":channel_id",
    "update_id": "CAST(i AS text)",
    "kind": "'update'",
    "reason": "'malformed'",
    **dict.fromkeys(("detail", "origin", "sealed"), "''"),
    **dict.fromkeys(("size", "kept"), "1"),
    "received_at_ms": "0",
}

#: Items that a shelf holds at most.
_MOST_ON_SHELF = 500

#: What people carry.
_NAMED: Mapping[str, Mapping[str, str]] = {
    "core_tags": {"tag_id": "'{name}'", "name": "'{name}'", **_MADE},
    "core_permissions": {
        "key": "'{name}'",
        "title": '\'{{"en": "News"}}\'',
        "description": "NULL",
        "is_default": "i < 0",
        **_MADE,
    },
}

#: Who carries what: the table, and the name of what all carry and of what the oldest carry.
_CARRIED = (
    ("core_subscriber_tags", "subscriber_id", "sub", "tag_id", "subscribers"),
    ("core_subscriber_permissions", "subscriber_id", "sub", "permission", "subscribers"),
    ("helpdesk_ticket_tags", "ticket_id", "tkt", "tag", "tickets"),
)


async def fill(tx: Tx, project_id: str, ids: Mapping[str, str], sizes: Sizes) -> None:
    """Writes the rows. `ids` are those of the form, chain, mailing, webhook and channel that they
    belong to."""
    given = {
        **ids,
        "project_id": project_id,
        "subscribers": sizes.subscribers,
        "others": sizes.others,
    }
    tables = {
        "core_subscribers": (sizes.subscribers, _SUBSCRIBERS),
        "core_messages": (sizes.messages, _MESSAGES),
        "helpdesk_tickets": (sizes.tickets, _TICKETS),
        **{name: (sizes.others, columns) for name, columns in _OTHERS.items()},
    }
    for table, (count, columns) in tables.items():
        await insert(tx, table, {"project_id": ":project_id", **columns}, given, count)
    await insert(tx, "core_shelf", _ON_SHELF, given, min(sizes.others, _MOST_ON_SHELF))
    await _begin_mailing(tx, project_id, ids["job_id"], sizes.others)
    for name in ("most", "rare"):
        for table, columns in _NAMED.items():
            named = {key: value.format(name=name) for key, value in columns.items()}
            await insert(tx, table, {"project_id": ":project_id", **named}, given, 1)
    for table, key, prefix, column, owners in _CARRIED:
        for name, count in (("most", getattr(sizes, owners)), ("rare", RARE)):
            columns = {"project_id": ":project_id", key: id_column(prefix), column: f"'{name}'"}
            if column == "permission":
                columns["granted_at_ms"] = "0"
            await insert(tx, table, columns, given, count)


async def fill_history(tx: Tx, project_id: str, *, messages: int, subscribers: int) -> None:
    """Writes messages to so many people, and an event for each, of the same time."""
    given = {"project_id": project_id, "subscribers": subscribers}
    tables = {
        # Beside others, whose ids on the platform are as those of `fill`.
        "core_subscribers": (
            subscribers,
            {**_SUBSCRIBERS, "user_id": "'of-history-' || CAST(i AS text)"},
        ),
        "core_messages": (messages, {**_MESSAGES, "batch_id": "NULL"}),
        "core_events": (
            messages,
            {**_OTHERS["core_events"], "occurred_at_ms": _MADE["created_at_ms"]},
        ),
    }
    for table, (count, columns) in tables.items():
        await insert(tx, table, {"project_id": ":project_id", **columns}, given, count)


async def _begin_mailing(tx: Tx, project_id: str, job_id: str, total: int) -> None:
    """Has the mailing whose recipients there are be where they say that it is."""
    key = {"project_id": project_id, "job_id": job_id}
    await tx.execute(
        "UPDATE core_mailings SET status = 'running', total = :total, sent = :sent, failed = 6,"
        " skipped = 3 WHERE project_id = :project_id AND job_id = :job_id",
        {**key, "total": total, "sent": total - total // 5 - 3 * RARE},
    )
    walked_to = id_of("sub", total - total // 5)
    way = {"bot": "messenger_a", "walked_to": walked_to, "in_hand": "[]", "is_done": False}
    await tx.insert("core_mailing_ways", {**key, **way})


async def insert(
    tx: Tx, table: str, columns: Mapping[str, str], given: Mapping[str, object], count: int
) -> None:
    """Writes so many rows; what `columns` say is SQL with the number `i` and the values `given`."""
    values = ", ".join(
        f"CAST({value} AS text)" if value.startswith(":") else value for value in columns.values()
    )
    named = {name: value for name, value in given.items() if f":{name}" in values}
    for first in range(1, count + 1, A_PIECE):
        last = min(first + A_PIECE - 1, count)
        await tx.execute(
            "INSERT INTO {table} ({names}) WITH RECURSIVE numbers (i) AS (SELECT {first} UNION ALL"
            " SELECT i + 1 FROM numbers WHERE i < {last}) SELECT {values} FROM numbers".format(
                table=table, names=", ".join(columns), first=first, last=last, values=values
            ),
            named,
        )
