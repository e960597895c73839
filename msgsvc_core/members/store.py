"""The SQL of members, their subscribers and their links."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgsvc_core.db import Row, Tx
from msgsvc_core.db.sql import array_param, for_update, in_array, key_params, key_table
from msgsvc_core.members.models import ANSWERING, Member, MemberQuery

_COLUMNS = (
    "m.project_id, m.member_id, m.name, m.email, m.role, m.status, m.created_at_ms, m.removed_at_ms"
)


async def insert(tx: Tx, member: Member) -> bool:
    """False if an active member of the project has that email."""
    return bool(
        await tx.execute(
            "INSERT INTO core_members (project_id, member_id, name, email, role, status,"
            " created_at_ms) VALUES (:project_id, :member_id, :name, :email, :role, :status,"
            " :created_at_ms) ON CONFLICT DO NOTHING",
            {
                "project_id": member.project_id,
                "member_id": member.member_id,
                "name": member.name,
                "email": member.email,
                "role": member.role,
                "status": member.status,
                "created_at_ms": member.created_at_ms,
            },
        )
    )


async def get_many(tx: Tx, project_id: str, member_ids: Sequence[str]) -> dict[str, Member]:
    """Existing members by id."""
    found = await _select(
        tx,
        project_id,
        f" AND {in_array('m.member_id', 'ids', tx.dialect)}",
        {"ids": array_param(member_ids, tx.dialect)},
    )
    return {member.member_id: member for member in found}


async def find_by_subscriber(tx: Tx, project_id: str, subscriber_id: str) -> Member | None:
    found = await _select(
        tx,
        project_id,
        " AND m.status = 'active' AND m.member_id = (SELECT l.member_id"
        " FROM core_member_subscribers l WHERE l.project_id = :project_id"
        " AND l.subscriber_id = :subscriber_id)",
        {"subscriber_id": subscriber_id},
    )
    return found[0] if found else None


async def find_by_account(tx: Tx, project_id: str, account_id: str) -> Member | None:
    found = await _select(
        tx,
        project_id,
        " AND m.status = 'active' AND m.account_id = :account_id",
        {"account_id": account_id},
    )
    return found[0] if found else None


async def find_role(tx: Tx, account_id: str, project_id: str) -> str | None:
    """`owner` for the account that owns the project, else its role as an active member."""
    role: str | None = await tx.fetch_val(
        "SELECT CASE WHEN p.account_id = :account_id THEN 'owner' ELSE m.role END"
        " FROM core_projects p LEFT JOIN core_members m ON m.project_id = p.project_id"
        " AND m.account_id = :account_id AND m.status = 'active'"
        " WHERE p.project_id = :project_id",
        {"account_id": account_id, "project_id": project_id},
    )
    return role


async def list_projects(tx: Tx, account_id: str) -> list[tuple[str, str, str]]:
    """(project_id, name, role) of an account's own projects and of those it is a member of."""
    rows = await tx.fetch_all(
        "SELECT project_id, name, 'owner' AS role FROM core_projects"
        " WHERE account_id = :account_id UNION ALL"
        " SELECT p.project_id, p.name, m.role FROM core_members m"
        " JOIN core_projects p ON p.project_id = m.project_id"
        " WHERE m.account_id = :account_id AND m.status = 'active'"
        " AND (p.account_id IS NULL OR p.account_id <> :account_id) ORDER BY 1",
        {"account_id": account_id},
    )
    return [(row["project_id"], row["name"], row["role"]) for row in rows]


async def set_account(tx: Tx, project_id: str, member_id: str, account_id: str) -> bool:
    """False if the project has no such active member."""
    return bool(
        await tx.execute(
            "UPDATE core_members SET account_id = :account_id WHERE project_id = :project_id"
            " AND member_id = :member_id AND status = 'active'",
            {"project_id": project_id, "member_id": member_id, "account_id": account_id},
        )
    )


async def list_accounts(tx: Tx, project_id: str, member_id: str | None = None) -> dict[str, str]:
    """The account of each active member that has one, or of `member_id`, by the member's id."""
    condition, params = "", {"project_id": project_id}
    if member_id is not None:
        condition, params["member_id"] = " AND member_id = :member_id", member_id
    rows = await tx.fetch_all(
        "SELECT member_id, account_id FROM core_members WHERE project_id = :project_id"
        f" AND status = 'active' AND account_id IS NOT NULL{condition}",
        params,
    )
    return {row["member_id"]: row["account_id"] for row in rows}


async def has_other_owner(tx: Tx, project_id: str, member_id: str) -> bool:
    """Whether there is another owner without that member: the account that owns the project, or another
    owner with an account."""
    return bool(
        await tx.fetch_val(
            "SELECT 1 AS found FROM core_projects p WHERE p.project_id = :project_id"
            " AND (p.account_id IS NOT NULL OR EXISTS (SELECT 1 FROM core_members m"
            " WHERE m.project_id = p.project_id AND m.member_id <> :member_id"
            " AND m.status = 'active' AND m.role = 'owner' AND m.account_id IS NOT NULL))",
            {"project_id": project_id, "member_id": member_id},
        )
    )


async def count_others(tx: Tx, project_id: str, account_id: str, email: str) -> int:
    """The number of active members other than the account that owns the project.

    The member with its email is that account, unless another account is linked to the member.
    """
    return int(
        await tx.fetch_val(
            "SELECT COUNT(*) FROM core_members WHERE project_id = :project_id"
            " AND status = 'active' AND (account_id <> :account_id"
            " OR (account_id IS NULL AND email <> :email))",
            {"project_id": project_id, "account_id": account_id, "email": email},
        )
    )


async def bound_among(tx: Tx, keys: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Those of (project_id, subscriber_id) that are linked to a member, in the order of their ids."""
    if not keys:
        return []
    rows = await tx.fetch_all(
        "SELECT l.project_id, l.subscriber_id"
        f" FROM {key_table(('project', 'subscriber'), tx.dialect)}"
        " CROSS JOIN core_member_subscribers l WHERE l.project_id = keys.project"
        " AND l.subscriber_id = keys.subscriber ORDER BY l.subscriber_id",
        key_params(keys, tx.dialect),
    )
    return [(row["project_id"], row["subscriber_id"]) for row in rows]


async def list_agents(tx: Tx, project_id: str) -> list[Member]:
    """Oldest first."""
    return await _select(
        tx,
        project_id,
        f" AND m.status = 'active' AND {in_array('m.role', 'roles', tx.dialect)} ORDER BY m.member_id",
        {"roles": array_param(ANSWERING, tx.dialect)},
    )


async def list_page(tx: Tx, project_id: str, query: MemberQuery) -> list[Member]:
    """Newest first."""
    params: dict[str, Any] = {"status": query.status, "most": query.fetch_limit}
    condition = " AND m.status = :status"
    if query.role is not None:
        condition += " AND m.role = :role"
        params["role"] = query.role
    if (after := query.begin("mem")) is not None:
        condition += " AND m.member_id < :after"
        params["after"] = after
    return await _select(
        tx, project_id, f"{condition} ORDER BY m.member_id DESC LIMIT :most", params
    )


async def lock(tx: Tx, project_id: str, member_id: str) -> Member | None:
    """Locks the member until the transaction ends."""
    row = await tx.fetch_one(
        "SELECT 1 AS found FROM core_members WHERE project_id = :project_id"
        f" AND member_id = :member_id{for_update(tx.dialect)}",
        {"project_id": project_id, "member_id": member_id},
    )
    if row is None:
        return None
    return (await get_many(tx, project_id, [member_id])).get(member_id)


async def email_is_taken(tx: Tx, project_id: str, member_id: str, email: str) -> bool:
    """Whether another active member has the email."""
    return bool(
        await tx.fetch_val(
            "SELECT 1 AS found FROM core_members WHERE project_id = :project_id"
            " AND email = :email AND status = 'active' AND member_id <> :member_id",
            {"project_id": project_id, "email": email, "member_id": member_id},
        )
    )


async def update(tx: Tx, project_id: str, member_id: str, changes: Mapping[str, str]) -> None:
    assignments = ", ".join(f"{column} = :{column}" for column in changes)
    await tx.execute(
        f"UPDATE core_members SET {assignments}"
        " WHERE project_id = :project_id AND member_id = :member_id AND status = 'active'",
        {"project_id": project_id, "member_id": member_id, **changes},
    )


async def mark_removed(tx: Tx, project_id: str, member_id: str, now_ms: int) -> bool:
    """False if they were removed before."""
    return bool(
        await tx.execute(
            "UPDATE core_members SET status = 'removed', removed_at_ms = :now_ms"
            " WHERE project_id = :project_id AND member_id = :member_id AND status = 'active'",
            {"project_id": project_id, "member_id": member_id, "now_ms": now_ms},
        )
    )


async def delete(tx: Tx, project_id: str, member_id: str) -> bool:
    """Deletes the row, and by foreign keys those that refer to it."""
    return bool(
        await tx.execute(
            "DELETE FROM core_members WHERE project_id = :project_id AND member_id = :member_id",
            {"project_id": project_id, "member_id": member_id},
        )
    )


async def bind(tx: Tx, project_id: str, member_id: str, subscriber_id: str, now_ms: int) -> None:
    """Links the subscriber to this member, replacing any other."""
    await tx.execute(
        "INSERT INTO core_member_subscribers (project_id, subscriber_id, member_id, linked_at_ms)"
        " VALUES (:project_id, :subscriber_id, :member_id, :now_ms)"
        " ON CONFLICT (project_id, subscriber_id)"
        " DO UPDATE SET member_id = :member_id, linked_at_ms = :now_ms",
        {
            "project_id": project_id,
            "member_id": member_id,
            "subscriber_id": subscriber_id,
            "now_ms": now_ms,
        },
    )


async def unbind(tx: Tx, project_id: str, member_id: str, subscriber_id: str | None) -> bool:
    """Unlinks a member from one subscriber, or from all; False if there was none."""
    condition, params = "", {"project_id": project_id, "member_id": member_id}
    if subscriber_id is not None:
        condition, params["subscriber_id"] = " AND subscriber_id = :subscriber_id", subscriber_id
    return bool(
        await tx.execute(
            "DELETE FROM core_member_subscribers"
            f" WHERE project_id = :project_id AND member_id = :member_id{condition}",
            params,
        )
    )


async def insert_link(
    tx: Tx, project_id: str, member_id: str, digest: str, expires_at_ms: int
) -> None:
    await tx.insert(
        "core_member_links",
        {
            "digest": digest,
            "project_id": project_id,
            "member_id": member_id,
            "expires_at_ms": expires_at_ms,
        },
    )


async def find_link(tx: Tx, digest: str, now_ms: int) -> Row | None:
    """`project_id`, `member_id` and `used_by` of a link that has not expired."""
    return await tx.fetch_one(
        "SELECT project_id, member_id, used_by FROM core_member_links"
        " WHERE digest = :digest AND expires_at_ms > :now_ms",
        {"digest": digest, "now_ms": now_ms},
    )


async def use_link(tx: Tx, digest: str, subscriber_id: str) -> None:
    await tx.execute(
        "UPDATE core_member_links SET used_by = :subscriber_id WHERE digest = :digest",
        {"digest": digest, "subscriber_id": subscriber_id},
    )


async def delete_links(tx: Tx, project_id: str, member_id: str, used_by: str | None) -> None:
    """Deletes a member's links: those that a subscriber has used, or all."""
    condition, params = "", {"project_id": project_id, "member_id": member_id}
    if used_by is not None:
        condition, params["used_by"] = " AND used_by = :used_by", used_by
    await tx.execute(
        "DELETE FROM core_member_links"
        f" WHERE project_id = :project_id AND member_id = :member_id{condition}",
        params,
    )


async def _select(
    tx: Tx, project_id: str, condition: str, params: Mapping[str, Any]
) -> list[Member]:
    rows = await tx.fetch_all(
        f"SELECT {_COLUMNS} FROM core_members m WHERE m.project_id = :project_id{condition}",
        {"project_id": project_id, **params},
    )
    bound = await _subscribers(tx, project_id, [row["member_id"] for row in rows])
    found = []
    for row in rows:
        values: list[Any] = [*row, tuple(bound.get(row["member_id"], ()))]
        found.append(Member(*values))
    return found


async def _subscribers(tx: Tx, project_id: str, member_ids: Sequence[str]) -> dict[str, list[str]]:
    if not member_ids:
        return {}
    rows = await tx.fetch_all(
        "SELECT member_id, subscriber_id FROM core_member_subscribers"
        f" WHERE project_id = :project_id AND {in_array('member_id', 'ids', tx.dialect)}"
        " ORDER BY linked_at_ms, subscriber_id",
        {"project_id": project_id, "ids": array_param(member_ids, tx.dialect)},
    )
    bound: dict[str, list[str]] = {}
    for row in rows:
        bound.setdefault(row["member_id"], []).append(row["subscriber_id"])
    return bound
