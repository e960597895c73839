"""Receiving webhooks: the list of what came in."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from msgsvc_client import InvalidWebhook, open_webhook

#: How many verified deliveries are kept, and how many refused ones beside them. Apart, so that
#: a stranger who posts rubbish cannot push real events out of the list. A site that acts on events
#: keeps the delivery ids in its database for two days, written together with what the event caused.
KEPT = 100
KEPT_REFUSED = 10


@dataclass
class Received:
    """One delivery as the list shows it; `tries` counts how often it arrived."""

    delivery_id: str
    event: str | None
    data: Mapping[str, Any] | None
    signature_valid: bool
    received_at: str
    tries: int = 1


class Inbox:
    """Deliveries of one endpoint, in memory."""

    def __init__(self, secret: str) -> None:
        self._secret = secret
        self._verified: OrderedDict[str, Received] = OrderedDict()
        self._refused: deque[Received] = deque(maxlen=KEPT_REFUSED)

    def receive(self, headers: Mapping[str, str], body: bytes) -> None:
        """Take one request in. Raises InvalidWebhook if the service did not sign it."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        try:
            delivery = open_webhook(headers, body, self._secret)
        except InvalidWebhook:
            # Nothing of a forged body is kept, and it must not occupy the id of a real delivery.
            claimed = headers.get("x-service-delivery-id", "")[:80]
            self._refused.append(Received(claimed, None, None, False, now))
            raise
        if known := self._verified.get(delivery.delivery_id):
            known.tries += 1
            return
        event = delivery.event
        received = Received(delivery.delivery_id, event.name, event.raw["data"], True, now)
        self._verified[delivery.delivery_id] = received
        if len(self._verified) > KEPT:
            self._verified.popitem(last=False)

    def newest_first(self) -> list[Received]:
        """Verified and refused deliveries together."""
        both = [*self._verified.values(), *self._refused]
        return sorted(both, key=lambda received: received.received_at, reverse=True)
