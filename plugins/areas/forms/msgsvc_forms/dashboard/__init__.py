"""Dashboard pages of forms: list, builder, sharing and submissions."""

from msgsvc_forms.dashboard import builder, forms, submissions
from msgsvc_forms.dashboard.area import pages

__all__ = ["builder", "forms", "pages", "submissions"]
