"""Verifies webhooks of msgsvc. One file without dependencies, for Python 3.8 and later: copy it."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterable, Mapping


class InvalidWebhook(ValueError):
    """A request that msgsvc did not sign: answer it with 400."""


def verify(
    headers: Mapping[str, str],
    body: bytes,
    secrets: str | Iterable[str],
    header: str = "X-Service-Signature",
) -> None:
    """Raises `InvalidWebhook` unless `header` signs the raw `body` with one of `secrets`.

    Old timestamps are fine: a retry may come a day late. Remember `X-Service-Delivery-Id` instead.
    """
    parts = [part.strip(" \t").partition("=") for part in _header(headers, header).split(",")]
    times = [value for name, _, value in parts if name == "t"]
    given = [value for name, _, value in parts if name == "v1"]
    if len(times) != 1 or not _is_number(times[0]):
        raise InvalidWebhook(header + " is malformed")
    signed = times[0].encode() + b"." + body
    _match(given, [hmac.new(s.encode(), signed, hashlib.sha256).hexdigest() for s in _all(secrets)])


def verify_standard(headers: Mapping[str, str], body: bytes, secrets: str | Iterable[str]) -> None:
    """The same by the headers of Standard Webhooks, whose signature spans the delivery's id too."""
    delivery_id, time = _header(headers, "webhook-id"), _header(headers, "webhook-timestamp")
    if not _is_number(time):
        raise InvalidWebhook("webhook-timestamp is malformed")
    parts = [part.partition(",") for part in _header(headers, "webhook-signature").split(" ")]
    given = [value for name, _, value in parts if name == "v1"]
    signed = (delivery_id + "." + time + ".").encode() + body
    keys = [_key(secret) for secret in _all(secrets)]
    digests = [hmac.new(key, signed, hashlib.sha256).digest() for key in keys]
    _match(given, [base64.b64encode(digest).decode() for digest in digests])


def _header(headers: Mapping[str, str], name: str) -> str:
    value = {key.lower(): value for key, value in headers.items()}.get(name.lower())
    if not value:
        raise InvalidWebhook("the header " + name + " is missing")
    return value


def _all(secrets: str | Iterable[str]) -> list[str]:
    found = [secrets] if isinstance(secrets, str) else list(secrets)
    if not all(found):
        raise ValueError("a secret is empty: is the variable that holds it set?")
    for secret in found:
        _key(secret)
    return found


def _key(secret: str) -> bytes:
    # A key that was cut off, or decodes to nothing, is known to everybody.
    key = base64.b64decode(secret[len("whsec_") :], validate=True)
    if not secret.startswith("whsec_") or len(key) < 24:
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
