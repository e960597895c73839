"""Sign-in pages of the dashboard: links, a test sign-in, and recent sign-ins."""

from msgsvc_auth.dashboard.pages import pages

__all__ = ["pages"]
