"""Pages of accounts and members: a project's team and audit log, the user's account, all accounts."""

from msgsvc_dashboard.team.areas import areas

__all__ = ["areas"]
