"""The audit log: the core reports changes, and a plugin stores them (hook `on_audited`).

Without such a plugin nothing is stored.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from msgsvc_core.api.context import CallerKey
from msgsvc_core.db import Tx
from msgsvc_core.kernel.i18n import Title


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRecord:
    """A change that belongs in the audit log. `detail` has ids and names, never secrets or texts of users.

    `project_id` is None for changes of an account or the installation. `account_id` is None if nobody was
    signed in: API keys and the command line have no account.
    """

    action: str
    project_id: str | None = None
    account_id: str | None = None
    target: str | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)
    ip: str = ""


#: What the core's commands record.
COMMANDS: Mapping[str, Title] = {
    "broadcast.cancel": lambda _: _("Broadcast cancelled"),
    "broadcast.pause": lambda _: _("Broadcast paused"),
    "broadcast.resume": lambda _: _("Broadcast resumed"),
    "key.create": lambda _: _("API key created"),
    "key.revoke": lambda _: _("API key revoked"),
    "member.add": lambda _: _("Member added"),
    "project.create": lambda _: _("Project created"),
    "project.give": lambda _: _("Project transferred"),
}


class AuditLog:
    """`service.audit`: passes records to the plugin that stores the log, in the transaction of the change."""

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
        """Records a change by an API request, with its key as the author."""
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
        """Records a change of a project by the command line."""
        await self.write(
            tx, action, project_id=project_id, target=target, detail={"by": "cli", **detail}
        )
