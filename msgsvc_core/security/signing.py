"""Webhook signatures: our own header, and the ones of Standard Webhooks beside it.

The service signs with `sign` and `standard_headers`. A receiver in Python calls `open_webhook`:

    delivery = open_webhook(request.headers, await request.body(), secret)
"""

import base64
import hashlib
import hmac
import json
import secrets as random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: Prefix of every signing secret, so that a leaked one is recognised (decision 0075).
PREFIX = "whsec_"

#: Random bytes in a signing secret: the output size of SHA-256 (decision 0075).
SECRET_BYTES = 32

#: Minimum bytes of a key (Standard Webhooks, "Signature scheme"): a truncated or empty one could be guessed.
LEAST_KEY_BYTES = 24

#: The only signature scheme so far; verifiers skip unknown ones.
SCHEME = "v1"


class InvalidWebhook(ValueError):
    """The request is not a valid delivery: respond with 400. The text says what is wrong."""


@dataclass(frozen=True, slots=True)
class WebhookDelivery:
    """A delivery with a valid signature. `delivery_id` is the same in every attempt: store it.

    `timestamp` is when this attempt was signed, in Unix seconds; `data` always has `occurred_at`.
    """

    delivery_id: str
    event: str
    data: dict[str, Any]
    timestamp: int


def open_webhook(
    headers: Mapping[str, str],
    body: bytes,
    secrets: str | Sequence[str],
    *,
    prefix: str = "X-Service",
) -> WebhookDelivery:
    """Verifies and parses a webhook request.

    `body` is the raw body; `secrets` is the endpoint's secret, or several while one is being rotated;
    `prefix` is the service's setting `header_prefix`. Raises `InvalidWebhook`.
    """
    given = {name.lower(): value for name, value in headers.items()}
    header = given.get(f"{prefix}-Signature".lower())
    if header is None:
        raise InvalidWebhook(f"the header {prefix}-Signature is missing")
    if not verify(body, header, secrets):
        raise InvalidWebhook(f"{prefix}-Signature does not sign this body with the secret")
    timestamp, _ = _parse(header)
    delivery_id = given.get(f"{prefix}-Delivery-Id".lower())
    if not delivery_id:
        raise InvalidWebhook(f"the header {prefix}-Delivery-Id is missing")
    try:
        content = json.loads(body)
        event, data = content["event"], content["data"]
    except (ValueError, TypeError, KeyError):
        raise InvalidWebhook("the body is not {event, data}") from None
    return WebhookDelivery(delivery_id, event, data, int(timestamp or 0))


def new_secret() -> str:
    """A new signing secret: `whsec_` and the base64 of 32 random bytes."""
    return PREFIX + base64.b64encode(random.token_bytes(SECRET_BYTES)).decode()


def is_standard_secret(secret: str) -> bool:
    """Whether it is one of Standard Webhooks: `whsec_` and the base64 of enough bytes."""
    try:
        _standard_key(secret)
    except ValueError:
        return False
    return True


def sign(body: bytes, secrets: Sequence[str], timestamp: int) -> str:
    """The value of `X-Service-Signature`, e.g. `t=1795167000,v1=5257a8…`.

    `body` is the raw request body, `timestamp` is in Unix seconds. While a secret is being rotated
    `secrets` holds the new and the old one, and the header one `v1=` for each (decision 0075).
    """
    _require_secrets(secrets)
    signatures = [f"{SCHEME}={_hex_signature(body, secret, str(timestamp))}" for secret in secrets]
    return ",".join([f"t={timestamp}", *signatures])


def verify(body: bytes, header: str, secrets: str | Sequence[str]) -> bool:
    """Whether any `v1=` of `header` signs `body` with any of `secrets`; False for a malformed header.

    An old timestamp is accepted: a retry may come a day after the event, and receivers find duplicates by the
    delivery id instead (decision 0075). ValueError for a secret that is empty, too short or not of
    `new_secret`'s form: anybody could sign with such a key.
    """
    keys = _as_secrets(secrets)
    timestamp, given = _parse(header)
    if timestamp is None:
        return False
    expected = [_hex_signature(body, secret, timestamp) for secret in keys]
    return _any_equal(expected, given)


def verify_standard(headers: Mapping[str, str], body: bytes, secrets: str | Sequence[str]) -> bool:
    """Whether the Standard Webhooks headers sign `body`; see `verify` for our own header.

    ValueError for a secret that is empty, too short or not of `new_secret`'s form.
    """
    keys = [_standard_key(secret) for secret in _as_secrets(secrets)]
    values = {name.lower(): value for name, value in headers.items()}
    delivery_id, timestamp, signatures = (
        values.get(f"webhook-{name}", "") for name in ("id", "timestamp", "signature")
    )
    if not delivery_id or not _is_number(timestamp):
        return False
    pairs = [item.partition(",") for item in signatures.split(" ")]
    given = [value for scheme, _, value in pairs if scheme == SCHEME]
    expected = [_standard_signature(key, delivery_id, timestamp, body) for key in keys]
    return _any_equal(expected, given)


def standard_headers(
    delivery_id: str, body: bytes, secrets: Sequence[str], timestamp: int
) -> dict[str, str]:
    """The three headers of Standard Webhooks, which let its libraries verify our deliveries.

    The signed string is `<id>.<timestamp>.<body>`; the key is the decoded part of the secret after
    `whsec_`, unlike in `sign`. ValueError for a secret that is not of `new_secret`'s form.
    """
    _require_secrets(secrets)
    signatures = [
        _standard_signature(_standard_key(secret), delivery_id, str(timestamp), body)
        for secret in secrets
    ]
    return {
        "webhook-id": delivery_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(f"{SCHEME},{signature}" for signature in signatures),
    }


def _require_secrets(secrets: Sequence[str]) -> None:
    # A header without a signature would look like a signed delivery, and verify nowhere.
    if not secrets:
        raise ValueError("a delivery is signed with at least one secret")


def _as_secrets(secrets: str | Sequence[str]) -> Sequence[str]:
    # A single string is a sequence too, of secrets of one character that anybody can guess.
    several = [secrets] if isinstance(secrets, str) else secrets
    if not all(several):
        raise ValueError("a signing secret is empty")
    for secret in several:
        _standard_key(secret)
    return several


def _hex_signature(body: bytes, secret: str, timestamp: str) -> str:
    signed = f"{timestamp}.".encode() + body
    return hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


def _standard_signature(key: bytes, delivery_id: str, timestamp: str, body: bytes) -> str:
    signed = f"{delivery_id}.{timestamp}.".encode() + body
    return base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()


def _any_equal(expected: Sequence[str], given: Sequence[str]) -> bool:
    # `replace` maps what no digest holds to `?`; compare_digest takes ASCII text or bytes only.
    pairs = [
        (one.encode(), other.encode("ascii", "replace")) for one in expected for other in given
    ]
    # No early exit: the duration must not reveal which secret or digest matched.
    matches = [hmac.compare_digest(one, other) for one, other in pairs]
    return any(matches)


def _parse(header: str) -> tuple[str | None, list[str]]:
    """The text after `t=`, or None if it is missing, repeated or not a number; and every `v1`."""
    pairs = [item.strip(" \t").partition("=") for item in header.split(",")]
    times = [value for name, _, value in pairs if name == "t"]
    given = [value for name, _, value in pairs if name == SCHEME]
    if len(times) != 1 or not _is_number(times[0]):
        return None, given
    return times[0], given


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _standard_key(secret: str) -> bytes:
    if not secret.startswith(PREFIX):
        raise ValueError(f"a signing secret begins with {PREFIX}")
    key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    if len(key) < LEAST_KEY_BYTES:
        raise ValueError(f"a signing secret holds at least {LEAST_KEY_BYTES} bytes")
    return key
