"""Rotation of the secret keys: every encrypted value of the database is brought under the current key.

It works in small steps beside services that use the database. A value that changes meanwhile is left to
whoever changed it, and values that name the current key are passed over: so it can be interrupted at any
moment, and goes on when it is run again.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial

from msgsvc_core.db import Row, Tx
from msgsvc_core.db.retrying import retry_on_deadlock
from msgsvc_core.security.sealed import (
    KeyUse,
    LostValues,
    Renewed,
    SealedColumn,
    count_by_key,
    find_lost,
    list_older,
    replace_values,
)
from msgsvc_core.security.secret_box import DecryptionError, SecretBox

#: Values per step: some 20 ms of encryption outside of the transaction, and 5 ms in it, for which SQLite's
#: other writers wait.
STEP = 200

#: Passes over a table: a second one finds what was written under an older key during the first.
PASSES = 3

#: Opens a read connection or a transaction.
Opened = Callable[[], AbstractAsyncContextManager[Tx]]

#: Called after each step with the column and the values of the step.
OnStep = Callable[[SealedColumn, int], None]


@dataclass(frozen=True, slots=True)
class Rotated:
    """Values that were re-encrypted and that no key reads, by column, and what is in the database now."""

    renewed: Counter[str]
    unreadable: Counter[str]
    uses: Sequence[KeyUse]


class KeyRotation:
    """Brings values under the current key. `read` and `transaction` are those of the database or of a job."""

    def __init__(
        self,
        *,
        secrets: SecretBox,
        columns: Sequence[SealedColumn],
        read: Opened,
        transaction: Opened,
    ) -> None:
        self._secrets = secrets
        self._columns = columns
        self._read = read
        self._transaction = transaction

    async def uses(self) -> list[KeyUse]:
        """How many values are under which key, by column."""
        async with self._read() as tx:
            return [await count_by_key(tx, column) for column in self._columns]

    async def lost(self, uses: Sequence[KeyUse]) -> list[LostValues]:
        """The values that no key reads."""
        async with self._read() as tx:
            found = [await find_lost(tx, use, self._secrets) for use in uses]
        return [each for each in found if each is not None]

    async def run(self, on_step: OnStep) -> Rotated:
        """Re-encrypts everything. Values that no key reads stay as they are."""
        renewed: Counter[str] = Counter()
        unreadable: Counter[str] = Counter()
        for column in self._columns:
            for _ in range(PASSES):
                done = await self._pass(column, on_step)
                renewed[column.name] += done.renewed
                unreadable[column.name] = done.unreadable
                if not done.renewed:
                    break
        return Rotated(renewed, unreadable, await self.uses())

    async def _pass(self, column: SealedColumn, on_step: OnStep) -> "_Pass":
        done = _Pass()
        after = None
        while True:
            async with self._read() as tx:
                rows = await list_older(tx, column, self._secrets, after, STEP)
            if not rows:
                return done
            changes = [change for row in rows if (change := self._renewed(column, row))]
            done.unreadable += len(rows) - len(changes)
            done.renewed += await retry_on_deadlock(partial(self._write, column, changes))
            after = rows[-1]
            on_step(column, len(rows))

    def _renewed(self, column: SealedColumn, row: Row) -> Renewed | None:
        """The row's value under the current key; None if no key reads it."""
        sealed: str = row["sealed"]
        bound_to = column.row_of(row)
        try:
            # It is under the key already if only a column beside it does not say so.
            now = self._secrets.renewed(sealed, bound_to) or sealed
            if column.hash_column is None:
                return Renewed(row, now)
            value = self._secrets.decrypt(now, bound_to)
        except DecryptionError:
            return None
        return Renewed(row, now, column.hash_of(self._secrets, value))

    async def _write(self, column: SealedColumn, changes: Sequence[Renewed]) -> int:
        async with self._transaction() as tx:
            return await replace_values(tx, column, changes, self._secrets.key_ids[0])


@dataclass(slots=True)
class _Pass:
    renewed: int = 0
    unreadable: int = 0
