"""The SQL of accounts' credits: each change is one UPDATE, which returns what it took."""

from collections.abc import Collection, Mapping
from typing import Any

from msgsvc_billing.models import Debit, State
from msgsvc_core.db import Row, Tx
from msgsvc_core.db.sql import array_param, in_array

_COLUMNS = (
    "b.account_id, b.plan, b.anchor_ms, b.period_started_ms, b.period_ends_ms, b.granted, b.used,"
    " b.packs, b.exhausted_at_ms"
)

#: What is left of this month's allowance.
_LEFT = "CASE WHEN granted > used THEN granted - used ELSE 0 END"

#: What a charge takes: of the allowance as far as it goes, then of packs.
_OF_ALLOWANCE = f"CASE WHEN {_LEFT} < :cost THEN {_LEFT} ELSE :cost END"
_OF_PACKS = (
    f"CASE WHEN packs < :cost - ({_OF_ALLOWANCE}) THEN packs ELSE :cost - ({_OF_ALLOWANCE}) END"
)


async def find(tx: Tx, account_id: str) -> State | None:
    row = await tx.fetch_one(
        f"SELECT {_COLUMNS} FROM billing_accounts b WHERE b.account_id = :account_id",
        {"account_id": account_id},
    )
    return None if row is None else _state(row)


async def find_many(tx: Tx, account_ids: Collection[str]) -> dict[str, State]:
    """Accounts that have been charged or granted something, by id."""
    rows = await tx.fetch_all(
        f"SELECT {_COLUMNS} FROM billing_accounts b"
        f" WHERE {in_array('b.account_id', 'account_ids', tx.dialect)}",
        {"account_ids": array_param(sorted(account_ids), tx.dialect)},
    )
    return {row["account_id"]: _state(row) for row in rows}


async def insert(tx: Tx, state: State) -> bool:
    """False if the account exists."""
    return bool(
        await tx.execute(
            "INSERT INTO billing_accounts (account_id, plan, anchor_ms, period_started_ms,"
            " period_ends_ms, granted, used, packs, took_allowance, took_packs, exhausted_at_ms)"
            " VALUES (:account_id, :plan, :anchor_ms, :period_started_ms, :period_ends_ms, :granted,"
            " 0, 0, 0, 0, :exhausted_at_ms) ON CONFLICT DO NOTHING",
            {
                "account_id": state.account_id,
                "plan": state.plan,
                "anchor_ms": state.anchor_ms,
                "period_started_ms": state.period_started_ms,
                "period_ends_ms": state.period_ends_ms,
                "granted": state.granted,
                "exhausted_at_ms": state.exhausted_at_ms,
            },
        )
    )


async def debit(tx: Tx, account_id: str, cost: int, now_ms: int) -> tuple[Debit, State] | None:
    """Takes `cost`, or as much of it as there is; also returns whether that exhausted the credits.

    None if the account's month is over, or it has none.
    """
    return await _change(
        tx,
        f"took_allowance = {_OF_ALLOWANCE}, took_packs = {_OF_PACKS},"
        f" used = used + {_OF_ALLOWANCE}, packs = packs - ({_OF_PACKS}),"
        f" exhausted_at_ms = CASE WHEN {_LEFT} + packs <= :cost THEN COALESCE(exhausted_at_ms,"
        " :now_ms) END",
        "period_ends_ms > :now_ms",
        {"account_id": account_id, "cost": cost, "now_ms": now_ms},
    )


async def refund(
    tx: Tx, account_id: str, allowance: int, packs: int, taken_at_ms: int
) -> tuple[Debit, State] | None:
    """Reverts a debit; an allowance of an earlier month is not refunded."""
    used = (
        "used - CASE WHEN :taken_at_ms < period_started_ms THEN 0 WHEN used < :allowance THEN used"
        " ELSE :allowance END"
    )
    left = f"CASE WHEN granted > {used} THEN granted - ({used}) ELSE 0 END"
    return await _change(
        tx,
        f"took_allowance = {_LEFT} - {left}, took_packs = 0 - :packs,"
        f" used = {used}, packs = packs + :packs,"
        f" exhausted_at_ms = CASE WHEN {left} + packs + :packs = 0 THEN exhausted_at_ms END",
        "1 = 1",
        {
            "account_id": account_id,
            "allowance": allowance,
            "packs": packs,
            "taken_at_ms": taken_at_ms,
        },
    )


async def add_packs(
    tx: Tx, account_id: str, count: int, *, unlimited: bool, now_ms: int
) -> tuple[Debit, State] | None:
    """Adds credits that do not expire; a negative number removes them. None if there are not enough."""
    return await _change(
        tx,
        "took_allowance = 0, took_packs = 0 - :count, packs = packs + :count,"
        f" exhausted_at_ms = CASE WHEN :unlimited = 0 AND {_LEFT} + packs + :count = 0"
        " THEN COALESCE(exhausted_at_ms, :now_ms) END",
        "packs + :count >= 0",
        {
            "account_id": account_id,
            "count": count,
            "unlimited": int(unlimited),
            "now_ms": now_ms,
        },
    )


async def renew(
    tx: Tx, before: State, fresh: State, *, unlimited: bool, now_ms: int
) -> tuple[Debit, State] | None:
    """Starts another month and forfeits the remaining allowance of the previous one. None if that was done
    already."""
    return await _change(
        tx,
        f"took_allowance = {_LEFT}, took_packs = 0, granted = :granted, used = 0,"
        " period_started_ms = :period_started_ms, period_ends_ms = :period_ends_ms,"
        " exhausted_at_ms = CASE WHEN :unlimited = 0 AND :granted + packs = 0"
        " THEN COALESCE(exhausted_at_ms, :now_ms) END",
        "period_ends_ms = :ended_ms AND plan = :plan",
        {
            "account_id": before.account_id,
            "ended_ms": before.period_ends_ms,
            "plan": before.plan,
            "granted": fresh.granted,
            "period_started_ms": fresh.period_started_ms,
            "period_ends_ms": fresh.period_ends_ms,
            "unlimited": int(unlimited),
            "now_ms": now_ms,
        },
    )


async def set_plan(
    tx: Tx, account_id: str, plan: str, granted: int, *, unlimited: bool, now_ms: int
) -> tuple[Debit, State] | None:
    """Changes the plan; this month's usage counts towards it. None if it is the current plan."""
    left = "CASE WHEN :granted > used THEN :granted - used ELSE 0 END"
    return await _change(
        tx,
        f"took_allowance = {_LEFT} - {left}, took_packs = 0, plan = :plan, granted = :granted,"
        f" exhausted_at_ms = CASE WHEN :unlimited = 0 AND {left} + packs = 0"
        " THEN COALESCE(exhausted_at_ms, :now_ms) END",
        "plan <> :plan",
        {
            "account_id": account_id,
            "plan": plan,
            "granted": granted,
            "unlimited": int(unlimited),
            "now_ms": now_ms,
        },
    )


async def list_ended(tx: Tx, now_ms: int, limit: int) -> list[State]:
    """Accounts whose month is over, oldest first."""
    rows = await tx.fetch_all(
        f"SELECT {_COLUMNS} FROM billing_accounts b WHERE b.period_ends_ms <= :now_ms"
        " ORDER BY b.period_ends_ms LIMIT :limit",
        {"now_ms": now_ms, "limit": limit},
    )
    return [_state(row) for row in rows]


async def count_exhausted(tx: Tx, before_ms: int) -> int:
    """Number of accounts whose credits were exhausted by then."""
    return int(
        await tx.fetch_val(
            "SELECT COUNT(*) FROM billing_accounts WHERE exhausted_at_ms <= :before_ms",
            {"before_ms": before_ms},
        )
    )


async def _change(
    tx: Tx, changes: str, condition: str, params: Mapping[str, Any]
) -> tuple[Debit, State] | None:
    row = await tx.fetch_one(
        f"UPDATE billing_accounts SET {changes} WHERE account_id = :account_id AND {condition}"
        f" RETURNING took_allowance, took_packs, {_COLUMNS.replace('b.', '')}",
        params,
    )
    if row is None:
        return None
    return Debit(row["took_allowance"], row["took_packs"]), _state(row)


def _state(row: Row) -> State:
    return State(
        account_id=row["account_id"],
        plan=row["plan"],
        anchor_ms=row["anchor_ms"],
        period_started_ms=row["period_started_ms"],
        period_ends_ms=row["period_ends_ms"],
        granted=row["granted"],
        used=row["used"],
        packs=row["packs"],
        exhausted_at_ms=row["exhausted_at_ms"],
    )
