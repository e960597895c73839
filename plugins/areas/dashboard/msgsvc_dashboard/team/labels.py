"""Labels of pages about accounts and members."""

from msgsvc_core.dashboard import PageContext
from msgsvc_core.members.models import Role


def roles(page: PageContext) -> dict[Role, str]:
    """The roles, the one with the most permissions first."""
    _ = page._
    return {
        "owner": _("owner"),
        "admin": _("admin"),
        "agent": _("agent"),
        "viewer": _("viewer"),
    }
