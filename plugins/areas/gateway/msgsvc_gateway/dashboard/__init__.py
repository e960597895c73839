"""Pages of gateways, and of what was sent through them."""

from msgsvc_gateway.dashboard.pages import pages

__all__ = ["pages"]
