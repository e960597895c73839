"""The pages of scheduled and recurring messages in the dashboard."""

from msgsvc_scheduling.dashboard.declared import pages

__all__ = ["pages"]
