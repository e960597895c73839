"""Protects owners from holders of an API key; implemented by the plugin that signs owners in."""

from collections.abc import Awaitable, Callable

from msgsvc_core.db import Tx
from msgsvc_core.members.models import Role


class OwnerProtection:
    """Asked before an API key changes a member: admins make keys, and could make themselves owners by one.

    `check_role` and `check_identity` ask the plugins (hooks `check_role_change` and
    `check_identity_change`): whoever knows how owners sign in knows whom to protect.
    """

    def __init__(
        self,
        *,
        check_role: Callable[[Tx, str, str, Role | None], Awaitable[None]],
        check_identity: Callable[[Tx, str, str], Awaitable[None]],
    ) -> None:
        self._check_role = check_role
        self._check_identity = check_identity

    async def check_by_key(
        self, tx: Tx, project_id: str, member_id: str, role: Role | None = None
    ) -> None:
        """Raises `Conflict` where an API key may not give a member that role, or remove them (None)."""
        await self._check_role(tx, project_id, member_id, role)

    async def check_owner_by_key(self, tx: Tx, project_id: str, member_id: str) -> None:
        """Raises `Conflict` where an API key may not change a member's identity or messenger accounts."""
        await self._check_identity(tx, project_id, member_id)
