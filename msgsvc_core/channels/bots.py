"""The SQL of bots: profile, polling cursor and webhook registration.

`channel` is a channel's key. A row belongs to one bot, identified by `settings_digest`; another bot on the
same channel starts from scratch.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgsvc_core.channels.contract import BotProfile
from msgsvc_core.db import Row, Tx
from msgsvc_core.db.sql import array_param, in_array
from msgsvc_core.kernel.ids import is_id

#: The counter in `core_revisions` that increases with every change of a channel or a profile.
CHANNELS = "channels"

#: Prefix of the keys of projects' own channels.
OWN_PREFIX = "chn"

#: Condition: the channel is of the configuration, or was not removed.
_THERE = (
    "(CAST(:is_own AS INTEGER) = 0 OR EXISTS (SELECT 1 FROM core_channels"
    " WHERE channel_id = :channel AND removed_at_ms IS NULL))"
)

_COLUMNS = "channel, settings_digest, profile, cursor, webhook_digest, webhook_at_ms, account"


@dataclass(frozen=True, slots=True)
class Bot:
    """A bot's state shared between processes. `cursor` is from the last poll, `account` the platform's id
    of the bot, once known."""

    channel: str
    settings_digest: str
    profile: BotProfile | None
    cursor: str | None
    webhook_digest: str | None
    webhook_at_ms: int | None
    account: str | None = None


async def revision(tx: Tx) -> int:
    """A number that increases with every committed change of channels and profiles."""
    found: int | None = await tx.fetch_val(
        "SELECT revision FROM core_revisions WHERE name = :name", {"name": CHANNELS}
    )
    return found or 0


async def next_revision(tx: Tx) -> int:
    """The revision of a change in this transaction. Concurrent transactions wait for theirs, so whoever
    has read a revision has seen all changes up to it."""
    found: int = await tx.fetch_val(
        "INSERT INTO core_revisions (name, revision) VALUES (:name, 1)"
        " ON CONFLICT (name) DO UPDATE SET revision = core_revisions.revision + 1"
        " RETURNING revision",
        {"name": CHANNELS},
    )
    return found


async def changed_after(tx: Tx, revision: int, channels: Sequence[str]) -> list[Bot]:
    """Bots whose profile has a later revision, and those of `channels`."""
    rows = await tx.fetch_all(
        f"SELECT {_COLUMNS} FROM core_bots WHERE revision > :revision"
        f" OR {in_array('channel', 'channels', tx.dialect)}",
        {"revision": revision, "channels": array_param(channels, tx.dialect)},
    )
    return [_bot(row) for row in rows]


async def is_known(tx: Tx, channel: str) -> bool:
    """Whether the state of a bot on the channel is stored, of this one or another."""
    found = await tx.fetch_one(
        "SELECT 1 AS one FROM core_bots WHERE channel = :channel", {"channel": channel}
    )
    return found is not None


async def find(tx: Tx, channel: str) -> Bot | None:
    """The state stored for the channel, of the bot with its settings or of one before; None if there is
    none."""
    row = await tx.fetch_one(
        f"SELECT {_COLUMNS} FROM core_bots WHERE channel = :channel", {"channel": channel}
    )
    return None if row is None else _bot(row)


async def load(tx: Tx, channel: str, digests: Sequence[str], account: str | None = None) -> Bot:
    """The stored state of the bot with one of `digests`, the current key's first; empty for a new bot.

    Another token of the same `account` is the same bot. The state of a removed project channel is not stored.
    """
    ours = in_array("core_bots.settings_digest", "digests", tx.dialect)
    params = {"channel": channel, "digests": array_param(digests, tx.dialect)}
    known = f"SELECT {_COLUMNS} FROM core_bots WHERE channel = :channel AND {ours}"
    if account is not None:
        await tx.execute(
            "UPDATE core_bots SET settings_digest = :digest, webhook_digest = NULL,"
            " webhook_at_ms = NULL"
            f" WHERE channel = :channel AND account = :account AND NOT ({ours})",
            {**params, "digest": digests[0], "account": account},
        )
    row = await tx.fetch_one(known, params)
    if row is None:
        if await is_known(tx, channel):
            await _delete_updates(tx, channel)
        # Unless a concurrent transaction inserted the row, possibly with data.
        await tx.execute(
            "INSERT INTO core_bots (channel, settings_digest, revision)"
            f" SELECT CAST(:channel AS TEXT), CAST(:digest AS TEXT), 0 WHERE {_THERE}"
            " ON CONFLICT (channel) DO UPDATE"
            " SET settings_digest = :digest, profile = NULL, cursor = NULL,"
            f" webhook_digest = NULL, webhook_at_ms = NULL, account = NULL WHERE NOT ({ours})",
            {**params, "digest": digests[0], "is_own": int(is_id(channel, OWN_PREFIX))},
        )
        row = await tx.fetch_one(known, params)
    return Bot(channel, digests[0], None, None, None, None) if row is None else _bot(row)


async def save_profile(tx: Tx, bot: Bot, profile: BotProfile) -> bool:
    """Records the bot's profile; False if it is unchanged, or the settings have changed since."""
    written = json.dumps({"name": profile.name, "username": profile.username})
    return bool(
        await tx.execute(
            "UPDATE core_bots SET profile = :profile, revision = :revision"
            " WHERE channel = :channel AND settings_digest = :digest"
            " AND COALESCE(profile, '') <> :profile",
            {
                "profile": written,
                "revision": await next_revision(tx),
                "channel": bot.channel,
                "digest": bot.settings_digest,
            },
        )
    )


async def save_account(tx: Tx, bot: Bot, account: str) -> None:
    """Records the account of the token, unless the settings have changed since."""
    await tx.execute(
        "UPDATE core_bots SET account = :account"
        " WHERE channel = :channel AND settings_digest = :digest",
        {"account": account, "channel": bot.channel, "digest": bot.settings_digest},
    )


async def save_cursor(tx: Tx, bot: Bot, cursor: str | None) -> bool:
    """Records the polling cursor; False if the settings have changed since."""
    return bool(
        await tx.execute(
            "UPDATE core_bots SET cursor = :cursor"
            " WHERE channel = :channel AND settings_digest = :digest",
            {"cursor": cursor, "channel": bot.channel, "digest": bot.settings_digest},
        )
    )


async def save_webhook(tx: Tx, bot: Bot, digest: str, now_ms: int) -> None:
    """Records the webhook URL and secret registered with the platform, and when; polling restarts without a
    cursor."""
    await tx.execute(
        "UPDATE core_bots SET webhook_digest = :webhook_digest, webhook_at_ms = :now_ms,"
        " cursor = NULL"
        " WHERE channel = :channel AND settings_digest = :digest",
        {
            "webhook_digest": digest,
            "now_ms": now_ms,
            "channel": bot.channel,
            "digest": bot.settings_digest,
        },
    )


async def clear_webhook(tx: Tx, channel: str) -> None:
    """Forgets the webhook: the platform is about to be polled, which removes it."""
    await tx.execute(
        "UPDATE core_bots SET webhook_digest = NULL, cursor = NULL"
        " WHERE channel = :channel AND webhook_digest IS NOT NULL",
        {"channel": channel},
    )


async def delete(tx: Tx, channel: str) -> None:
    """Deletes a bot's state."""
    await tx.execute("DELETE FROM core_bots WHERE channel = :channel", {"channel": channel})
    await _delete_updates(tx, channel)


async def _delete_updates(tx: Tx, channel: str) -> None:
    """Deletes ids of processed updates: another bot's updates may have the same ones."""
    await tx.execute("DELETE FROM core_updates WHERE channel = :channel", {"channel": channel})


def _bot(row: Row) -> Bot:
    values: dict[str, Any] = {name: row[name] for name in _COLUMNS.split(", ")}
    profile: Mapping[str, Any] | None = json.loads(values["profile"] or "null")
    values["profile"] = None if profile is None else BotProfile(**profile)
    return Bot(**values)
