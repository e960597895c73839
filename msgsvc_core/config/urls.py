"""Validates URLs in settings, so that errors show at start rather than at the first connection."""

import re
from urllib.parse import SplitResult, urlsplit

#: The path of `base_url`: what no browser, proxy or template has to encode.
_BASE_PATH = re.compile(r"(/[A-Za-z0-9._~-]+)*/?", re.ASCII)


def check_base_url(url: str) -> None:
    """Raises ValueError for what is no address of a service."""
    if not url.startswith(("http://", "https://")):
        raise ValueError("must begin with http:// or https://")
    parts = urlsplit(url)
    if parts.query or parts.fragment:
        raise ValueError(
            "ends with the host or a path: `?` and `#` belong to no address of the service"
        )
    if not _BASE_PATH.fullmatch(parts.path):
        raise ValueError(
            "its path may have letters, digits and - . _ ~, e.g. https://shop.example/notify"
        )


def check_redis_url(url: str) -> None:
    """Raises ValueError, without the URL, which may contain a password."""
    parts = _split(url)
    if parts.scheme not in {"redis", "rediss"} or not parts.hostname:
        raise ValueError("must begin with redis://host or rediss://host")
    if parts.query or parts.fragment:
        raise ValueError("takes no ?options; timeouts are ours")
    if not re.fullmatch(r"(/\d{0,4})?", parts.path, re.ASCII):
        raise ValueError("ends with the number of a database, e.g. /0")


def check_broker_url(url: str) -> None:
    """Raises ValueError, without the URL. The part after the host of a RabbitMQ URL is not checked."""
    if url.startswith(("redis://", "rediss://")):
        check_redis_url(url)
        return
    if not url.startswith(("amqp://", "amqps://")):
        raise ValueError("must begin with redis://host, or amqp://host for RabbitMQ")
    parts = _split(url)
    if not parts.hostname:
        raise ValueError("names no host")


def _split(url: str) -> SplitResult:
    """The parts of a URL, with a valid host and port."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise ValueError(
            "its host or port can't be read; is the password percent-encoded?"
        ) from None
    return parts
