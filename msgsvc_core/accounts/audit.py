"""The audit log: who changed what, in the dashboard, by the API or the command line, in the transaction of
the change."""

from collections.abc import Mapping
from typing import Any

from msgsvc_core.accounts import audit_store as store
from msgsvc_core.accounts.models import AuditEntry
from msgsvc_core.api.context import CallerKey
from msgsvc_core.db import Tx
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.ids import new_id

DAY_MS = 24 * 3600 * 1000


class Audit:
    """`service.audit`."""

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

    async def write_call(
        self, tx: Tx, action: str, key: CallerKey, *, target: str | None, ip: str
    ) -> None:
        """Adds what a call of the API changed, in the name of its key."""
        await self.write(
            tx,
            action,
            project_id=key.project_id,
            target=target,
            detail={"by": "api", "key": key.name, "key_id": key.key_id},
            ip=ip,
        )

    async def write_command(
        self, tx: Tx, action: str, project_id: str, target: str | None = None, **detail: object
    ) -> None:
        """Adds what the command line changed in a project: whoever has it needs no account."""
        await self.write(
            tx, action, project_id=project_id, target=target, detail={"by": "cli", **detail}
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
