"""What every page of the dashboard is answered through."""

from msgsvc_dashboard.frame.site import Site

__all__ = ["Site"]
