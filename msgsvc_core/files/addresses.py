"""Signed file URLs, `/files/{file_id}/{signature}`: the URL alone grants access.

They are for messengers, which download files without an API key, and expire after some days.
"""

import re

from msgsvc_core.security.secret_box import SecretBox

#: What the keys that sign are for.
PURPOSE = "file-address"

#: Addresses of one file that are made within an hour are the same, so that what is known of one (that
#: it is fit to be sent, for instance) holds for the next.
_ROUND_S = 3600

_SIGNATURE = re.compile(r"([0-9]{1,12})-([0-9A-Za-z]{22})")


def expiry_s(now_ms: int, hours: int) -> int:
    """When an address that is made now expires, in Unix seconds."""
    return (now_ms // 1000 // _ROUND_S + 1 + hours) * _ROUND_S


def sign(secrets: SecretBox, file_id: str, expires_s: int) -> str:
    """The last part of an address: when it expires, and the proof that we said so."""
    return f"{expires_s}-{secrets.sign(PURPOSE, file_id, str(expires_s))}"


def is_signed(secrets: SecretBox, file_id: str, signature: str, now_ms: int) -> bool:
    """Whether we have signed the address, and it has not expired."""
    found = _SIGNATURE.fullmatch(signature)
    if found is None:
        return False
    return secrets.verify(found[2], PURPOSE, file_id, found[1]) and now_ms < int(found[1]) * 1000
