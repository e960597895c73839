"""Pages for who connects the project to its site and its bots, and for who runs the installation."""

from msgsvc_dashboard.developers import channels, jobs, keys, project
from msgsvc_dashboard.developers.area import pages

__all__ = ["channels", "jobs", "keys", "pages", "project"]
