"""Pages of credits: those of a project's owner, and the operator's."""

from msgsvc_billing.dashboard import operator, owner
from msgsvc_billing.dashboard.area import pages

__all__ = ["operator", "owner", "pages"]
