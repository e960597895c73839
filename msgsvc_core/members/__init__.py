"""Members: the people of a project who work with it, and who they are in messengers."""

from msgsvc_core.members.models import Member, Role
from msgsvc_core.members.service import Members

__all__ = ["Member", "Members", "Role"]
