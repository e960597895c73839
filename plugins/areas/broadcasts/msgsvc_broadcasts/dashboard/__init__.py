"""The pages of broadcasts in the dashboard."""

from msgsvc_broadcasts.dashboard.declared import pages

__all__ = ["pages"]
