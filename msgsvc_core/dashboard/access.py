"""The role table: which role may open which pages of a project."""

from typing import Literal

from msgsvc_core.kernel.values import value_object
from msgsvc_core.members.models import Role


@value_object
class Viewer:
    """The user of a page. An operator manages the installation."""

    account_id: str
    email: str
    name: str
    is_operator: bool


#: The permission that a page requires. `customers`: customers, their conversations, and statistics;
#: `project`: everything else of the project. `project:own`: billing and ownership. `installation:operate`:
#: granted by no role, only by `Viewer.is_operator`. `account:self`: pages outside projects, for every
#: account.
Access = Literal[
    "customers:read",
    "project:read",
    "customers:write",
    "project:write",
    "project:own",
    "installation:operate",
    "account:self",
]

#: The roles with each permission, for pages of a project.
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
