"""The pages of forms: the list, the builder, where a form is found, and what was sent in."""

from msgsvc_forms.dashboard import builder, forms, submissions
from msgsvc_forms.dashboard.area import pages

__all__ = ["builder", "forms", "pages", "submissions"]
