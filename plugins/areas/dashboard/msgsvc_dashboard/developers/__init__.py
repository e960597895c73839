"""Pages for developers, who connect a project to its site and bots, and for operators."""

from msgsvc_dashboard.developers import (
    branding,
    channel_requests,
    channels,
    jobs,
    keys,
    project,
    searching,
    shelf,
)
from msgsvc_dashboard.developers.area import pages

__all__ = [
    "branding",
    "channel_requests",
    "channels",
    "jobs",
    "keys",
    "pages",
    "project",
    "searching",
    "shelf",
]
