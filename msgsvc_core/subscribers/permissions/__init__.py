"""Permissions: defined by a project, granted by subscribers."""

from msgsvc_core.subscribers.permissions.models import Permission
from msgsvc_core.subscribers.permissions.service import Permissions

__all__ = ["Permission", "Permissions"]
