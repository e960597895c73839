"""Protects owners from holders of an API key; implemented by the plugin that signs owners in."""

from typing import Protocol

from msgsvc_core.db import Tx
from msgsvc_core.members.models import Role


class OwnerProtection(Protocol):
    """Asked before an API key changes a member."""

    async def check_by_key(
        self, tx: Tx, project_id: str, member_id: str, role: Role | None = None
    ) -> None:
        """Raises `Conflict` where an API key may not give a member that role, or remove them (None)."""
        ...

    async def check_owner_by_key(self, tx: Tx, project_id: str, member_id: str) -> None:
        """Raises `Conflict` where an API key may not change a member's identity or messenger accounts."""
        ...
