"""Types that bodies share."""

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

#: Characters of a URL; longer ones are refused by common servers and browsers.
MAX_URL_LENGTH = 2048


def _check_http_url(url: str) -> str:
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
HttpUrl = Annotated[str, Field(max_length=MAX_URL_LENGTH), AfterValidator(_check_http_url)]
