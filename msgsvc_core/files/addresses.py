"""Signed file URLs, `/files/{file_id}/{signature}`: the URL alone grants access.

They are for messengers, which download files without an API key, and expire after some days.
"""

import re

from msgsvc_core.security.secret_box import SecretBox

#: The purpose of the keys that sign URLs.
PURPOSE = "file-address"

#: URLs of one file made within an hour are the same, so that cached checks of one apply to the others.
_ROUND_S = 3600

_SIGNATURE = re.compile(r"([0-9]{1,12})-([0-9A-Za-z]{22})")


def expiry_s(now_ms: int, hours: int) -> int:
    """The expiry of a URL that is made now, in Unix seconds."""
    return (now_ms // 1000 // _ROUND_S + 1 + hours) * _ROUND_S


def sign(secrets: SecretBox, file_id: str, expires_s: int) -> str:
    """The last part of a URL: its expiry and signature."""
    return f"{expires_s}-{secrets.sign(PURPOSE, file_id, str(expires_s))}"


def is_signed(secrets: SecretBox, file_id: str, signature: str, now_ms: int) -> bool:
    """Whether the signature is valid and has not expired."""
    found = _SIGNATURE.fullmatch(signature)
    if found is None:
        return False
    return secrets.verify(found[2], PURPOSE, file_id, found[1]) and now_ms < int(found[1]) * 1000
