"""Members: the people who work in a project, and their messenger accounts."""

from msgsvc_core.members.models import Member, Role
from msgsvc_core.members.service import Members

__all__ = ["Member", "Members", "Role"]
