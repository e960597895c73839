"""Commits write batches on PostgreSQL: one statement for all rows of a table, by `unnest`."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any

import asyncpg

from msgsvc_core.db.errors import (
    ConstraintViolation,
    Deadlock,
    LockTimeout,
    check_committed,
    is_lost,
    is_refusal,
    named_errors,
)
from msgsvc_core.db.postgres_inserts import Claims, UnnestInserts
from msgsvc_core.db.rows import Shape, Values
from msgsvc_core.db.tx import UNDO_S
from msgsvc_core.db.write_batch import WriteBatch, by_shape, claims_by_kind, without_claim
from msgsvc_core.db.writer import Outcome

#: Milliseconds for which a claim waits for another transaction that has written the same row and not
#: committed yet. It delays the whole batch, so it is short; callers may retry.
CLAIM_WAIT_MS = 100

#: The first unit of each claimed key, by the key's values.
Firsts = Mapping[Values, WriteBatch]


class PostgresBatches:
    """`acquire` returns a connection of the pool."""

    #: With two, each held a third fewer units, which cost more than the wait for the disk.
    max_concurrent = 1

    def __init__(
        self, acquire: Callable[[float], AbstractAsyncContextManager[Any]], inserts: UnnestInserts
    ) -> None:
        self._acquire = acquire
        self._inserts = inserts

    async def open(self) -> None:
        """Nothing to do: the pool is open."""

    async def close(self) -> None:
        """Nothing to do: the pool closes its connections."""

    async def commit(self, units: Sequence[WriteBatch], until_s: float) -> Sequence[Outcome]:
        """Commits all units together, or, if one of them fails, each in a separate savepoint."""
        async with self._acquire(until_s) as connection:
            with named_errors():
                try:
                    return await self._write(connection, units)
                except (asyncpg.PostgresError, ValueError) as error:
                    if is_lost(error):
                        raise
                return await self._in_transaction(connection, self._write_one_by_one, units)

    async def _write(
        self, connection: asyncpg.Connection, units: Sequence[WriteBatch]
    ) -> list[Outcome]:
        """As one statement if possible: an implicit transaction in one round trip."""
        kinds = claims_by_kind(units)
        if not kinds:
            await self._insert(connection, units)
            return [None] * len(units)
        if len(kinds) > 1:
            return await self._in_transaction(connection, self._write_together, units)
        [((shape, key), first)] = kinds.items()
        claims = Claims(
            shape, key, [unit.required.values for unit in first.values() if unit.required]
        )
        return await self._claim_and_insert(connection, units, claims, first)

    async def _in_transaction(
        self, connection: asyncpg.Connection, write: Any, units: Sequence[WriteBatch]
    ) -> list[Outcome]:
        waits = any(unit.required for unit in units)
        await connection.execute(
            f"BEGIN; SET LOCAL lock_timeout = {CLAIM_WAIT_MS}" if waits else "BEGIN"
        )
        try:
            outcomes: list[Outcome] = await write(connection, units)
            check_committed(await connection.execute("COMMIT"))
        except BaseException:
            # A lost connection has nothing to roll back, and its error is the one to report.
            with suppress(asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
                await connection.execute("ROLLBACK", timeout=UNDO_S)
            raise
        return outcomes

    async def _write_together(
        self, connection: asyncpg.Connection, units: Sequence[WriteBatch]
    ) -> list[Outcome]:
        outcomes: list[Outcome] = without_claim(units, await self._claimed(connection, units))
        written = [unit for unit, outcome in zip(units, outcomes, strict=True) if outcome is None]
        await self._insert(connection, written)
        return outcomes

    async def _insert(self, connection: asyncpg.Connection, units: Sequence[WriteBatch]) -> None:
        rows = by_shape(units)
        if rows:
            statement, values = await self._inserts.get(connection, rows)
            await connection.execute(statement, *values)

    async def _claim_and_insert(
        self,
        connection: asyncpg.Connection,
        units: Sequence[WriteBatch],
        claims: Claims,
        first: Firsts,
    ) -> list[Outcome]:
        """Writes the units whose claim is new and those without one; `first` are the units of `claims`."""
        numbers = {id(unit): number for number, unit in enumerate(first.values(), start=1)}
        rows: dict[Shape, list[Values]] = {}
        for unit in units:
            # None: an earlier unit of the batch has the same claim.
            number = 0 if unit.required is None else numbers.get(id(unit))
            if number is not None:
                for shape, values in unit.rows:
                    rows.setdefault(shape, []).append((*values, number))
        statement, given = await self._inserts.get_claiming(connection, claims, rows, CLAIM_WAIT_MS)
        new = {row["claim_no_"] for row in await connection.fetch(statement, *given)}
        return without_claim(units, {id_ for id_, number in numbers.items() if number in new})

    async def _claimed(
        self, connection: asyncpg.Connection, units: Sequence[WriteBatch]
    ) -> set[int]:
        """The units, by `id`, whose claimed row was new."""
        won: set[int] = set()
        for (shape, key), units_by_key in claims_by_kind(units).items():
            claims = [unit.required.values for unit in units_by_key.values() if unit.required]
            insert, values = await self._inserts.get(connection, {shape: claims})
            statement = f"{insert} ON CONFLICT DO NOTHING RETURNING {', '.join(key)}"
            for row in await connection.fetch(statement, *values):
                won.add(id(units_by_key[tuple(row)]))
        return won

    async def _write_one_by_one(
        self, connection: asyncpg.Connection, units: Sequence[WriteBatch]
    ) -> list[Outcome]:
        outcomes: list[Outcome] = []
        for unit in units:
            # The batch has waited for the claim's holder already, and other callers wait for this batch. A
            # unit without a claim waits as the batch did, e.g. for a migration that changes the table.
            wait_ms = 1 if unit.required else 0
            await connection.execute(f"SAVEPOINT unit; SET LOCAL lock_timeout = {wait_ms}")
            try:
                outcomes += await self._write_together(connection, [unit])
            except (asyncpg.PostgresError, ValueError) as error:
                if is_lost(error):
                    raise
                outcomes.append(_named(error, unit))
                await connection.execute("ROLLBACK TO SAVEPOINT unit")
            await connection.execute("RELEASE SAVEPOINT unit")
        return outcomes


def _named(error: Exception, unit: WriteBatch) -> Exception:
    """The error of one unit, as one of `errors` if it has one."""
    if is_refusal(error):
        return ConstraintViolation(str(error))
    # The statement's lock timeout expired, or it was part of a deadlock.
    if isinstance(error, asyncpg.LockNotAvailableError | asyncpg.DeadlockDetectedError):
        return LockTimeout(str(error)) if unit.required else Deadlock(str(error))
    return error
