"""Creation, recognition and storage of API keys."""

import hashlib
import re
import secrets
from dataclasses import dataclass, field

from msgsvc_core.kernel.ids import encode_base62

#: Prefix of every API key, so that secret scanners recognise a leaked one.
KEY_PREFIX = "msk_"

#: Random bytes in a key (decision 0075).
KEY_BYTES = 32

#: Base62 characters of those 256 bits (decision 0075).
KEY_WIDTH = 43

#: Characters of a key that stay visible to its owner, including `msk_` (decision 0075).
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
    """64 hex digits by which a key is looked up.

    Plain SHA-256 is enough, and fast for every request: 256 random bits can't be guessed, so a slow password
    hash would add nothing.
    """
    return hashlib.sha256(secret.encode()).hexdigest()


def looks_like_key(text: str) -> bool:
    """Whether `text` has the format of a key; avoids a query for one that can't exist."""
    return _SHAPE.fullmatch(text) is not None
