"""The pages of chains in the dashboard."""

from msgsvc_drip.dashboard.declared import pages

__all__ = ["pages"]
