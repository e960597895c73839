"""Receives webhooks: tells the service's requests from anybody else's, and reads them as events.

delivery = open_webhook(request.headers, body, [secret])
match delivery.event:
    case AuthCompleted(data=data): ...
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from msgsvc_client._failures import MsgsvcError
from msgsvc_client._wire import json_object
from msgsvc_client.events import AnyEvent, event_from_data

#: Bytes of a secret at least: one that was cut off could be guessed.
_SHORTEST_KEY = 24

_SECRET_PREFIX = "whsec_"  # noqa: S105 # how a secret begins, not one


class InvalidWebhook(MsgsvcError, ValueError):
    """A request that the service did not sign, or that is malformed: answer it with 400."""


@dataclass(frozen=True)
class Delivery:
    """A verified request. `delivery_id` is the same in each attempt: store it to drop repeats."""

    delivery_id: str
    event: AnyEvent


def open_webhook(
    headers: Mapping[str, str],
    body: bytes,
    secrets: str | Iterable[str],
    *,
    prefix: str = "X-Service",
) -> Delivery:
    """The delivery in a request, by its headers and its raw body, as it came.

    One secret, or several while it is rotated. Both signatures of the service are known: its own header
    (`X-Service-Signature`; `prefix` if the operator has changed it), and those of Standard Webhooks, which
    are preferred, as they cover the delivery's id too. Raises `InvalidWebhook`; a secret that is empty or
    malformed is a ValueError.
    """
    found = _headers(headers)
    if "webhook-signature" in found:
        verify_standard(headers, body, secrets)
        delivery_id = found["webhook-id"]
    else:
        verify(headers, body, secrets, header=f"{prefix}-Signature")
        delivery_id = found.get(f"{prefix}-Delivery-Id".lower(), "")
    data = json_object(body)
    if data is None or "event" not in data or not isinstance(data.get("data"), dict):
        raise InvalidWebhook("the body is no event")
    event_id = found.get(f"{prefix}-Event-Id".lower()) or data["data"].get("event_id", "")
    return Delivery(delivery_id, event_from_data({"event_id": event_id, **data}))


def verify(
    headers: Mapping[str, str],
    body: bytes,
    secrets: str | Iterable[str],
    *,
    header: str = "X-Service-Signature",
) -> None:
    """Raises `InvalidWebhook` unless `header` (`t=...,v1=...`) signs the raw body with one of the secrets.

    Old timestamps are fine: a retry may come a day late.
    """
    keys = [_key(secret) and secret.encode() for secret in _all(secrets)]
    parts = [part.strip(" \t").partition("=") for part in _header(headers, header).split(",")]
    times = [value for name, _, value in parts if name == "t"]
    given = [value for name, _, value in parts if name == "v1"]
    if len(times) != 1 or not _is_number(times[0]):
        raise InvalidWebhook(f"{header} is malformed")
    signed = times[0].encode() + b"." + body
    _match(given, [hmac.new(key, signed, hashlib.sha256).hexdigest() for key in keys])


def verify_standard(headers: Mapping[str, str], body: bytes, secrets: str | Iterable[str]) -> None:
    """The same by the headers of Standard Webhooks: `webhook-id`, `-timestamp`, `-signature`."""
    keys = [_key(secret) for secret in _all(secrets)]
    delivery_id, time = _header(headers, "webhook-id"), _header(headers, "webhook-timestamp")
    if not _is_number(time):
        raise InvalidWebhook("webhook-timestamp is malformed")
    parts = [part.partition(",") for part in _header(headers, "webhook-signature").split(" ")]
    given = [value for name, _, value in parts if name == "v1"]
    signed = f"{delivery_id}.{time}.".encode() + body
    digests = [hmac.new(key, signed, hashlib.sha256).digest() for key in keys]
    _match(given, [base64.b64encode(digest).decode() for digest in digests])


def _headers(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _header(headers: Mapping[str, str], name: str) -> str:
    value = _headers(headers).get(name.lower())
    if not value:
        raise InvalidWebhook(f"the header {name} is missing")
    return value


def _all(secrets: str | Iterable[str]) -> list[str]:
    found = [secrets] if isinstance(secrets, str) else list(secrets)
    if not found or not all(found):
        raise ValueError("a secret is missing: is the variable that holds it set?")
    return found


def _key(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix(_SECRET_PREFIX), validate=True)
    except binascii.Error:
        key = b""
    if not secret.startswith(_SECRET_PREFIX) or len(key) < _SHORTEST_KEY:
        raise ValueError("a secret is malformed: it is whsec_ and the base64 of 24 bytes or more")
    return key


def _match(given: list[str], expected: list[str]) -> None:
    # Every pair is compared, in constant time: how long it takes tells nothing.
    matches = [
        hmac.compare_digest(one.encode("utf-8", "replace"), other.encode())
        for one in given
        for other in expected
    ]
    if not any(matches):
        raise InvalidWebhook("the signature does not match")


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()
