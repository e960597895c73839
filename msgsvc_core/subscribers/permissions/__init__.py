"""Permissions that a project defines and subscribers grant."""

from msgsvc_core.subscribers.permissions.models import Permission
from msgsvc_core.subscribers.permissions.service import Permissions

__all__ = ["Permission", "Permissions"]
