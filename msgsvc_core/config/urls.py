"""Validates URLs in settings, so that errors show at start rather than at the first connection."""

import re
from urllib.parse import SplitResult, parse_qsl, urlsplit


def check_postgres_url(url: str) -> None:
    """Raises ValueError for a URL with which the driver would fail only when it connects."""
    parts = urlsplit(url)
    _ = parts.port  # a ValueError that says what is wrong with it
    others = {name for name, _ in parse_qsl(parts.query)} - {"ssl"}
    if others:
        raise ValueError(
            f"takes no {', '.join(sorted(others))}; `?ssl=require` encrypts the connection,"
            " and `database_pool` sets its size"
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
