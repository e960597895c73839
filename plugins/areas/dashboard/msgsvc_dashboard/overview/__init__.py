"""The overview of a project: daily figures, and the cards of each area."""

from msgsvc_dashboard.overview.counting import COUNTED, Counts
from msgsvc_dashboard.overview.jobs import FoldJob
from msgsvc_dashboard.overview.pages import pages

__all__ = ["COUNTED", "Counts", "FoldJob", "pages"]
