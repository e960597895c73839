"""The SQL of a ledger with a route: a row for each channel of a person, one of which stands for them.

The others are `standby` until they are tried, and `passed` when they did not reach the person. All rows of a
person are written when the mailing starts, so whatever changes in the meantime, nobody is two people.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from msgsvc_core.db import Tx
from msgsvc_core.db.sql import Dialect, any_of, key_params, key_table
from msgsvc_core.kernel.values import value_object
from msgsvc_core.mailings import ledger
from msgsvc_core.mailings.audience import Audience
from msgsvc_core.mailings.audience_store import condition
from msgsvc_core.mailings.models import Mailing, RowStatus
from msgsvc_core.routing.models import RouteStep

_OF_MAILING = "project_id = :project_id AND job_id = :job_id"

#: Those whom a stage of an experiment is about, as in `ledger.next_recipients`.
_TESTED = {True: " AND r.variant IS NOT NULL", False: ""}

#: The subscribers `s` of the person whose subscriber is `p`.
_OF_PERSON = (
    "(CASE WHEN p.external_id IS NULL THEN EXISTS (SELECT 1 FROM core_subscribers s"
    " WHERE s.project_id = p.project_id AND s.subscriber_id = p.subscriber_id AND {condition})"
    " ELSE EXISTS (SELECT 1 FROM core_subscribers s"
    " WHERE s.project_id = p.project_id AND s.external_id = p.external_id AND {condition}) END)"
)


@value_object
class PersonStep:
    """A row of a person: a channel of the route."""

    subscriber_id: str
    bot: str
    step: int
    status: RowStatus
    reason: str | None
    error: str | None
    variant: int | None
    #: Their `external_id` when the mailing began.
    person: str


@value_object
class RowChange:
    """What becomes of a row that has the status `before`."""

    subscriber_id: str
    before: RowStatus
    status: RowStatus
    reason: str | None = None
    error: str | None = None
    tries: int = 0
    #: When the step is due, in Unix milliseconds. It begins when it is claimed.
    due_ms: int | None = None
    variant: int | None = None


def _reachable(
    project_id: str, audience: Audience, steps: Sequence[RouteStep], dialect: Dialect
) -> tuple[str, str, dict[str, Any]]:
    """The condition that selects the subscribers `p` by whom the people of an audience are reached, the
    number of a subscriber's step, and the parameters of both.

    A person is meant if any of their subscribers matches the filters, and none has a tag of `tags_none`; a
    permission counts on the channel on which it was granted.
    """
    channels, params = any_of("p.channel", "route_channels", [s.channel for s in steps], dialect)
    parts = ["p.project_id = :project_id", "p.status = 'active'", channels]
    params["project_id"] = project_id
    if audience.permission:
        parts.append(
            "(SELECT COUNT(*) FROM core_subscriber_permissions g WHERE g.project_id = p.project_id"
            " AND g.subscriber_id = p.subscriber_id AND g.permission = :permission) > 0"
        )
        params["permission"] = audience.permission
    wanted = audience.model_copy(
        update={"all": None, "permission": None, "tags_none": None, "channels": None}
    )
    if wanted.to_column():
        text, more = condition(project_id, wanted, None, dialect, active=None)
        parts.append(_OF_PERSON.format(condition=text))
        params |= more
    if audience.tags_none:
        unwanted = Audience(tags_none=audience.tags_none)
        text, more = condition(project_id, unwanted, None, dialect, active=None)
        parts.append(f"NOT {_OF_PERSON.format(condition=f'NOT ({text})')}")
        params |= more
    cases = " ".join(f"WHEN :step_{number} THEN {number}" for number in range(len(steps)))
    params |= {f"step_{number}": step.channel for number, step in enumerate(steps)}
    return " AND ".join(parts), f"CASE p.channel {cases} END", params


async def count_by_bot(
    tx: Tx, project_id: str, audience: Audience, steps: Sequence[RouteStep], most: int
) -> dict[str, int]:
    """The number of people per bot that is the first to reach them; counting stops after about `most`."""
    where, step, params = _reachable(project_id, audience, steps, tx.dialect)
    rows = await tx.fetch_all(
        "SELECT bot, COUNT(*) AS count FROM (SELECT bot, ROW_NUMBER() OVER"
        " (PARTITION BY person, alone ORDER BY step, subscriber_id) AS place"
        " FROM (SELECT p.bot, p.subscriber_id, p.external_id AS person,"
        " CASE WHEN p.external_id IS NULL THEN p.subscriber_id END AS alone,"
        f" {step} AS step FROM core_subscribers p WHERE {where} LIMIT :most) AS found) AS placed"
        " WHERE place = 1 GROUP BY bot",
        {**params, "most": most * len(steps)},
    )
    return {row["bot"]: row["count"] for row in rows}


async def expand(
    tx: Tx,
    mailing: Mailing,
    audience: Audience,
    *,
    after: str,
    until: str,
    before_ms: int,
) -> None:
    """Writes the channels of one step of the expansion into the ledger, all as `standby`."""
    where, step, params = _reachable(mailing.project_id, audience, mailing.steps, tx.dialect)
    await tx.execute(
        "INSERT INTO core_recipients"
        " (project_id, subscriber_id, job_id, bot, status, attempts, person, step)"
        " SELECT p.project_id, p.subscriber_id, CAST(:job_id AS text), p.bot, 'standby', 0,"
        f" p.external_id, {step} FROM core_subscribers p WHERE {where}"
        " AND p.subscriber_id > :after AND p.subscriber_id <= :until"
        " AND p.created_at_ms <= :before_ms ORDER BY p.subscriber_id"
        " ON CONFLICT (project_id, subscriber_id, job_id) DO NOTHING",
        {
            **params,
            "job_id": mailing.job_id,
            "after": after,
            "until": until,
            "before_ms": before_ms,
        },
    )


async def step_end(tx: Tx, mailing: Mailing, after: str, most: int) -> str | None:
    """The last id of the ledger's next `most` rows; None if there are no more."""
    end: str | None = await tx.fetch_val(
        "SELECT MAX(subscriber_id) AS last FROM (SELECT subscriber_id FROM core_recipients"
        f" WHERE {_OF_MAILING} AND subscriber_id > :after ORDER BY subscriber_id LIMIT :most) AS these",
        {**_key(mailing), "after": after, "most": most},
    )
    return end


async def choose_first(tx: Tx, mailing: Mailing, after: str, until: str) -> int:
    """Queues those rows of a part of the complete ledger that are the first of their person; returns how
    many. Which they are does not depend on the parts."""
    return await tx.execute(
        "UPDATE core_recipients AS r SET status = 'queued' WHERE r.project_id = :project_id"
        " AND r.job_id = :job_id AND r.subscriber_id > :after AND r.subscriber_id <= :until"
        " AND r.status = 'standby' AND (r.person IS NULL OR NOT EXISTS (SELECT 1"
        " FROM core_recipients o WHERE o.project_id = r.project_id AND o.job_id = r.job_id"
        " AND o.person = r.person AND (o.step < r.step"
        " OR (o.step = r.step AND o.subscriber_id < r.subscriber_id))))",
        {**_key(mailing), "after": after, "until": until},
    )


async def find_people(
    tx: Tx, mailing: Mailing, subscriber_ids: Sequence[str]
) -> dict[str, list[PersonStep]]:
    """All rows of the people of these rows, by the ids given, in the order of the route. Left out are those
    who are on one channel alone, or not in the ledger any more."""
    if not subscriber_ids:
        return {}
    columns = "subscriber_id, bot, step, status, reason, error, variant, person"
    rows = await tx.fetch_all(
        f"SELECT r.subscriber_id AS given, {', '.join(f'o.{each}' for each in columns.split(', '))}"
        f" FROM {key_table(('project', 'subscriber', 'job'), tx.dialect)}"
        " CROSS JOIN core_recipients r CROSS JOIN core_recipients o"
        " WHERE r.project_id = keys.project AND r.subscriber_id = keys.subscriber"
        " AND r.job_id = keys.job AND o.project_id = keys.project AND o.job_id = keys.job"
        " AND o.person = r.person AND r.person IS NOT NULL ORDER BY o.step, o.subscriber_id",
        key_params(
            [(mailing.project_id, each, mailing.job_id) for each in subscriber_ids], tx.dialect
        ),
    )
    people: dict[str, list[PersonStep]] = defaultdict(list)
    for row in rows:
        people[row["given"]].append(PersonStep(*(row[each] for each in columns.split(", "))))
    return dict(people)


async def change(tx: Tx, mailing: Mailing, changes: Sequence[RowChange]) -> set[str]:
    """Changes rows that have the status from which they are changed; returns their ids."""
    if not changes:
        return set()
    columns = ("subscriber", "before", "status", "reason", "error", "tries", "due", "variant")
    range_, params = ledger.in_range(mailing, [each.subscriber_id for each in changes], tx.dialect)
    keys = [
        (
            each.subscriber_id,
            each.before,
            each.status,
            each.reason,
            each.error,
            str(each.tries),
            None if each.due_ms is None else str(each.due_ms),
            None if each.variant is None else str(each.variant),
        )
        for each in changes
    ]
    rows = await tx.fetch_all(
        "UPDATE core_recipients AS r SET status = keys.status, reason = keys.reason, error = keys.error,"
        " attempts = r.attempts + CAST(keys.tries AS integer), refused_from_ms = NULL,"
        " run_at_ms = CAST(keys.due AS bigint), began_ms = CAST(keys.due AS bigint),"
        " variant = COALESCE(CAST(keys.variant AS smallint), r.variant)"
        f" FROM {key_table(columns, tx.dialect)} WHERE r.project_id = :project_id"
        f" AND r.job_id = :job_id AND r.subscriber_id = keys.subscriber AND r.status = keys.before{range_}"
        " RETURNING subscriber_id",
        {**_key(mailing), **key_params(keys, tx.dialect), **params},
    )
    return {row["subscriber_id"] for row in rows}


async def stand_for(
    tx: Tx, mailing: Mailing, ends: Mapping[str, ledger.RecipientOutcome]
) -> set[str]:
    """Makes rows at which a message may have arrived those of their people, each with how all channels
    together ended; returns the ids of those that are still `doubted`."""
    if not ends:
        return set()
    range_, params = ledger.in_range(mailing, list(ends), tx.dialect)
    keys = [(each, end.message_id, end.reason, end.error) for each, end in ends.items()]
    columns = ("subscriber", "message", "reason", "error")
    rows = await tx.fetch_all(
        "UPDATE core_recipients AS r SET status = 'unknown', message_id = keys.message,"
        f" reason = keys.reason, error = keys.error FROM {key_table(columns, tx.dialect)}"
        " WHERE r.project_id = :project_id AND r.job_id = :job_id"
        f" AND r.subscriber_id = keys.subscriber AND r.status = 'doubted'{range_}"
        " RETURNING subscriber_id",
        {**_key(mailing), **key_params(keys, tx.dialect), **params},
    )
    return {row["subscriber_id"] for row in rows}


async def find_waiting(
    tx: Tx, mailing: Mailing, bot: str, in_flight: Sequence[str], after: str, limit: int
) -> dict[str, int]:
    """Up to `limit` people who wait for a bot, and have another channel: their steps by subscriber, in the
    order of their ids. While variants are tried, only who gets one."""
    others, params = any_of("r.subscriber_id", "in_flight", in_flight, tx.dialect)
    rows = await tx.fetch_all(
        "SELECT r.subscriber_id, r.step FROM core_recipients r WHERE r.project_id = :project_id"
        " AND r.job_id = :job_id AND r.subscriber_id > :after AND r.bot = :bot"
        f" AND r.status = 'queued' AND r.reason IS NULL AND NOT ({others}) AND r.person IS NOT NULL"
        f"{_TESTED[mailing.is_testing]} AND EXISTS (SELECT 1 FROM core_recipients o"
        " WHERE o.project_id = r.project_id AND o.job_id = r.job_id AND o.person = r.person"
        " AND o.status = 'standby') ORDER BY r.subscriber_id LIMIT :limit",
        {**_key(mailing), **params, "bot": bot, "after": after, "limit": limit},
    )
    return {row["subscriber_id"]: row["step"] for row in rows}


async def has_waiting(tx: Tx, mailing: Mailing, bot: str) -> bool:
    """Whether anybody waits for a bot; while variants are tried, anybody who gets one."""
    return bool(
        await tx.fetch_all(
            f"SELECT 1 AS one FROM core_recipients r WHERE {_OF_MAILING} AND r.bot = :bot"
            f" AND r.status = 'queued'{_TESTED[mailing.is_testing]} LIMIT 1",
            {**_key(mailing), "bot": bot},
        )
    )


def _key(mailing: Mailing) -> dict[str, Any]:
    return {"project_id": mailing.project_id, "job_id": mailing.job_id}
