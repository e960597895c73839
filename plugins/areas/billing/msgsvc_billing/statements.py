"""Statements of an account: its ledger and its usage."""

from collections.abc import AsyncIterator
from dataclasses import replace

from msgsvc_billing import ledger
from msgsvc_billing.models import Entry, LedgerFilter, State, Usage
from msgsvc_billing.payers import Payers
from msgsvc_core.db import Database, Tx
from msgsvc_core.kernel.clock import DAY_MS, Clock, to_rfc3339
from msgsvc_core.kernel.csv import BOM, escape_formula, lines

#: Lines that are read, and sent, at a time.
CHUNK = 200

COLUMNS = (
    "entry_id",
    "created_at",
    "project_id",
    "operation",
    "resource_id",
    "quantity",
    "amount",
    "allowance",
    "packs",
    "unpaid",
    "note",
)


#: Days of usage that are shown by default, and at most.
USAGE_DAYS, MOST_DAYS = 30, 366


class Statements:
    """`service.get(Statements)`. With `project_id`, only that project's."""

    def __init__(self, *, clock: Clock, db: Database, payers: Payers) -> None:
        self._clock = clock
        self._db = db
        self._payers = payers

    async def payer_of(self, tx: Tx, project_id: str) -> str | None:
        """The account that pays for a project; None where none does."""
        payer = await self._payers.find(tx, project_id)
        return None if payer is None else payer.account_id

    async def page(
        self, tx: Tx, wanted: LedgerFilter, after: str | None, limit: int
    ) -> list[Entry]:
        """Up to `limit` lines of a ledger, newest first, from `after` on."""
        return await ledger.list_page(tx, wanted, after, limit)

    async def used_of_days(
        self, tx: Tx, account_id: str, project_id: str | None, days: int
    ) -> list[Usage]:
        """By day and operation, the oldest day first; the last is today, in UTC."""
        return await ledger.usage_by_day(tx, account_id, project_id, self.today - days + 1)

    async def used_between(
        self,
        tx: Tx,
        account_id: str,
        project_id: str | None,
        after_ms: int | None,
        before_ms: int | None,
    ) -> list[Usage]:
        """By day and operation, the oldest day first: the days from that of one time on that begin before
        another. Without the first, `USAGE_DAYS`; never more than `MOST_DAYS`."""
        last = self.today if before_ms is None else min((before_ms - 1) // DAY_MS, self.today)
        first = last - USAGE_DAYS + 1 if after_ms is None else after_ms // DAY_MS
        first = max(first, last - MOST_DAYS + 1)
        return await ledger.usage_by_day(tx, account_id, project_id, first, last)

    async def used_this_month(self, tx: Tx, state: State, project_id: str | None) -> list[Usage]:
        """By operation, since the day on which the account's month began."""
        from_day = state.period_started_ms // DAY_MS
        sums: dict[str, Usage] = {}
        for one in await ledger.usage_by_day(tx, state.account_id, project_id, from_day):
            before = sums.get(one.operation, Usage(from_day, one.operation, 0, 0))
            sums[one.operation] = replace(
                before,
                quantity=before.quantity + one.quantity,
                credits=before.credits + one.credits,
            )
        return list(sums.values())

    @property
    def today(self) -> int:
        """The number of the day since 1970, in UTC."""
        return self._clock.now_ms() // DAY_MS

    async def csv(self, wanted: LedgerFilter) -> AsyncIterator[bytes]:
        """The lines of a ledger as a file for spreadsheets, newest first."""
        after: str | None = None
        text = BOM + lines([COLUMNS])
        while True:
            async with self._db.read() as tx:
                found = await ledger.list_page(tx, wanted, after, CHUNK)
            yield (text + lines([_cells(entry) for entry in found])).encode()
            if len(found) < CHUNK:
                return
            after, text = found[-1].entry_id, ""


def _cells(entry: Entry) -> tuple[str, ...]:
    numbers = (entry.quantity, entry.amount, entry.allowance, entry.packs, entry.unpaid)
    return (
        entry.entry_id,
        to_rfc3339(entry.at_ms),
        entry.project_id or "",
        entry.operation,
        escape_formula(entry.resource_id),
        *map(str, numbers),
        escape_formula(entry.note),
    )
