"""Types that bodies share."""

import re
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    GetCoreSchemaHandler,
    WithJsonSchema,
)
from pydantic_core import CoreSchema, core_schema
from yarl import URL

from msgsvc_core.kernel.clock import from_rfc3339
from msgsvc_core.security.addresses import parse_address

#: Characters of a URL; longer ones are refused by common servers and browsers.
MAX_URL_LENGTH = 2048


#: Letters and digits of any script, and the underscore of buckets' names; nothing that a parser may take
#: for a dot or a slash, and nothing that ends a directive of a policy.
_LABEL = r"\w([\w-]{0,61}\w)?"
_HOST = re.compile(rf"{_LABEL}(\.{_LABEL})*\.?")

T = TypeVar("T")


class WrongUrl(ValueError):
    """What a URL is not. A body of which nothing else is wrong is answered with `invalid_url`."""


def check_http_url(url: str) -> str:
    """The same. Raises `WrongUrl` for what is no absolute http or https URL."""
    _check_length(url)
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or parts.scheme not in {"http", "https"} or port == 0:
        raise WrongUrl("must be an http or https URL")
    # Browsers read a backslash as a slash, and so another host than we do.
    if not url.isprintable() or " " in url or "\\" in url:
        raise WrongUrl("must not hold spaces, backslashes or control characters")
    if not is_plain_host(host):
        raise WrongUrl("must name its host in letters, digits and hyphens")
    return url


def is_plain_host(host: str) -> bool:
    """A name of plain labels that DNS can hold, or an address: what every parser reads alike."""
    if parse_address(host) is not None:
        return True
    if not _HOST.fullmatch(host):
        return False
    try:
        # Names in other scripts stand in headers, and in DNS, as IDNA writes them.
        return bool(idna_host(host))
    except ValueError:
        return False


def idna_host(host: str) -> str:
    """A host's name as DNS has it. Raises ValueError for one that it can't have."""
    written = URL.build(scheme="https", host=host).raw_host or ""
    if not written.isascii() or any(len(label) > 63 for label in written.split(".")):
        raise ValueError("the host's name is none that DNS can hold")
    return written


def origin_of(url: str) -> str:
    """Scheme, host and port of an http or https URL, in ASCII, for a header. Raises `WrongUrl`."""
    parts = urlsplit(check_http_url(url))
    host = idna_host(parts.hostname or "")
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}" + (f":{parts.port}" if parts.port is not None else "")


#: An absolute http or https URL, as text.
HttpUrl = Annotated[
    str,
    AfterValidator(check_http_url),
    Field(json_schema_extra={"format": "uri", "maxLength": MAX_URL_LENGTH}),
]


def _check_length(url: str) -> str:
    if len(url) > MAX_URL_LENGTH:
        raise WrongUrl(f"must be at most {MAX_URL_LENGTH} characters")
    return url


#: A URL of which whoever takes it checks more than its length.
UrlText = Annotated[
    str,
    AfterValidator(_check_length),
    Field(json_schema_extra={"format": "uri", "maxLength": MAX_URL_LENGTH}),
]


def _unix_ms(text: Any) -> int:
    if not isinstance(text, str):
        raise ValueError("must be a time as text, as 2026-11-21T09:30:00Z")
    return from_rfc3339(text)


#: A moment, RFC 3339 on the wire and Unix milliseconds inside, from 1970 to 2099.
MomentMs = Annotated[
    int,
    BeforeValidator(_unix_ms),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]


def _refuse_null(value: Any) -> Any:
    if value is None:
        raise ValueError("must not be null; leave it out to keep what there is")
    return value


@dataclass(frozen=True)
class _NotNull:
    """Takes null from a type in the validation and in its description alike."""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        schema = handler(source)
        assert schema["type"] == "nullable", "it is for a type or None"
        return core_schema.no_info_before_validator_function(_refuse_null, schema["schema"])


#: Of a change: a field that may be left out, which keeps what there is, and can't be null. None is what
#: the code sees where it was left out.
Kept = Annotated[T | None, _NotNull()]


def _is_true(value: Any) -> Any:
    if value is not True:
        raise ValueError("must be true, or left out")
    return value


#: `true`, or nothing: pydantic takes 1 and 1.0 for the literal.
OnlyTrue = Annotated[
    bool, BeforeValidator(_is_true), WithJsonSchema({"const": True, "type": "boolean"})
]
