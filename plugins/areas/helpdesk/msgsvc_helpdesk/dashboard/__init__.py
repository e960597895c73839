"""Dashboard pages of the helpdesk: inbox, tickets, statistics."""

from msgsvc_helpdesk.dashboard import canned, changes, inbox, stats, tickets
from msgsvc_helpdesk.dashboard.area import pages

__all__ = ["canned", "changes", "inbox", "pages", "stats", "tickets"]
