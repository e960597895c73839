"""API keys: how one is made, recognised and stored."""

import hashlib
import re
import secrets
from dataclasses import dataclass, field

from msgsvc_core.kernel.ids import encode_base62

#: Prefix of every API key, so that secret scanners recognise a leaked one.
KEY_PREFIX = "msk_"

#: Random bytes in a key (decision 0075).
KEY_BYTES = 32

#: Base62 characters that hold those 256 bits (decision 0075).
KEY_WIDTH = 43

#: Characters of a key that stay visible to its owner, `msk_` included (decision 0075).
VISIBLE_LENGTH = 12

_SHAPE = re.compile(rf"{KEY_PREFIX}[0-9A-Za-z]{{{KEY_WIDTH}}}")


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A new key. `secret` is shown to its owner once; `prefix` and `digest` are stored."""

    secret: str = field(repr=False)
    prefix: str
    digest: str


def new_api_key() -> ApiKey:
    """A new random key, e.g. `msk_0gV7…` with the visible prefix `msk_0gV7sT2k`."""
    secret = KEY_PREFIX + encode_base62(secrets.token_bytes(KEY_BYTES), KEY_WIDTH)
    return ApiKey(secret=secret, prefix=secret[:VISIBLE_LENGTH], digest=digest(secret))


def digest(secret: str) -> str:
    """64 hex digits by which a key is found.

    Plain SHA-256 is enough, and fast on every request: 256 random bits leave nothing to guess, so
    a slow password hash would protect nothing more.
    """
    return hashlib.sha256(secret.encode()).hexdigest()


def looks_like_key(text: str) -> bool:
    """Whether `text` has the shape of a key; spares the database a query for what can't be one."""
    return _SHAPE.fullmatch(text) is not None
