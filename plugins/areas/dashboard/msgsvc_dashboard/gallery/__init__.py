"""Every component of the pages in each of its states, for those who develop them: `[dashboard] gallery`."""

from msgsvc_dashboard.gallery.pages import pages

__all__ = ["pages"]
