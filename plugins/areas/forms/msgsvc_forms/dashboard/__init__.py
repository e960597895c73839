"""Dashboard pages of forms: list, builder, sharing and submissions."""

from msgsvc_forms.dashboard import builder, forms, searching, submissions
from msgsvc_forms.dashboard.area import pages

__all__ = ["builder", "forms", "pages", "searching", "submissions"]
