"""Retention of the event feed."""

from msgsvc_core.db.retention import PartitionRule, RetentionRule
from msgsvc_core.kernel.clock import DAY_MS


def retention_rule(*, event_days: int) -> RetentionRule:
    return RetentionRule(
        "core_events",
        "occurred_at_ms",
        event_days * DAY_MS,
        PartitionRule("core_events", "event_id", "evt", event_days),
    )
