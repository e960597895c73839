"""Pages of one-time codes."""

from msgsvc_otp.dashboard.pages import pages

__all__ = ["pages"]
