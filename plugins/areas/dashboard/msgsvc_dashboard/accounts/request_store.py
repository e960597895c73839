"""The SQL of browsers that wait for their number in a messenger, and of linked messengers."""

from msgsvc_core.db import Tx
from msgsvc_dashboard.accounts.models import LinkedMessenger, MessengerRequest, RequestStatus

_COLUMNS = (
    "digest, purpose, account_id, status, ip, user_agent, created_at_ms, expires_at_ms, number"
)


async def insert(tx: Tx, request: MessengerRequest, browser_digest: str) -> None:
    await tx.insert(
        "dashboard_account_requests",
        {
            "digest": request.digest,
            "purpose": request.purpose,
            "browser_digest": browser_digest,
            "account_id": request.account_id,
            "status": request.status,
            "ip": request.ip,
            "user_agent": request.user_agent,
            "created_at_ms": request.created_at_ms,
            "expires_at_ms": request.expires_at_ms,
            "number": request.number,
        },
    )


async def find(tx: Tx, digest: str, now_ms: int) -> MessengerRequest | None:
    """By the secret of its start link; None for one that has expired."""
    return await _find(tx, "digest", digest, now_ms)


async def find_by_browser(tx: Tx, digest: str, now_ms: int) -> MessengerRequest | None:
    """By the secret of the waiting browser."""
    return await _find(tx, "browser_digest", digest, now_ms)


async def _find(tx: Tx, column: str, digest: str, now_ms: int) -> MessengerRequest | None:
    row = await tx.fetch_one(
        f"SELECT {_COLUMNS} FROM dashboard_account_requests"
        f" WHERE {column} = :digest AND expires_at_ms > :now_ms",
        {"digest": digest, "now_ms": now_ms},
    )
    return None if row is None else MessengerRequest(*row)


async def settle(
    tx: Tx, digest: str, before: RequestStatus, after: RequestStatus, account_id: str | None
) -> bool:
    """False unless its status was `before`. `account_id` is kept if it is set already."""
    return bool(
        await tx.execute(
            "UPDATE dashboard_account_requests SET status = :after,"
            " account_id = COALESCE(account_id, :account_id)"
            " WHERE digest = :digest AND status = :before",
            {"digest": digest, "before": before, "after": after, "account_id": account_id},
        )
    )


async def end_of_account(tx: Tx, account_id: str) -> None:
    """Ends the account's pending requests."""
    await tx.execute(
        "DELETE FROM dashboard_account_requests WHERE account_id = :account_id",
        {"account_id": account_id},
    )


async def link(tx: Tx, messenger: LinkedMessenger) -> bool:
    """Links a user of a bot to the account. False if they are linked to another."""
    done = await tx.execute(
        "INSERT INTO dashboard_account_messengers (bot, user_id, account_id, name, linked_at_ms)"
        " VALUES (:bot, :user_id, :account_id, :name, :linked_at_ms)"
        " ON CONFLICT (bot, user_id) DO UPDATE SET name = :name, linked_at_ms = :linked_at_ms"
        " WHERE dashboard_account_messengers.account_id = :account_id",
        {
            "bot": messenger.bot,
            "user_id": messenger.user_id,
            "account_id": messenger.account_id,
            "name": messenger.name,
            "linked_at_ms": messenger.linked_at_ms,
        },
    )
    return bool(done)


async def unlink_all(tx: Tx, account_id: str) -> None:
    await tx.execute(
        "DELETE FROM dashboard_account_messengers WHERE account_id = :account_id",
        {"account_id": account_id},
    )


async def find_account(tx: Tx, bot: str, user_id: str) -> str | None:
    """The active account that a user of a bot signs in to."""
    account_id: str | None = await tx.fetch_val(
        "SELECT m.account_id FROM dashboard_account_messengers m"
        " JOIN dashboard_accounts a ON a.account_id = m.account_id"
        " WHERE m.bot = :bot AND m.user_id = :user_id AND a.status = 'active'",
        {"bot": bot, "user_id": user_id},
    )
    return account_id


async def list_linked(tx: Tx, account_id: str) -> list[LinkedMessenger]:
    """The messengers of an account, in the order of linking."""
    rows = await tx.fetch_all(
        "SELECT bot, user_id, account_id, name, linked_at_ms FROM dashboard_account_messengers"
        " WHERE account_id = :account_id ORDER BY linked_at_ms, bot, user_id",
        {"account_id": account_id},
    )
    return [LinkedMessenger(*row) for row in rows]


async def unlink(tx: Tx, account_id: str, bot: str, user_id: str) -> bool:
    """False if that messenger is not linked to the account."""
    return bool(
        await tx.execute(
            "DELETE FROM dashboard_account_messengers WHERE account_id = :account_id"
            " AND bot = :bot AND user_id = :user_id",
            {"account_id": account_id, "bot": bot, "user_id": user_id},
        )
    )
