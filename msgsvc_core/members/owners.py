"""Protects owners from holders of an API key; implemented by the plugin that provides sign-in of owners."""

from collections.abc import Awaitable, Callable

from msgsvc_core.db import Tx
from msgsvc_core.members.models import Role


class OwnerProtection:
    """Checks changes of members by API keys: admins create keys, and could use one to make themselves owners.

    `check_role` and `check_identity` call the hooks `check_role_change` and `check_identity_change` of the
    plugins that know how owners sign in.
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
        """Raises `Conflict` if an API key may not give a member that role, or remove them (None)."""
        await self._check_role(tx, project_id, member_id, role)

    async def check_owner_by_key(self, tx: Tx, project_id: str, member_id: str) -> None:
        """Raises `Conflict` if an API key may not change a member's identity or messenger accounts."""
        await self._check_identity(tx, project_id, member_id)
