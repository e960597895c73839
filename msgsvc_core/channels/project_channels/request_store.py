"""The SQL of requests for bots."""

from dataclasses import dataclass
from typing import Literal

from msgsvc_core.db import Row, Tx

RequestStatus = Literal["waiting", "made", "done", "failed", "cancelled"]

_COLUMNS = (
    "project_id, request_id, name, plugin, manager, username, status, account, detail, created_at_ms,"
    " expires_at_ms"
)


@dataclass(frozen=True, slots=True)
class ChannelRequest:
    """A bot that a person is to make on the platform, and the channel that it becomes.

    `waiting` until the platform tells of it, `made` while its token is fetched, then `done` or `failed`;
    `cancelled` instead of `made`.
    """

    project_id: str
    request_id: str
    name: str
    plugin: str
    manager: str
    username: str
    created_at_ms: int
    expires_at_ms: int
    status: RequestStatus = "waiting"
    account: str | None = None
    detail: str | None = None


async def insert(tx: Tx, request: ChannelRequest) -> None:
    await tx.execute(
        f"INSERT INTO core_channel_requests ({_COLUMNS}) VALUES (:project_id, :request_id, :name,"
        " :plugin, :manager, :username, 'waiting', NULL, NULL, :created_at_ms, :expires_at_ms)",
        {
            "project_id": request.project_id,
            "request_id": request.request_id,
            "name": request.name,
            "plugin": request.plugin,
            "manager": request.manager,
            "username": request.username,
            "created_at_ms": request.created_at_ms,
            "expires_at_ms": request.expires_at_ms,
        },
    )


async def find(tx: Tx, project_id: str, request_id: str) -> ChannelRequest | None:
    row = await tx.fetch_one(
        f"SELECT {_COLUMNS} FROM core_channel_requests"
        " WHERE project_id = :project_id AND request_id = :request_id",
        {"project_id": project_id, "request_id": request_id},
    )
    return None if row is None else _request(row)


async def list_page(tx: Tx, project_id: str, after: str | None, limit: int) -> list[ChannelRequest]:
    """Newest first; `after` is the last id of the page before."""
    rows = await tx.fetch_all(
        f"SELECT {_COLUMNS} FROM core_channel_requests WHERE project_id = :project_id"
        + (" AND request_id < :after" if after is not None else "")
        + " ORDER BY request_id DESC LIMIT :most",
        {"project_id": project_id, "most": limit, **({} if after is None else {"after": after})},
    )
    return [_request(row) for row in rows]


async def cancel(tx: Tx, project_id: str, request_id: str, now_ms: int) -> ChannelRequest | None:
    """The request, which no longer waits; None if it did not wait."""
    row = await tx.fetch_one(
        "UPDATE core_channel_requests SET status = 'cancelled' WHERE project_id = :project_id"
        " AND request_id = :request_id AND status = 'waiting' AND expires_at_ms > :now_ms"
        f" RETURNING {_COLUMNS}",
        {"project_id": project_id, "request_id": request_id, "now_ms": now_ms},
    )
    return None if row is None else _request(row)


async def cancel_waiting(tx: Tx, project_id: str, name: str, now_ms: int) -> None:
    """A later request of the same channel replaces earlier ones."""
    await tx.execute(
        "UPDATE core_channel_requests SET status = 'cancelled' WHERE project_id = :project_id"
        " AND name = :name AND status = 'waiting' AND expires_at_ms > :now_ms",
        {"project_id": project_id, "name": name, "now_ms": now_ms},
    )


async def count_waiting(tx: Tx, project_id: str, now_ms: int) -> int:
    found: int = await tx.fetch_val(
        "SELECT COUNT(*) AS count FROM core_channel_requests WHERE project_id = :project_id"
        " AND status = 'waiting' AND expires_at_ms > :now_ms",
        {"project_id": project_id, "now_ms": now_ms},
    )
    return found


async def take(
    tx: Tx, manager: str, username: str, account: str, now_ms: int
) -> ChannelRequest | None:
    """The request that waits for a bot of that username, which is now made; None if there is none."""
    row = await tx.fetch_one(
        "UPDATE core_channel_requests SET status = 'made', account = :account"
        " WHERE manager = :manager AND username = :username AND status = 'waiting'"
        f" AND expires_at_ms > :now_ms RETURNING {_COLUMNS}",
        {"manager": manager, "username": username, "account": account, "now_ms": now_ms},
    )
    return None if row is None else _request(row)


async def finish(
    tx: Tx, project_id: str, request_id: str, status: RequestStatus, detail: str | None = None
) -> ChannelRequest | None:
    """The request, if its bot was made and waited for its end, which this is; else None."""
    row = await tx.fetch_one(
        "UPDATE core_channel_requests SET status = :status, detail = :detail"
        " WHERE project_id = :project_id AND request_id = :request_id AND status = 'made'"
        f" RETURNING {_COLUMNS}",
        {"project_id": project_id, "request_id": request_id, "status": status, "detail": detail},
    )
    return None if row is None else _request(row)


def _request(row: Row) -> ChannelRequest:
    return ChannelRequest(**{name: row[name] for name in _COLUMNS.replace(" ", "").split(",")})
