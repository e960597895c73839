"""The helpdesk's pages of the dashboard: the inbox, tickets, figures."""

from msgsvc_helpdesk.dashboard import canned, changes, inbox, stats, tickets
from msgsvc_helpdesk.dashboard.area import pages

__all__ = ["canned", "changes", "inbox", "pages", "stats", "tickets"]
