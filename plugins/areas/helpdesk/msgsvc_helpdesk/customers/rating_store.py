"""The SQL of ratings that wait for a comment: whoever deletes the row emits the event."""

from collections.abc import Mapping
from typing import Any

from msgsvc_core.db import Row, Tx
from msgsvc_core.kernel.values import value_object

_COLUMNS = "project_id, ticket_id, subscriber_id, bot, chat_id, message_ref, ends_at_ms"


@value_object
class OpenRating:
    """A score whose comment may be sent until `ends_at_ms`; `message_ref` is the bot's question."""

    project_id: str
    ticket_id: str
    subscriber_id: str
    bot: str
    chat_id: str
    message_ref: str
    ends_at_ms: int


async def score(tx: Tx, project_id: str, ticket_id: str, stars: int, now_ms: int) -> bool:
    """Writes the score of a closed ticket that has none; False if there is no such ticket."""
    return bool(
        await tx.execute(
            "UPDATE helpdesk_tickets SET csat_score = :stars, csat_at_ms = :now_ms,"
            " updated_at_ms = :now_ms WHERE project_id = :project_id AND ticket_id = :ticket_id"
            " AND status = 'closed' AND csat_score IS NULL AND merged_into IS NULL",
            {"project_id": project_id, "ticket_id": ticket_id, "stars": stars, "now_ms": now_ms},
        )
    )


async def comment(tx: Tx, project_id: str, ticket_id: str, text: str) -> None:
    await tx.execute(
        "UPDATE helpdesk_tickets SET csat_comment = :text"
        " WHERE project_id = :project_id AND ticket_id = :ticket_id",
        {"project_id": project_id, "ticket_id": ticket_id, "text": text},
    )


async def insert(tx: Tx, rating: OpenRating) -> None:
    await tx.insert(
        "helpdesk_ratings", {name: getattr(rating, name) for name in _COLUMNS.split(", ")}
    )


async def find_in_chat(
    tx: Tx, bot: str, chat_id: str, project_id: str, now_ms: int, ticket_id: str | None = None
) -> OpenRating | None:
    """The newest rating in a chat that has not expired; with `ticket_id`, that of this ticket."""
    params = {"bot": bot, "chat_id": chat_id, "project_id": project_id, "now_ms": now_ms}
    of_ticket = ""
    if ticket_id is not None:
        of_ticket, params["ticket_id"] = " AND ticket_id = :ticket_id", ticket_id
    found = await tx.fetch_one(
        f"SELECT {_COLUMNS} FROM helpdesk_ratings WHERE bot = :bot AND chat_id = :chat_id"
        f" AND project_id = :project_id AND ends_at_ms > :now_ms{of_ticket}"
        " ORDER BY ends_at_ms DESC, ticket_id DESC LIMIT 1",
        params,
    )
    return None if found is None else _rating(found)


async def delete(tx: Tx, project_id: str, ticket_id: str) -> OpenRating | None:
    """Deletes a rating; None if it was deleted before."""
    rows = await tx.fetch_all(
        "DELETE FROM helpdesk_ratings WHERE project_id = :project_id AND ticket_id = :ticket_id"
        f" RETURNING {_COLUMNS}",
        {"project_id": project_id, "ticket_id": ticket_id},
    )
    return _rating(rows[0]) if rows else None


def _rating(row: Row) -> OpenRating:
    values: Mapping[str, Any] = {name: row[name] for name in _COLUMNS.split(", ")}
    return OpenRating(**values)
