"""Pages of signing in: links, a trial, and who has signed in."""

from msgsvc_auth.dashboard.pages import pages

__all__ = ["pages"]
