"""The request handling shared by all pages of the dashboard."""

from msgsvc_dashboard.frame.site import Site

__all__ = ["Site"]
