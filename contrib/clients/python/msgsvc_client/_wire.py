"""Requests as bytes: paths, query strings, JSON and files."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final, final
from urllib.parse import quote, urlencode, urlsplit


@final
class NotGiven:
    """The type of `NOT_GIVEN`: a field that is left out, which is not the same as `None`."""

    def __repr__(self) -> str:
        return "NOT_GIVEN"

    def __bool__(self) -> bool:
        return False


NOT_GIVEN: Final = NotGiven()


@dataclass(frozen=True)
class Request:
    """A request as a transport sends it. Its text shows no headers and no body: they hold secrets."""

    method: str
    #: Whole, with the query string.
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    content: bytes | None = field(default=None, repr=False)


def check_base_url(url: str) -> str:
    """The address without a slash at the end. Raises ValueError if it is no http or https address."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("base_url must be like https://msgsvc.example.com")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ValueError("base_url must have no user, password, query or fragment")
    return url.rstrip("/")


def check_api_key(key: str) -> str:
    """Raises ValueError for a key that can't stand in a header, without showing it."""
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise ValueError("api_key is empty or malformed: is the variable that holds it set?")
    return key


def check_idempotency_key(key: str) -> str:
    """Raises ValueError for a key that the service would refuse."""
    if not re.fullmatch(r"[A-Za-z0-9_-]{8,128}", key):
        raise ValueError("idempotency_key must be 8 to 128 characters of A-Z a-z 0-9 _ -")
    return key


def segment(value: str) -> str:
    """A path parameter. Raises ValueError for an empty one, which would be another path."""
    if not value or value in {".", ".."}:
        raise ValueError("a path parameter is empty, `.` or `..`")
    return quote(value, safe="")


def query_string(query: Mapping[str, object]) -> str:
    """The parameters that are not None, with `?`; empty if there are none."""
    given = {name: _query_value(value) for name, value in query.items() if value is not None}
    return f"?{urlencode(given, quote_via=quote)}" if given else ""


def _query_value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return rfc3339(value) if isinstance(value, datetime) else str(value)


def json_body(fields: Mapping[str, object]) -> bytes:
    """The fields that are given, as JSON. Raises ValueError for what JSON does not have, such as NaN."""
    given = {name: value for name, value in fields.items() if not isinstance(value, NotGiven)}
    text = json.dumps(
        given, default=_json_value, allow_nan=False, ensure_ascii=False, separators=(",", ":")
    )
    return text.encode()


def _json_value(value: object) -> object:
    if isinstance(value, datetime):
        return rfc3339(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} can't be sent as JSON")


def rfc3339(moment: datetime) -> str:
    """Raises ValueError for a time without a zone, which could mean any."""
    if moment.tzinfo is None:
        raise ValueError("a datetime needs a time zone: datetime.now(timezone.utc)")
    return moment.isoformat()


def multipart(
    field_name: str,
    content: bytes,
    filename: str,
    content_type: str,
    boundary: str,
    parts: Mapping[str, object],
) -> bytes:
    """A body of multipart/form-data with the parts that are not None, and one file. It is made once, so that
    a repeated request is the same."""
    name = re.sub(r"[\r\n\"\\]", "_", filename)
    before = "".join(
        f'--{boundary}\r\nContent-Disposition: form-data; name="{part}"\r\n\r\n{_query_value(value)}\r\n'
        for part, value in parts.items()
        if value is not None
    )
    head = (
        f"{before}--{boundary}\r\n"
        f'Content-Disposition: form-data; name="{field_name}"; filename="{name}"\r\n'
        f"Content-Type: {content_type}\r\n\r\n"
    )
    return head.encode() + content + f"\r\n--{boundary}--\r\n".encode()


def retry_after_s(value: str | None, now: datetime) -> float | None:
    """Seconds that a `Retry-After` asks for, as a number or as a date; None if there is none."""
    if not value:
        return None
    if value.strip().isascii() and value.strip().isdigit():
        return float(value)
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(0.0, (moment - now).total_seconds()) if moment.tzinfo else None


def json_object(content: bytes) -> dict[str, Any] | None:
    """The object in a body; None if it holds something else."""
    try:
        found = json.loads(content)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
