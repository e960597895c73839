"""What pages about people call things."""

from msgsvc_core.dashboard import PageContext
from msgsvc_core.members.models import Role


def roles(page: PageContext) -> dict[Role, str]:
    """The roles, from the one that may most."""
    _ = page._
    return {
        "owner": _("owner"),
        "admin": _("admin"),
        "agent": _("agent"),
        "viewer": _("viewer"),
    }
