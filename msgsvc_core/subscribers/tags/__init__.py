"""Tags: labels by which a project groups its subscribers."""

from msgsvc_core.subscribers.tags.models import Tag
from msgsvc_core.subscribers.tags.service import Tags

__all__ = ["Tag", "Tags"]
