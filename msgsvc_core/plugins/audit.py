"""The audit log: the core reports changes; the plugin that keeps the log records them (hook `on_audited`).

Without such a plugin nothing is kept.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from msgsvc_core.api.context import CallerKey
from msgsvc_core.db import Tx


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRecord:
    """A change that belongs in the audit log. `detail` holds ids and names, never secrets or texts of people.

    `project_id` is None for what concerns an account or the installation, `account_id` where nobody was
    signed in: an API key and the command line need no account.
    """

    action: str
    project_id: str | None = None
    account_id: str | None = None
    target: str | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)
    ip: str = ""


class AuditLog:
    """`service.audit`: hands records to the plugin that keeps the log, in the transaction of the change."""

    def __init__(self, *, record: Callable[[Tx, AuditRecord], Awaitable[None]]) -> None:
        self._record = record

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
        """Records a change."""
        record = AuditRecord(
            action=action,
            project_id=project_id,
            account_id=account_id,
            target=target,
            detail=dict(detail or {}),
            ip=ip,
        )
        await self._record(tx, record)

    async def write_call(
        self, tx: Tx, action: str, key: CallerKey, *, target: str | None, ip: str
    ) -> None:
        """Records what a request to the API changed, in the name of its key."""
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
        """Records what the command line changed in a project."""
        await self.write(
            tx, action, project_id=project_id, target=target, detail={"by": "cli", **detail}
        )
