"""Partitions of the journal, which are dropped after `journal_days`."""

from msgsvc_core.db.retention import PartitionRule

#: Milliseconds by which the time of a delivery may be later than that in its id.
SKEW_MS = 60_000


def of_deliveries(days: int) -> PartitionRule:
    """One with a delivery that is yet to be made stays."""
    return PartitionRule(
        "webhooks_deliveries",
        "delivery_id",
        "whd",
        days,
        kept_by="SELECT FROM {partition} WHERE status = 'pending'",
    )


def of_attempts(days: int) -> PartitionRule:
    """By the deliveries' ids. One stays for as long as there are deliveries of its time."""
    return PartitionRule(
        "webhooks_attempts",
        "delivery_id",
        "whd",
        days,
        kept_by=f"SELECT FROM webhooks_deliveries WHERE created_at_ms < {{end_ms}} + {SKEW_MS}",
    )
