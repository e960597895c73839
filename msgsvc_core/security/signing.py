"""Webhook signatures: our own header, and the ones of Standard Webhooks beside it."""

import base64
import hashlib
import hmac
import secrets as random
from collections.abc import Sequence

#: What every signing secret begins with, so that a leaked one is recognised (API, "Webhooks").
PREFIX = "whsec_"

#: Random bytes in a signing secret: the output size of SHA-256 (API, "Webhooks").
SECRET_BYTES = 32

#: The only signature scheme so far; a verifier skips the names it doesn't know.
SCHEME = "v1"


def new_secret() -> str:
    """A new signing secret: `whsec_` and the base64 of 32 random bytes."""
    return PREFIX + base64.b64encode(random.token_bytes(SECRET_BYTES)).decode()


def sign(body: bytes, secrets: Sequence[str], timestamp: int) -> str:
    """The value of `X-Service-Signature`, e.g. `t=1795167000,v1=5257a8…`.

    `body` is the raw request body, `timestamp` is in Unix seconds. While a secret is being rotated
    `secrets` holds the new and the old one, and the header one `v1=` for each (spec, section 6).
    """
    _require_secrets(secrets)
    signatures = [f"{SCHEME}={_hex_signature(body, secret, str(timestamp))}" for secret in secrets]
    return ",".join([f"t={timestamp}", *signatures])


def verify(body: bytes, header: str, secrets: Sequence[str]) -> bool:
    """Whether any `v1=` of `header` signs `body` with any of `secrets`; a malformed header is not.

    An old timestamp is no reason to refuse: a retry may come a day after the event, and receivers
    find repetitions by the delivery id instead (spec, section 6, rule 6).
    """
    timestamp, given = _parse(header)
    if timestamp is None:
        return False
    expected = [_hex_signature(body, secret, timestamp).encode() for secret in secrets]
    # No early exit: the time taken must not tell which secret or which digit was right.
    matches = [hmac.compare_digest(one, other) for one in expected for other in given]
    return any(matches)


def standard_headers(
    delivery_id: str, body: bytes, secrets: Sequence[str], timestamp: int
) -> dict[str, str]:
    """The three headers of Standard Webhooks, which let its libraries verify our deliveries.

    The signed string is `<id>.<timestamp>.<body>`; the key is the decoded part of the secret after
    `whsec_`, unlike in `sign`. ValueError for a secret that is not of `new_secret`'s form.
    """
    _require_secrets(secrets)
    signed = f"{delivery_id}.{timestamp}.".encode() + body
    signatures = [
        base64.b64encode(hmac.digest(_standard_key(secret), signed, hashlib.sha256)).decode()
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


def _hex_signature(body: bytes, secret: str, timestamp: str) -> str:
    signed = f"{timestamp}.".encode() + body
    return hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


def _parse(header: str) -> tuple[str | None, list[bytes]]:
    """The text after `t=`, or None where it is missing, doubled or no number; and every `v1`."""
    pairs = [item.strip().partition("=") for item in header.split(",")]
    times = [value for name, _, value in pairs if name == "t"]
    # `replace` maps what no digest holds to `?`; compare_digest takes ASCII text or bytes only.
    given = [value.encode("ascii", "replace") for name, _, value in pairs if name == SCHEME]
    if len(times) != 1 or not (times[0].isascii() and times[0].isdigit()):
        return None, given
    return times[0], given


def _standard_key(secret: str) -> bytes:
    if not secret.startswith(PREFIX):
        raise ValueError(f"a signing secret begins with {PREFIX}")
    return base64.b64decode(secret.removeprefix(PREFIX), validate=True)
