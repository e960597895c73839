"""Pages of subscribers, messages, templates, tags and permissions."""

from msgsvc_dashboard.people.areas import areas

__all__ = ["areas"]
