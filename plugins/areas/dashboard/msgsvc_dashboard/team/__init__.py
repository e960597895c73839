"""Pages about people: a project's team and its audit log, somebody's own account, all accounts."""

from msgsvc_dashboard.team.areas import areas

__all__ = ["areas"]
