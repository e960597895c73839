"""The role table: who may open which pages of a project."""

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


#: `see`: customers, their conversations, and how the project does. `look`: everything else, without
#: changing it. `answer`: work with customers. `manage`: change the project. `own`: what it costs, and
#: whose it is. `operate`: the installation; no role gives it, only `Viewer.is_operator`. `self`: pages
#: of whoever is signed in, at no project.
Access = Literal["see", "look", "answer", "manage", "own", "operate", "self"]

#: Roles that may, for pages of a project.
ALLOWED: dict[Access, frozenset[Role]] = {
    "see": frozenset({"owner", "admin", "agent", "viewer"}),
    "look": frozenset({"owner", "admin", "viewer"}),
    "answer": frozenset({"owner", "admin", "agent"}),
    "manage": frozenset({"owner", "admin"}),
    "own": frozenset({"owner"}),
}


def may(role: Role | None, access: Access) -> bool:
    """Whether that role opens pages of that access; nobody's role opens the operator's."""
    return role is not None and role in ALLOWED.get(access, frozenset())
