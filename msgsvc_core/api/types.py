"""Types that bodies share."""

from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from msgsvc_core.clock import from_rfc3339

#: Characters of a URL; longer ones are refused by common servers and browsers.
MAX_URL_LENGTH = 2048


def check_http_url(url: str) -> str:
    """The same. Raises ValueError for what is no absolute http or https URL."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or parts.scheme not in {"http", "https"} or port == 0:
        raise ValueError("must be an http or https URL")
    # Browsers read a backslash as a slash, and so another host than we do.
    if not url.isprintable() or " " in url or "\\" in url:
        raise ValueError("must not hold spaces, backslashes or control characters")
    return url


#: An absolute http or https URL, as text.
HttpUrl = Annotated[str, Field(max_length=MAX_URL_LENGTH), AfterValidator(check_http_url)]


def _unix_ms(text: Any) -> int:
    if not isinstance(text, str):
        raise ValueError("must be a time as text, as 2026-11-21T09:30:00Z")
    return from_rfc3339(text)


#: A moment, RFC 3339 on the wire and Unix milliseconds inside.
MomentMs = Annotated[
    int,
    BeforeValidator(_unix_ms),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]


def refuse_null(value: Any) -> Any:
    """For `field_validator` of fields that may be left out of a change, and can't be null."""
    if value is None:
        raise ValueError("must not be null; leave it out to keep what there is")
    return value
