"""One change of many things in the background, in steps: who it is about, how far it is, its end."""

from msgsvc_core.bulk_actions.engine import BulkActionEngine, BulkActionFailed, BulkWork
from msgsvc_core.bulk_actions.models import BulkAction

__all__ = ["BulkAction", "BulkActionEngine", "BulkActionFailed", "BulkWork"]
