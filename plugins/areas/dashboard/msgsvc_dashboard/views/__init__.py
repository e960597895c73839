"""Saved views: the filters of a list under a name, for one person or for the project."""

from msgsvc_dashboard.views.models import SavedView
from msgsvc_dashboard.views.service import SavedViews

__all__ = ["SavedView", "SavedViews"]
