"""The SQL of audiences: counted, and written into the ledger, in the database."""

from collections.abc import Sequence
from typing import Any, get_args

from msgsvc_core.db import Tx
from msgsvc_core.db.sql import Dialect, any_of, in_query
from msgsvc_core.mailings.audience import Audience, AudienceBreakdown, LeftOut

#: Attributes of subscribers: the table `t`, its column, and the subscriber as `s`.
_TAGS = (
    "core_subscriber_tags t WHERE t.project_id = s.project_id AND t.subscriber_id = s.subscriber_id"
)

#: The number of a field's tags that a matching subscriber has.
_HOLDS = {"tags_any": "> 0", "tags_all": "= :tags_all_count", "tags_none": "= 0"}


def condition(
    project_id: str,
    audience: Audience,
    resend_of: str | None,
    dialect: Dialect,
    *,
    active: bool | None = True,
) -> tuple[str, dict[str, Any]]:
    """The condition that selects subscribers `s` of an audience, active or not or, with None, both; and its
    parameters.

    With counts instead of EXISTS: PostgreSQL turns EXISTS into a join and, without statistics, read all
    carriers of a tag for each of them.
    """
    parts = ["s.project_id = :project_id"]
    if active is not None:
        parts.append(f"s.status {'=' if active else '<>'} 'active'")
    params: dict[str, Any] = {"project_id": project_id}

    def among(column: str, name: str, values: Sequence[str]) -> str:
        text, more = any_of(column, name, sorted(set(values)), dialect)
        params.update(more)
        return text

    more, tag_params = _tag_conditions(audience, dialect)
    parts += more
    params.update(tag_params)
    if audience.permission:
        parts.append(
            "(SELECT COUNT(*) FROM core_subscriber_permissions p WHERE p.project_id = s.project_id"
            " AND p.subscriber_id = s.subscriber_id AND p.permission = :permission) > 0"
        )
        params["permission"] = audience.permission
    if audience.channels:
        parts.append(among("s.channel", "channels", audience.channels))
    if audience.langs:
        parts.append(among("s.lang", "langs", list(audience.langs)))
    if audience.subscriber_ids:
        parts.append(among("s.subscriber_id", "subscriber_ids", audience.subscriber_ids))
    if resend_of is not None:
        parts.append(
            "s.subscriber_id IN (SELECT r.subscriber_id FROM core_recipients r"
            " WHERE r.project_id = :project_id AND r.job_id = :resend_of"
            " AND r.not_sent = 'unknown')"
        )
        params["resend_of"] = resend_of
    return " AND ".join(parts), params


def _tag_conditions(audience: Audience, dialect: Dialect) -> tuple[list[str], dict[str, Any]]:
    parts: list[str] = []
    params: dict[str, Any] = {}
    for name, holds in _HOLDS.items():
        if tags := getattr(audience, name):
            known, more = any_of("name", name, sorted(set(tags)), dialect)
            ids = f"SELECT tag_id FROM core_tags WHERE project_id = :project_id AND {known}"
            # Found once and not for each subscriber, also by PostgreSQL.
            held = in_query("t.tag_id", ids, dialect)
            parts.append(f"(SELECT COUNT(*) FROM {_TAGS} AND {held}) {holds}")
            params.update(more)
    if audience.tags_all:
        params["tags_all_count"] = len(set(audience.tags_all))
    return parts, params


async def count_by_bot(
    tx: Tx, project_id: str, audience: Audience, resend_of: str | None, most: int
) -> dict[str, int]:
    """The number of subscribers per bot that reaches them; counting stops after `most`."""
    where, params = condition(project_id, audience, resend_of, tx.dialect)
    rows = await tx.fetch_all(
        "SELECT bot, COUNT(*) AS count FROM"
        f" (SELECT s.bot FROM core_subscribers s WHERE {where} LIMIT :most) AS found GROUP BY bot",
        {**params, "most": most},
    )
    return {row["bot"]: row["count"] for row in rows}


async def break_down(
    tx: Tx,
    project_id: str,
    audience: Audience,
    permission: str | None,
    bots: Sequence[str],
    limit: int,
) -> AudienceBreakdown:
    """Who of those that match the filters by tag, language and id would get a message that needs a
    `permission` from one of the project's `bots`, and why others would not; of at most `limit` subscribers
    that are looked at.

    They are found along an index: of the tags, ids or languages if there are such filters, so that a rare tag
    is counted exactly in a project of millions.
    """
    parts, params = _tag_conditions(audience, tx.dialect)
    params["project_id"] = project_id
    for column, values in (("lang", audience.langs), ("subscriber_id", audience.subscriber_ids)):
        if values:
            text, more = any_of(f"s.{column}", f"{column}s", sorted(set(values)), tx.dialect)
            parts.append(text)
            params |= more
    channels = "1 = 1"
    if audience.channels:
        channels, more = any_of("s.channel", "channels", audience.channels, tx.dialect)
        params |= more
    known, more = any_of("s.bot", "bots", bots, tx.dialect)
    params |= more
    granted: list[str] = []
    for number, key in enumerate({audience.permission, permission} - {None}):
        granted.append(f"{_GRANTED} AND p.permission = :permission_{number}) > 0")
        params[f"permission_{number}"] = key
    source, people, more = await _walked(tx, project_id, audience)
    rows = await tx.fetch_all(
        f"SELECT found.reason, COUNT(*) AS walked, COUNT({people}) AS people FROM"
        " (SELECT s.subscriber_id,"
        f" CASE WHEN NOT ({' AND '.join(parts) or '1 = 1'}) THEN 'other'"
        " WHEN s.status = 'blocked' THEN 'blocked' WHEN s.status <> 'active' THEN 'unsubscribed'"
        f" WHEN NOT ({channels}) THEN 'channel'"
        f" WHEN NOT ({known}) THEN 'bot'"
        f" WHEN NOT ({' AND '.join(granted) or '1 = 1'}) THEN 'permission' ELSE 'reached' END AS reason"
        f" FROM {source}) AS found GROUP BY found.reason",
        {**params, **more, "most_walked": limit + 1},
    )
    counts = {row["reason"]: row["people"] for row in rows}
    reasons: dict[LeftOut, int] = {
        each: counts[each] for each in get_args(LeftOut) if each in counts
    }
    is_exact = sum(row["walked"] for row in rows) <= limit
    return AudienceBreakdown(counts.get("reached", 0), reasons, is_exact)


_GRANTED = (
    "(SELECT COUNT(*) FROM core_subscriber_permissions p WHERE p.project_id = s.project_id"
    " AND p.subscriber_id = s.subscriber_id"
)


async def _walked(tx: Tx, project_id: str, audience: Audience) -> tuple[str, str, dict[str, Any]]:
    """Subscribers `s` that include all of an audience, `most_walked` of them at most, for a FROM; what is
    counted of them, as a subscriber may be there more than once; and the parameters."""
    of = (
        "(SELECT project_id, subscriber_id, status, channel, bot, lang FROM core_subscribers"
        " WHERE project_id = :project_id"
    )
    limit = "LIMIT :most_walked) AS"
    if names := audience.tags_any or (audience.tags_all or [])[:1]:
        known, params = any_of("name", "tag_names", sorted(set(names)), tx.dialect)
        # Looked up first: PostgreSQL plans by how common a tag is, which it can't know of a subquery.
        rows = await tx.fetch_all(
            f"SELECT tag_id FROM core_tags WHERE project_id = :project_id AND {known}",
            {**params, "project_id": project_id},
        )
        carried, params = any_of(
            "tag_id", "walked_tags", [row["tag_id"] for row in rows], tx.dialect
        )
        carriers = (
            "(SELECT subscriber_id FROM core_subscriber_tags WHERE project_id = :project_id"
            f" AND {carried} {limit} walked CROSS JOIN core_subscribers s"
            " WHERE s.project_id = :project_id AND s.subscriber_id = walked.subscriber_id"
        )
        return carriers, "DISTINCT found.subscriber_id", params
    if audience.subscriber_ids:
        ids = sorted(set(audience.subscriber_ids))
        these, params = any_of("subscriber_id", "walked_ids", ids, tx.dialect)
        return f"{of} AND {these} {limit} s", "*", params
    if audience.langs:
        these, params = any_of("lang", "walked_langs", sorted(set(audience.langs)), tx.dialect)
        return f"{of} AND {these} {limit} s", "*", params
    return f"{of} {limit} s", "*", {}


async def count_unreachable(tx: Tx, project_id: str, audience: Audience, reachable: int) -> int:
    """How many of the subscribers given by id will be skipped; `reachable` of them will not."""
    if not audience.subscriber_ids:
        return 0
    if audience.names_alone:
        return len(set(audience.subscriber_ids)) - reachable
    where, params = condition(project_id, audience, None, tx.dialect, active=False)
    found: int = await tx.fetch_val(
        f"SELECT COUNT(*) AS count FROM core_subscribers s WHERE {where}", params
    )
    return found


async def step_end(tx: Tx, project_id: str, after: str, most: int) -> str | None:
    """The last id of the project's next `most` subscribers; None if there are no more.

    Steps are limited by the rows read, not by the matches: an audience of ten in a project of millions would
    otherwise be one long step.
    """
    end: str | None = await tx.fetch_val(
        "SELECT MAX(subscriber_id) AS last FROM (SELECT subscriber_id FROM core_subscribers"
        " WHERE project_id = :project_id AND subscriber_id > :after"
        " ORDER BY subscriber_id LIMIT :most) AS these",
        {"project_id": project_id, "after": after, "most": most},
    )
    return end


async def expand(
    tx: Tx,
    project_id: str,
    job_id: str,
    audience: Audience,
    resend_of: str | None,
    *,
    after: str,
    until: str,
    before_ms: int,
) -> int:
    """Writes the recipients of one step into the ledger; returns how many are new in it.

    Subscribers added after `before_ms`, in Unix milliseconds, are not included.
    """
    where, params = condition(project_id, audience, resend_of, tx.dialect)
    return await tx.execute(
        "INSERT INTO core_recipients (project_id, subscriber_id, job_id, bot, status, attempts)"
        " SELECT s.project_id, s.subscriber_id, CAST(:job_id AS text), s.bot, 'queued', 0"
        f" FROM core_subscribers s WHERE {where} AND s.subscriber_id > :after"
        " AND s.subscriber_id <= :until AND s.created_at_ms <= :before_ms"
        " ORDER BY s.subscriber_id ON CONFLICT (project_id, subscriber_id, job_id) DO NOTHING",
        {**params, "job_id": job_id, "after": after, "until": until, "before_ms": before_ms},
    )


async def expand_unreachable(
    tx: Tx,
    project_id: str,
    job_id: str,
    audience: Audience,
    *,
    after: str,
    until: str,
    before_ms: int,
) -> int:
    """Writes those of a step who were given by id, and have unsubscribed or blocked the bot, as skipped:
    the sender named them and expects an outcome. Returns how many."""
    if not audience.subscriber_ids:
        return 0
    where, params = condition(project_id, audience, None, tx.dialect, active=False)
    return await tx.execute(
        "INSERT INTO core_recipients"
        " (project_id, subscriber_id, job_id, bot, status, attempts, reason, error)"
        " SELECT s.project_id, s.subscriber_id, CAST(:job_id AS text), s.bot, 'skipped', 0,"
        " CASE s.status WHEN 'blocked' THEN 'user_blocked_bot' END,"
        " CASE s.status WHEN 'blocked' THEN 'has blocked the bot' ELSE 'not subscribed' END"
        f" FROM core_subscribers s WHERE {where} AND s.subscriber_id > :after"
        " AND s.subscriber_id <= :until AND s.created_at_ms <= :before_ms"
        " ORDER BY s.subscriber_id ON CONFLICT (project_id, subscriber_id, job_id) DO NOTHING",
        {**params, "job_id": job_id, "after": after, "until": until, "before_ms": before_ms},
    )


async def bots_of(tx: Tx, project_id: str, job_id: str) -> list[str]:
    """The bots that reach a ledger's recipients."""
    rows = await tx.fetch_all(
        "SELECT DISTINCT bot FROM core_recipients"
        " WHERE project_id = :project_id AND job_id = :job_id AND status IN ('queued', 'standby')"
        " ORDER BY bot",
        {"project_id": project_id, "job_id": job_id},
    )
    return [row["bot"] for row in rows]
