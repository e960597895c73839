"""The search of a project: pages, and what each area finds."""

from msgsvc_dashboard.searching.page import pages

__all__ = ["pages"]
