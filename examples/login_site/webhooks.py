"""Receiving webhooks: the signature check, and the list of what came in."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections import OrderedDict, deque
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

#: How many verified deliveries are kept, and how many refused ones beside them. Apart, so that
#: a stranger who posts rubbish cannot push real events out of the list. A site that acts on events
#: keeps the delivery ids in its database for two days, written together with what the event caused.
KEPT = 100
KEPT_REFUSED = 10


def signature_is_valid(secret: str, header: str, body: bytes) -> bool:
    """Whether `X-Service-Signature` (`t=<unix seconds>,v1=<hex>[,v1=<hex>]`) signs these bytes.

    `body` must be the bytes as they arrived: JSON parsed and written again may differ. While a
    secret is being rotated there are two `v1`, and one match is enough. An old `t` is no reason
    to refuse, as a retry may come a day later; the delivery id tells repeated ones.
    """
    parts = [part.strip().partition("=") for part in header.split(",")]
    timestamp = next((value for name, _, value in parts if name == "t"), "")
    signed = timestamp.encode() + b"." + body
    expected = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest().encode()
    given = [value.encode() for name, _, value in parts if name == "v1"]
    return any(hmac.compare_digest(expected, value) for value in given)


class BadDeliveryError(Exception):
    """The request is no delivery of the service; its text says why."""


@dataclass
class Delivery:
    """One delivery as the list shows it; `tries` counts how often it arrived."""

    delivery_id: str
    event: str | None
    data: dict[str, Any] | None
    signature_valid: bool
    received_at: str
    tries: int = 1


class Inbox:
    """Deliveries of one endpoint, newest first, in memory."""

    def __init__(self, secret: str) -> None:
        self._secret = secret
        self._verified: OrderedDict[str, Delivery] = OrderedDict()
        self._refused: deque[Delivery] = deque(maxlen=KEPT_REFUSED)

    def receive(self, body: bytes, *, signature: str, delivery_id: str) -> tuple[Delivery, bool]:
        """Take one request in; returns the delivery and whether it is new.

        Raises BadDeliveryError when the signature is wrong or the body is not `{event, data}`.
        """
        if not signature_is_valid(self._secret, signature, body):
            # Nothing of a forged body is kept, and it must not occupy the id of a real delivery.
            self._refused.append(Delivery(delivery_id[:80], None, None, False, _now()))
            raise BadDeliveryError("the signature does not match")
        known = self._verified.get(delivery_id)
        if known is not None:
            known.tries += 1
            return known, False
        if not delivery_id:
            raise BadDeliveryError("X-Service-Delivery-Id is missing")
        event, data = _parsed(body)
        delivery = Delivery(delivery_id, event, data, True, _now())
        self._verified[delivery_id] = delivery
        if len(self._verified) > KEPT:
            self._verified.popitem(last=False)
        return delivery, True

    def newest_first(self) -> list[Delivery]:
        """Verified and refused deliveries together."""
        both = [*self._verified.values(), *self._refused]
        return sorted(both, key=lambda delivery: delivery.received_at, reverse=True)


def _parsed(body: bytes) -> tuple[str, dict[str, Any]]:
    try:
        message = json.loads(body)
    except ValueError as error:
        raise BadDeliveryError("the body is not JSON") from error
    match message:
        case {"event": str(event), "data": dict(data)}:
            return event, data
    raise BadDeliveryError("the body is not of the form {event, data}")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
