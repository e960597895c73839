"""The role table: which role may open which pages of a project."""

from typing import Literal

from msgsvc_core.kernel.values import value_object
from msgsvc_core.members.models import Role


@value_object
class Viewer:
    """Who has a page open. An operator runs the installation."""

    account_id: str
    email: str
    name: str
    is_operator: bool


#: What a page needs. `customers`: customers, their conversations, and how the project does; `project`:
#: everything else of it. `project:own`: what it costs, and who owns it.
#: `installation:operate`: no role grants it, only `Viewer.is_operator`.
#: `account:self`: pages outside projects, open to every account.
Access = Literal[
    "customers:read",
    "project:read",
    "customers:write",
    "project:write",
    "project:own",
    "installation:operate",
    "account:self",
]

#: Roles that may, for pages of a project.
ALLOWED: dict[Access, frozenset[Role]] = {
    "customers:read": frozenset({"owner", "admin", "agent", "viewer"}),
    "project:read": frozenset({"owner", "admin", "viewer"}),
    "customers:write": frozenset({"owner", "admin", "agent"}),
    "project:write": frozenset({"owner", "admin"}),
    "project:own": frozenset({"owner"}),
}


def may(role: Role | None, access: Access) -> bool:
    """Whether the role has the permission; no role has the operator's."""
    return role is not None and role in ALLOWED.get(access, frozenset())
