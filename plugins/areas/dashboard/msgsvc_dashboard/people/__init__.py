"""Pages for subscribers, what is sent to them, and how a project sorts them."""

from msgsvc_dashboard.people.areas import areas

__all__ = ["areas"]
