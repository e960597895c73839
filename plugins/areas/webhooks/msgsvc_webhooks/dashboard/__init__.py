"""Pages of webhooks: where events go, and the journal of what became of each."""

from msgsvc_webhooks.dashboard.pages import pages

__all__ = ["pages"]
