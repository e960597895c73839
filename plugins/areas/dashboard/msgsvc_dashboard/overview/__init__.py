"""The overview of a project: problems, figures of now and of a period, charts, and the cards of areas."""

from msgsvc_dashboard.overview import page, problems
from msgsvc_dashboard.overview.area import pages
from msgsvc_dashboard.overview.counting import Counts
from msgsvc_dashboard.overview.jobs import FoldJob

__all__ = ["Counts", "FoldJob", "page", "pages", "problems"]
