"""Why a delivery is where it is, and which webhooks were told of an event: for `msgsvc explain`."""

from collections.abc import Sequence

from msgsvc_core.db import Tx
from msgsvc_core.kernel.clock import Clock, optional_rfc3339
from msgsvc_core.projects.service import Projects
from msgsvc_core.telemetry.explanations import (
    Explanation,
    Fact,
    TimelineEntry,
    moment,
    moment_from,
)
from msgsvc_webhooks import journal, store
from msgsvc_webhooks.models import Attempt, Delivery, Webhook


class DeliveryExplainer:
    """Explains deliveries to webhooks of any project."""

    def __init__(self, *, clock: Clock, projects: Projects) -> None:
        self._clock = clock
        self._projects = projects

    async def explain(self, tx: Tx, delivery_id: str) -> Explanation | None:
        projects = [each.project_id for each in await self._projects.list_all(tx)]
        delivery = await journal.find_in(tx, projects, delivery_id)
        if delivery is None:
            return None
        webhook = await store.find(tx, delivery.project_id, delivery.webhook_id)
        logged = await journal.attempts_of(tx, delivery.project_id, [delivery_id])
        attempts = logged.get(delivery_id, [])
        facts: dict[str, Fact] = {
            "delivery_id": delivery_id,
            "project_id": delivery.project_id,
            "event": delivery.event,
            "event_id": delivery.event_id,
            "status": delivery.shown_status,
            "attempts": delivery.attempts,
            "next_attempt_at": optional_rfc3339(delivery.next_attempt_at_ms),
            "webhook_id": delivery.webhook_id,
            "url": None if webhook is None else webhook.url,
            "webhook_status": "deleted" if webhook is None else webhook.status,
        }
        timeline = [TimelineEntry(delivery.created_at_ms, f"queued for event {delivery.event}")]
        timeline += [
            TimelineEntry(attempt.started_at_ms, f"attempt {number}: {_result(attempt)}")
            for number, attempt in enumerate(attempts, 1)
        ]
        for at_ms, text in (
            (delivery.next_attempt_at_ms, "next attempt"),
            (delivery.finished_at_ms, delivery.shown_status),
        ):
            if at_ms is not None:
                timeline.append(TimelineEntry(at_ms, text))
        return Explanation(self._summary(delivery, attempts, webhook), facts, timeline)

    async def follow_events(
        self, tx: Tx, project_id: str, event_ids: Sequence[str]
    ) -> list[TimelineEntry]:
        """The deliveries of events to the webhooks that the project has now."""
        found = []
        for webhook in await store.list_all(tx, project_id):
            by_event = await journal.of_events(tx, webhook, event_ids)
            ids = [delivery_id for told in by_event.values() for delivery_id, _ in told]
            deliveries = await journal.get_many(tx, project_id, ids) if ids else {}
            for delivery in deliveries.values():
                at_ms = delivery.finished_at_ms or delivery.created_at_ms
                text = (
                    f"webhook {webhook.webhook_id}: {delivery.shown_status}, {delivery.delivery_id}"
                )
                found.append(TimelineEntry(at_ms, text))
        return found

    def _summary(
        self, delivery: Delivery, attempts: Sequence[Attempt], webhook: Webhook | None
    ) -> str:
        last = f": {_result(attempts[-1])}" if attempts else ""
        calls = "one attempt" if delivery.attempts == 1 else f"{delivery.attempts} attempts"
        ended = moment(delivery.finished_at_ms or delivery.created_at_ms)
        match delivery.status:
            case "pending":
                return self._pending(delivery, f"{calls} failed{last}" if attempts else None)
            case "delivered":
                return f"Delivered at {ended}, after {calls}{last}."
            case "failed":
                return f"Failed at {ended}, after {calls}{last}."
        why = "deleted" if webhook is None else "disabled"
        return f"Cancelled at {ended}: its webhook was {why}."

    def _pending(self, delivery: Delivery, failed: str | None) -> str:
        now_ms, next_ms = self._clock.now_ms(), delivery.next_attempt_at_ms
        if next_ms is None or next_ms <= now_ms:
            first = "its next attempt" if failed else "its first attempt"
            reason = f"{first} is due, and made when a process that runs jobs takes it"
        else:
            reason = f"its next attempt is at {moment_from(next_ms, now_ms)}"
        return f"Waiting: {reason}{f'; {failed}' if failed else ''}."


def _result(attempt: Attempt) -> str:
    answer = "no response" if attempt.status_code is None else f"HTTP {attempt.status_code}"
    return answer if attempt.error is None else f"{answer}, {attempt.error}"
