"""Cached check whether a project is blocked: it runs on every send, many thousand times a second."""

from msgsvc_billing.charges import Charges
from msgsvc_billing.models import Payer
from msgsvc_billing.payers import Payers
from msgsvc_billing.service import Billing
from msgsvc_core.db import Database, DataLoader, Tx
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import BillingBlocked, Finding

#: Milliseconds for which an answer is used again.
FRESH_MS = 1000

#: Maximum number of cached projects; beyond it the cache is cleared.
MOST_KNOWN = 10_000


class Admission:
    """`service.get(Admission)`."""

    def __init__(
        self, *, clock: Clock, db: Database, billing: Billing, charges: Charges, payers: Payers
    ) -> None:
        self._clock = clock
        self._billing = billing
        self._charges = charges
        self._payers: DataLoader[str, Payer] = DataLoader(db, payers.find_many)
        #: Until when it is known, and why the project is refused, if it is.
        self._known: dict[str, tuple[int, tuple[Finding, ...] | None]] = {}

    async def check(self, project_id: str, tx: Tx | None) -> None:
        """Raises `BillingBlocked`."""
        now_ms = self._clock.now_ms()
        known = self._known.get(project_id) if tx is None else None
        if known is None or known[0] <= now_ms:
            known = await self._load(project_id, tx, now_ms)
        if known[1] is not None:
            raise BillingBlocked.of(known[1])

    def clear(self) -> None:
        """What is known of projects may not be so any more."""
        self._known.clear()

    async def _load(
        self, project_id: str, tx: Tx | None, now_ms: int
    ) -> tuple[int, tuple[Finding, ...] | None]:
        payer = await self._payers.get(project_id, tx)
        why = None
        if payer is not None:
            try:
                self._charges.check(self._billing.state_now(payer))
            except BillingBlocked as error:
                why = error.findings
        known = (now_ms + FRESH_MS, why)
        if tx is None:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            self._known[project_id] = known
        return known
