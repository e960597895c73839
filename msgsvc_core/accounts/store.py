"""The SQL of accounts and their sessions."""

from msgsvc_core.accounts.models import Account, AccountSession
from msgsvc_core.db import Row, Tx

_COLUMNS = (
    "a.account_id, a.email, a.name, a.status, a.is_operator, a.lang, a.timezone, a.created_at_ms,"
    " a.signed_in_at_ms, a.password_hash IS NOT NULL AS has_password,"
    " a.totp_confirmed_at_ms IS NOT NULL AS has_totp"
)


async def insert(tx: Tx, account: Account) -> bool:
    """False if there is an account of that e-mail."""
    return bool(
        await tx.execute(
            "INSERT INTO core_accounts (account_id, email, name, status, is_operator, lang, timezone,"
            " created_at_ms) VALUES (:account_id, :email, :name, :status, :is_operator, :lang,"
            " :timezone, :created_at_ms) ON CONFLICT DO NOTHING",
            {
                "account_id": account.account_id,
                "email": account.email,
                "name": account.name,
                "status": account.status,
                "is_operator": account.is_operator,
                "lang": account.lang,
                "timezone": account.timezone,
                "created_at_ms": account.created_at_ms,
            },
        )
    )


async def find(tx: Tx, account_id: str) -> Account | None:
    row = await tx.fetch_one(
        f"SELECT {_COLUMNS} FROM core_accounts a WHERE a.account_id = :account_id",
        {"account_id": account_id},
    )
    return None if row is None else _account(row)


async def set_lang(tx: Tx, account_id: str, lang: str) -> None:
    await tx.execute(
        "UPDATE core_accounts SET lang = :lang WHERE account_id = :account_id",
        {"account_id": account_id, "lang": lang},
    )


async def insert_session(tx: Tx, session: AccountSession, digest: str) -> None:
    await tx.insert(
        "core_account_sessions",
        {
            "digest": digest,
            "account_id": session.account.account_id,
            "session_id": session.session_id,
            "created_at_ms": session.created_at_ms,
            "seen_at_ms": session.seen_at_ms,
            "expires_at_ms": session.expires_at_ms,
            "ip": session.ip,
            "user_agent": session.user_agent,
        },
    )


async def find_session(tx: Tx, digest: str, now_ms: int) -> AccountSession | None:
    """The session of an active account, unless it has ended."""
    row = await tx.fetch_one(
        f"SELECT {_COLUMNS}, s.session_id, s.created_at_ms AS begun_at_ms, s.seen_at_ms,"
        " s.expires_at_ms, s.ip, s.user_agent FROM core_account_sessions s"
        " JOIN core_accounts a ON a.account_id = s.account_id"
        " WHERE s.digest = :digest AND s.expires_at_ms > :now_ms AND a.status = 'active'",
        {"digest": digest, "now_ms": now_ms},
    )
    if row is None:
        return None
    return AccountSession(
        session_id=row["session_id"],
        account=_account(row),
        created_at_ms=row["begun_at_ms"],
        seen_at_ms=row["seen_at_ms"],
        expires_at_ms=row["expires_at_ms"],
        ip=row["ip"],
        user_agent=row["user_agent"],
    )


async def find_role(tx: Tx, account_id: str, project_id: str) -> str | None:
    """Owner of their own projects, else what they are as a member; None for everybody else's."""
    role: str | None = await tx.fetch_val(
        "SELECT CASE WHEN p.account_id = :account_id THEN 'owner' ELSE m.role END"
        " FROM core_projects p LEFT JOIN core_members m ON m.project_id = p.project_id"
        " AND m.account_id = :account_id AND m.status = 'active'"
        " WHERE p.project_id = :project_id",
        {"account_id": account_id, "project_id": project_id},
    )
    return role


async def list_projects(tx: Tx, account_id: str) -> list[tuple[str, str, str]]:
    """(project_id, name, role) of an account's own projects and of those they are a member of."""
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


async def set_owner(tx: Tx, project_id: str, account_id: str | None) -> bool:
    """False if there is no such project."""
    return bool(
        await tx.execute(
            "UPDATE core_projects SET account_id = :account_id WHERE project_id = :project_id",
            {"project_id": project_id, "account_id": account_id},
        )
    )


async def set_member(tx: Tx, project_id: str, member_id: str, account_id: str) -> bool:
    """False if the project has no such active member."""
    return bool(
        await tx.execute(
            "UPDATE core_members SET account_id = :account_id WHERE project_id = :project_id"
            " AND member_id = :member_id AND status = 'active'",
            {"project_id": project_id, "member_id": member_id, "account_id": account_id},
        )
    )


async def find_owner(tx: Tx, project_id: str) -> str | None:
    """The account that owns a project; None where the operator alone does."""
    owner: str | None = await tx.fetch_val(
        "SELECT account_id FROM core_projects WHERE project_id = :project_id",
        {"project_id": project_id},
    )
    return owner


def _account(row: Row) -> Account:
    return Account(
        account_id=row["account_id"],
        email=row["email"],
        name=row["name"],
        status=row["status"],
        is_operator=bool(row["is_operator"]),
        lang=row["lang"],
        timezone=row["timezone"],
        created_at_ms=row["created_at_ms"],
        signed_in_at_ms=row["signed_in_at_ms"],
        has_password=bool(row["has_password"]),
        has_totp=bool(row["has_totp"]),
    )
