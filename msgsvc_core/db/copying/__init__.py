"""Copies of a whole database: to another database, into a backup, and out of one."""

from msgsvc_core.db.copying.backup import FORMAT, backup, restore
from msgsvc_core.db.copying.contract import Copied, OnProgress, Scope
from msgsvc_core.db.copying.copier import copy

__all__ = [
    "FORMAT",
    "Copied",
    "OnProgress",
    "Scope",
    "backup",
    "copy",
    "restore",
]
