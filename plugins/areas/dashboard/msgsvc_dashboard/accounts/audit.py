"""The audit log: who changed what in the dashboard, by the API or the command line; written in the
transaction of the change."""

from collections.abc import Mapping
from typing import Any

from msgsvc_core.db import Tx
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.plugins.audit import AuditRecord
from msgsvc_dashboard.accounts import audit_store as store
from msgsvc_dashboard.accounts.models import AuditEntry


class Audit:
    """Writes and reads the audit log."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock

    async def write(
        self,
        tx: Tx,
        action: str,
        *,
        project_id: str | None = None,
        account_id: str | None = None,
        target: str | None = None,
        detail: Mapping[str, Any] | None = None,
        ip: str = "",
    ) -> None:
        """Adds an entry. `detail` holds ids and names, never secrets or texts of people."""
        entry = AuditEntry(
            entry_id=new_id("aud"),
            project_id=project_id,
            account_id=account_id,
            account_name=None,
            at_ms=self._clock.now_ms(),
            action=action,
            target=target,
            detail=dict(detail or {}),
            ip=ip,
        )
        await store.insert(tx, entry)

    async def record(self, tx: Tx, record: AuditRecord) -> None:
        """Adds what the API or the command line changed."""
        await self.write(
            tx,
            record.action,
            project_id=record.project_id,
            account_id=record.account_id,
            target=record.target,
            detail=record.detail,
            ip=record.ip,
        )

    async def of_project(
        self, tx: Tx, project_id: str, *, account_id: str | None, after: str | None, most: int
    ) -> list[AuditEntry]:
        """The newest first; of one person alone, if they are named."""
        return await store.list_of_project(tx, project_id, account_id, after, most)

    async def of_account(
        self, tx: Tx, account_id: str, *, after: str | None, most: int
    ) -> list[AuditEntry]:
        """What somebody did everywhere, and who failed to sign in as them."""
        return await store.list_of_account(tx, account_id, after, most)
