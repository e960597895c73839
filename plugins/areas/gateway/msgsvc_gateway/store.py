"""The SQL of gateways and of their messages."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from msgsvc_core.db import Row, Tx
from msgsvc_core.db.sql import array_param, in_array, limited_delete
from msgsvc_gateway.models import Gateway, GatewayMessage

_GATEWAY = (
    "project_id, gateway_id, name, sender, channels, signing_key, paths, created_at_ms, updated_at_ms,"
    " old_secret_until_ms"
)
_MESSAGE = (
    "project_id, message_id, gateway_id, to_hint, people, step, sealed, status, subscriber_id, channel,"
    " reason, created_at_ms, expires_at_ms, sent_at_ms"
)
_THIS = "project_id = :project_id AND gateway_id = :gateway_id"


async def count(tx: Tx, project_id: str) -> int:
    found: int = await tx.fetch_val(
        "SELECT COUNT(*) AS count FROM gateway_gateways WHERE project_id = :project_id",
        {"project_id": project_id},
    )
    return found


async def insert(tx: Tx, gateway: Gateway, secret_digest: str) -> None:
    await tx.insert(
        "gateway_gateways",
        {
            "project_id": gateway.project_id,
            "gateway_id": gateway.gateway_id,
            "name": gateway.name,
            "sender": gateway.sender,
            "channels": json.dumps(gateway.channels),
            "signing_key": gateway.signing_key,
            "paths": json.dumps(dict(gateway.paths)),
            "secret_digest": secret_digest,
            "created_at_ms": gateway.created_at_ms,
            "updated_at_ms": gateway.updated_at_ms,
        },
    )


async def find(tx: Tx, project_id: str, gateway_id: str) -> Gateway | None:
    row = await tx.fetch_one(
        f"SELECT {_GATEWAY} FROM gateway_gateways WHERE {_THIS}",
        {"project_id": project_id, "gateway_id": gateway_id},
    )
    return None if row is None else _gateway(row)


async def find_by_secret(tx: Tx, sender: str, secret_digest: str, *, now_ms: int) -> Gateway | None:
    """The gateway whose URL has the secret, of any project: the URL names none."""
    row = await tx.fetch_one(
        f"SELECT {_GATEWAY} FROM gateway_gateways WHERE sender = :sender"
        " AND (secret_digest = :digest OR (old_secret_digest = :digest"
        " AND old_secret_until_ms > :now_ms))",
        {"sender": sender, "digest": secret_digest, "now_ms": now_ms},
    )
    return None if row is None else _gateway(row)


async def list_page(tx: Tx, project_id: str, after: str | None, limit: int) -> list[Gateway]:
    """Newest first."""
    rows = await tx.fetch_all(
        f"SELECT {_GATEWAY} FROM gateway_gateways WHERE project_id = :project_id"
        f"{_behind(after, 'gateway_id')} ORDER BY gateway_id DESC LIMIT :most",
        {"project_id": project_id, "most": limit, **_after(after)},
    )
    return [_gateway(row) for row in rows]


async def update(
    tx: Tx, project_id: str, gateway_id: str, changes: Mapping[str, Any], now_ms: int
) -> Gateway | None:
    """The gateway after the change; None if there is none. `changes` are columns."""
    columns = "".join(f"{name} = :{name}, " for name in changes)
    row = await tx.fetch_one(
        f"UPDATE gateway_gateways SET {columns}updated_at_ms = :now_ms WHERE {_THIS}"
        f" RETURNING {_GATEWAY}",
        {"project_id": project_id, "gateway_id": gateway_id, "now_ms": now_ms, **changes},
    )
    return None if row is None else _gateway(row)


async def replace_secret(
    tx: Tx, project_id: str, gateway_id: str, digest: str, *, old_until_ms: int, now_ms: int
) -> Gateway | None:
    """The gateway with another secret; the one before is valid until then. None if there is none."""
    row = await tx.fetch_one(
        "UPDATE gateway_gateways SET old_secret_digest = secret_digest,"
        " old_secret_until_ms = :old_until_ms, secret_digest = :digest, updated_at_ms = :now_ms"
        f" WHERE {_THIS} RETURNING {_GATEWAY}",
        {
            "project_id": project_id,
            "gateway_id": gateway_id,
            "digest": digest,
            "old_until_ms": old_until_ms,
            "now_ms": now_ms,
        },
    )
    return None if row is None else _gateway(row)


async def delete(tx: Tx, project_id: str, gateway_id: str) -> bool:
    """Whether it existed. Its messages go with it."""
    return bool(
        await tx.execute(
            f"DELETE FROM gateway_gateways WHERE {_THIS}",
            {"project_id": project_id, "gateway_id": gateway_id},
        )
    )


async def add_message(
    tx: Tx, message: GatewayMessage, *, to_hash: str, once_digest: str | None
) -> bool:
    """False if the same request has its message already."""
    params = {
        "project_id": message.project_id,
        "message_id": message.message_id,
        "gateway_id": message.gateway_id,
        "to_hint": message.to_hint,
        "to_hash": to_hash,
        "once_digest": once_digest,
        "people": json.dumps(message.people),
        "step": message.step,
        "subscriber_id": message.subscriber_id,
        "channel": message.channel,
        "sealed": message.sealed,
        "status": message.status,
        "created_at_ms": message.created_at_ms,
        "expires_at_ms": message.expires_at_ms,
    }
    columns, values = ", ".join(params), ", ".join(f":{name}" for name in params)
    return bool(
        await tx.execute(
            f"INSERT INTO gateway_messages ({columns}) VALUES ({values})"
            " ON CONFLICT (project_id, gateway_id, once_digest) DO NOTHING",
            params,
        )
    )


async def find_repeated(
    tx: Tx, project_id: str, gateway_id: str, once_digest: str
) -> GatewayMessage | None:
    """The message of a request that was made before."""
    row = await tx.fetch_one(
        f"SELECT {_MESSAGE} FROM gateway_messages WHERE {_THIS} AND once_digest = :once_digest",
        {"project_id": project_id, "gateway_id": gateway_id, "once_digest": once_digest},
    )
    return None if row is None else _message(row)


async def list_recent(
    tx: Tx, project_id: str, gateway_id: str, to_hash: str, *, since_ms: int, limit: int
) -> list[GatewayMessage]:
    """Up to `limit` of a recipient's messages since then, newest first."""
    rows = await tx.fetch_all(
        f"SELECT {_MESSAGE} FROM gateway_messages WHERE {_THIS} AND to_hash = :to_hash"
        " AND created_at_ms > :since_ms ORDER BY created_at_ms DESC, message_id DESC LIMIT :most",
        {
            "project_id": project_id,
            "gateway_id": gateway_id,
            "to_hash": to_hash,
            "since_ms": since_ms,
            "most": limit,
        },
    )
    return [_message(row) for row in rows]


async def list_messages(
    tx: Tx, project_id: str, gateway_id: str, after: str | None, limit: int
) -> list[GatewayMessage]:
    """Newest first."""
    rows = await tx.fetch_all(
        f"SELECT {_MESSAGE} FROM gateway_messages WHERE {_THIS}"
        f"{_behind(after, 'message_id')} ORDER BY message_id DESC LIMIT :most",
        {"project_id": project_id, "gateway_id": gateway_id, "most": limit, **_after(after)},
    )
    return [_message(row) for row in rows]


async def list_last(tx: Tx, project_id: str, gateway_ids: Sequence[str]) -> list[GatewayMessage]:
    """The last message of each of some gateways; ids sort by creation."""
    listed = in_array("g.gateway_id", "gateway_ids", tx.dialect)
    last = (
        "SELECT (SELECT MAX(m.message_id) FROM gateway_messages m WHERE m.project_id = g.project_id"
        " AND m.gateway_id = g.gateway_id) FROM gateway_gateways g"
        f" WHERE g.project_id = :project_id AND {listed}"
    )
    rows = await tx.fetch_all(
        f"SELECT {_MESSAGE} FROM gateway_messages WHERE project_id = :project_id"
        f" AND message_id IN ({last})",
        {"project_id": project_id, "gateway_ids": array_param(gateway_ids, tx.dialect)},
    )
    return [_message(row) for row in rows]


async def mark_sent(
    tx: Tx, project_id: str, message_id: str, step: int, *, now_ms: int
) -> GatewayMessage | None:
    """The message, whose content is deleted; None if it was not waiting for this step."""
    return await _end(
        tx,
        project_id,
        message_id,
        step,
        "status = 'sent', reason = NULL, sent_at_ms = :now_ms, sealed = NULL",
        {"now_ms": now_ms},
    )


async def mark_failed(
    tx: Tx, project_id: str, message_id: str, step: int, *, reason: str
) -> GatewayMessage | None:
    """The message, whose content is deleted; None if it was not waiting for this step."""
    return await _end(
        tx,
        project_id,
        message_id,
        step,
        "status = 'failed', reason = :reason, sealed = NULL",
        {"reason": reason},
    )


async def move_on(
    tx: Tx,
    project_id: str,
    message_id: str,
    step: int,
    *,
    to_step: int,
    subscriber_id: str,
    channel: str,
    reason: str,
) -> GatewayMessage | None:
    """The message at another step; None if it was not waiting for `step`."""
    return await _end(
        tx,
        project_id,
        message_id,
        step,
        "step = :to_step, subscriber_id = :subscriber_id, channel = :channel, reason = :reason",
        {
            "to_step": to_step,
            "subscriber_id": subscriber_id,
            "channel": channel,
            "reason": reason,
        },
    )


async def find_waiting(
    tx: Tx, project_id: str, message_id: str, step: int
) -> GatewayMessage | None:
    """The message if it waits for the outcome of this step."""
    row = await tx.fetch_one(
        f"SELECT {_MESSAGE} FROM gateway_messages WHERE project_id = :project_id"
        " AND message_id = :message_id AND status = 'queued' AND step = :step",
        {"project_id": project_id, "message_id": message_id, "step": step},
    )
    return None if row is None else _message(row)


async def purge(tx: Tx, created_before_ms: int, limit: int) -> int:
    """Deletes some old messages of all projects; returns how many."""
    old = limited_delete("gateway_messages", "created_at_ms < :created_before_ms", tx.dialect)
    params = {"created_before_ms": created_before_ms, "most": limit}
    return await tx.execute(f"DELETE FROM gateway_messages WHERE {old}", params)


async def _end(
    tx: Tx, project_id: str, message_id: str, step: int, change: str, params: Mapping[str, Any]
) -> GatewayMessage | None:
    row = await tx.fetch_one(
        f"UPDATE gateway_messages SET {change} WHERE project_id = :project_id"
        " AND message_id = :message_id AND status = 'queued' AND step = :step"
        f" RETURNING {_MESSAGE}",
        {"project_id": project_id, "message_id": message_id, "step": step, **params},
    )
    return None if row is None else _message(row)


def _behind(after: str | None, column: str) -> str:
    return "" if after is None else f" AND {column} < :after"


def _after(after: str | None) -> dict[str, str]:
    return {} if after is None else {"after": after}


def _names(text: str) -> Sequence[str]:
    names: list[str] = json.loads(text)
    return tuple(names)


def _gateway(row: Row) -> Gateway:
    return Gateway(
        project_id=row["project_id"],
        gateway_id=row["gateway_id"],
        name=row["name"],
        sender=row["sender"],
        channels=tuple(_names(row["channels"])),
        signing_key=row["signing_key"],
        paths=json.loads(row["paths"]),
        created_at_ms=row["created_at_ms"],
        updated_at_ms=row["updated_at_ms"],
        old_secret_until_ms=row["old_secret_until_ms"],
    )


def _message(row: Row) -> GatewayMessage:
    return GatewayMessage(
        project_id=row["project_id"],
        message_id=row["message_id"],
        gateway_id=row["gateway_id"],
        to_hint=row["to_hint"],
        people=tuple(_names(row["people"])),
        step=row["step"],
        sealed=row["sealed"],
        status=row["status"],
        subscriber_id=row["subscriber_id"],
        channel=row["channel"],
        reason=row["reason"],
        created_at_ms=row["created_at_ms"],
        expires_at_ms=row["expires_at_ms"],
        sent_at_ms=row["sent_at_ms"],
    )
