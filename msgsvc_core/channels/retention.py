"""Retention of updates' ids and of bots' questions."""

from msgsvc_core.db.retention import RetentionRule
from msgsvc_core.kernel.clock import DAY_MS, HOUR_MS

#: Hours for which ids of updates are kept; Telegram stores unfetched updates for 24.
UPDATE_HOURS = 48


def retention_rules(
    *, answer_hours: int, button_page_days: int, shelf_days: int
) -> list[RetentionRule]:
    """The retention rules; a question in a chat stays open for `answer_hours`, the pages of buttons exist for
    `button_page_days`, items on shelves for `shelf_days`."""
    return [
        RetentionRule("core_updates", "received_at_ms", UPDATE_HOURS * HOUR_MS),
        RetentionRule("core_offers", "asked_at_ms", answer_hours * HOUR_MS),
        RetentionRule("core_button_pages", "shown_at_ms", button_page_days * DAY_MS),
        RetentionRule("core_shelf", "received_at_ms", shelf_days * DAY_MS),
        RetentionRule("core_start_codes", "expires_at_ms"),
        RetentionRule("core_channel_requests", "expires_at_ms", DAY_MS),
    ]
