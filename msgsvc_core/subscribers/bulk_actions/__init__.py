"""One change of many subscribers, in the background."""

from msgsvc_core.subscribers.bulk_actions.service import BulkActions

__all__ = ["BulkActions"]
