"""The SQL of project channels."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgsvc_core.channels import linked_buttons
from msgsvc_core.channels.project_channels.models import OwnChannel, State
from msgsvc_core.db import Row, Tx
from msgsvc_core.db.sql import array_param, in_array

_COLUMNS = (
    "project_id, name, channel_id, plugin, settings, revision, created_at_ms, updated_at_ms,"
    " removed_at_ms"
)


async def find(tx: Tx, project_id: str, name: str) -> OwnChannel | None:
    """The project's channel of this name, also a removed one."""
    row = await tx.fetch_one(
        f"SELECT {_COLUMNS} FROM core_channels WHERE project_id = :project_id AND name = :name",
        {"project_id": project_id, "name": name},
    )
    return None if row is None else _channel(row)


async def list_page(tx: Tx, project_id: str, after: str | None, limit: int) -> list[OwnChannel]:
    """Newest first; `after` is the last id of the page before."""
    rows = await tx.fetch_all(
        f"SELECT {_COLUMNS} FROM core_channels WHERE project_id = :project_id"
        " AND removed_at_ms IS NULL"
        + (" AND channel_id < :after" if after is not None else "")
        + " ORDER BY channel_id DESC LIMIT :most",
        {"project_id": project_id, "most": limit, **({} if after is None else {"after": after})},
    )
    return [_channel(row) for row in rows]


async def list_all(tx: Tx) -> list[OwnChannel]:
    """The channels of all projects, for an operator."""
    rows = await tx.fetch_all(
        f"SELECT {_COLUMNS} FROM core_channels WHERE removed_at_ms IS NULL ORDER BY channel_id"
    )
    return [_channel(row) for row in rows]


async def changed_after(tx: Tx, revision: int) -> list[OwnChannel]:
    """Channels of all projects that were created or changed since, without removed ones."""
    rows = await tx.fetch_all(
        f"SELECT {_COLUMNS} FROM core_channels WHERE revision > :revision"
        " AND removed_at_ms IS NULL",
        {"revision": revision},
    )
    return [_channel(row) for row in rows]


async def ids(tx: Tx) -> set[str]:
    """The ids of the channels of all projects."""
    rows = await tx.fetch_all("SELECT channel_id FROM core_channels WHERE removed_at_ms IS NULL")
    return {row["channel_id"] for row in rows}


async def states(tx: Tx, channel_ids: Sequence[str]) -> dict[str, State]:
    """The states of channels, by id."""
    rows = await tx.fetch_all(
        "SELECT channel, status, detail, outage_since_ms, outage_detail, paused_until_ms,"
        " interrupted_since_ms, interrupted_reason, interrupted_detail FROM core_channel_states"
        f" WHERE {in_array('channel', 'ids', tx.dialect)}",
        {"ids": array_param(channel_ids, tx.dialect)},
    )
    return {
        row["channel"]: State(
            row["status"],
            row["detail"],
            row["outage_since_ms"],
            row["outage_detail"],
            row["paused_until_ms"],
            row["interrupted_since_ms"],
            row["interrupted_reason"],
            row["interrupted_detail"],
        )
        for row in rows
    }


async def count(tx: Tx, project_id: str) -> int:
    found: int = await tx.fetch_val(
        "SELECT COUNT(*) AS count FROM core_channels WHERE project_id = :project_id"
        " AND removed_at_ms IS NULL",
        {"project_id": project_id},
    )
    return found


async def upsert(tx: Tx, channel: OwnChannel) -> None:
    """Writes a new channel, or one that replaces a removed one."""
    await tx.execute(
        f"INSERT INTO core_channels ({_COLUMNS}) VALUES (:project_id, :name, :channel_id, :plugin,"
        " :sealed, :revision, :created_at_ms, :updated_at_ms, NULL)"
        " ON CONFLICT (project_id, name) DO UPDATE SET settings = :sealed, revision = :revision,"
        " created_at_ms = :created_at_ms, updated_at_ms = :updated_at_ms, removed_at_ms = NULL",
        _values(channel),
    )


async def update(tx: Tx, channel: OwnChannel) -> bool:
    """Writes settings and revision; False if the channel was removed."""
    return bool(
        await tx.execute(
            "UPDATE core_channels SET settings = :sealed, revision = :revision,"
            " updated_at_ms = :updated_at_ms"
            " WHERE project_id = :project_id AND name = :name AND removed_at_ms IS NULL",
            _values(channel),
        )
    )


async def remove(tx: Tx, channel: OwnChannel, now_ms: int, *, keep: bool) -> bool:
    """Removes a channel with its settings; False if it was removed before.

    With `keep` the row is kept, because it has subscribers.
    """
    key = {"project_id": channel.project_id, "name": channel.name}
    this = "project_id = :project_id AND name = :name AND removed_at_ms IS NULL"
    if keep:
        return bool(
            await tx.execute(
                f"UPDATE core_channels SET settings = '', removed_at_ms = :now_ms WHERE {this}",
                {**key, "now_ms": now_ms},
            )
        )
    await tx.execute(
        "DELETE FROM core_offers WHERE channel = :channel", {"channel": channel.channel_id}
    )
    await linked_buttons.delete_of_channel(tx, channel.channel_id)
    await tx.execute(
        "DELETE FROM core_chats WHERE channel = :channel", {"channel": channel.channel_id}
    )
    return bool(await tx.execute(f"DELETE FROM core_channels WHERE {this}", key))


def _values(channel: OwnChannel) -> Mapping[str, Any]:
    return {
        "project_id": channel.project_id,
        "name": channel.name,
        "channel_id": channel.channel_id,
        "plugin": channel.plugin,
        "sealed": channel.sealed,
        "revision": channel.revision,
        "created_at_ms": channel.created_at_ms,
        "updated_at_ms": channel.updated_at_ms,
    }


def _channel(row: Row) -> OwnChannel:
    return OwnChannel(
        project_id=row["project_id"],
        name=row["name"],
        channel_id=row["channel_id"],
        plugin=row["plugin"],
        sealed=row["settings"],
        revision=row["revision"],
        created_at_ms=row["created_at_ms"],
        updated_at_ms=row["updated_at_ms"],
        removed_at_ms=row["removed_at_ms"],
    )
