"""Pages for developers, who connect a project to its site and bots, and for operators."""

from msgsvc_dashboard.developers import channels, jobs, keys, project
from msgsvc_dashboard.developers.area import pages

__all__ = ["channels", "jobs", "keys", "pages", "project"]
