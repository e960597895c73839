"""Projects, the tenants of a service, and their API keys."""

from msgsvc_core.projects.models import ApiKey, Project
from msgsvc_core.projects.service import Projects

__all__ = ["ApiKey", "Project", "Projects"]
