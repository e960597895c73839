"""Dashboard pages of drip campaigns."""

from msgsvc_drip.dashboard.declared import pages

__all__ = ["pages"]
