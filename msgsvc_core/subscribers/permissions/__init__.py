"""Permissions: what a project asks people for, and who granted it."""

from msgsvc_core.subscribers.permissions.models import Permission
from msgsvc_core.subscribers.permissions.service import Permissions

__all__ = ["Permission", "Permissions"]
