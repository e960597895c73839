"""Dashboard pages of the helpdesk: inbox, tickets, settings, statistics."""

from msgsvc_helpdesk.dashboard import (
    bulk,
    canned,
    changes,
    desk,
    figures,
    hours,
    inbox,
    presence,
    searching,
    service_levels,
    stats,
    tickets,
)
from msgsvc_helpdesk.dashboard.area import pages

__all__ = [
    "bulk",
    "canned",
    "changes",
    "desk",
    "figures",
    "hours",
    "inbox",
    "pages",
    "presence",
    "searching",
    "service_levels",
    "stats",
    "tickets",
]
