"""Pages of webhooks, and their delivery log."""

from msgsvc_webhooks.dashboard import figures, searching
from msgsvc_webhooks.dashboard.pages import pages

__all__ = ["figures", "pages", "searching"]
