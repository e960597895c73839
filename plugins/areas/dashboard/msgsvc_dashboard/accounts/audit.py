"""The audit log: changes in the dashboard, by the API or the command line, with their author; written in
the transaction of the change."""

from msgsvc_core.db import Tx
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.plugins.audit import AuditLog, AuditRecord
from msgsvc_dashboard.accounts import audit_store as store
from msgsvc_dashboard.accounts.models import AuditEntry, AuditFilters


class Audit(AuditLog):
    """The audit log of this plugin; `write` is that of the core."""

    def __init__(self, *, clock: Clock) -> None:
        super().__init__(record=self.record)
        self._clock = clock

    async def record(self, tx: Tx, record: AuditRecord) -> None:
        """Adds an entry. `detail` holds ids and names, never secrets or texts of people."""
        entry = AuditEntry(
            entry_id=new_id("aud"),
            project_id=record.project_id,
            account_id=record.account_id,
            account_name=None,
            at_ms=self._clock.now_ms(),
            action=record.action,
            target=record.target,
            detail=dict(record.detail),
            ip=record.ip,
        )
        await store.insert(tx, entry)

    async def of_project(
        self,
        tx: Tx,
        project_id: str,
        filters: AuditFilters,
        *,
        after: str | None,
        most: int,
        ascending: bool = False,
    ) -> list[AuditEntry]:
        """Up to `most` entries, newest or oldest first."""
        return await store.list_of_project(
            tx, project_id, filters, after, most, ascending=ascending
        )

    async def of_account(
        self, tx: Tx, account_id: str, *, after: str | None, most: int
    ) -> list[AuditEntry]:
        """What somebody did everywhere, and who failed to sign in as them."""
        return await store.list_of_account(tx, account_id, after, most)
