"""The first page of a project: how it does, in figures by day and in the parts of each area."""

from msgsvc_dashboard.overview.counting import COUNTED, Counts
from msgsvc_dashboard.overview.jobs import FoldJob
from msgsvc_dashboard.overview.pages import pages

__all__ = ["COUNTED", "Counts", "FoldJob", "pages"]
