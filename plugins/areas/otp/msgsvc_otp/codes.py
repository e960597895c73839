"""Random numeric codes, of which only a keyed hash is stored.

A plain hash of so few digits could be brute-forced from the database. The hash includes the code's id, so
equal codes differ.
"""

import hmac
import secrets

from msgsvc_core.security import SecretBox

#: What the hashes are for; other uses of the same key give other values.
PURPOSE = "otp.code"


def new_code(length: int) -> str:
    """Random digits, each as likely as the others."""
    return f"{secrets.randbelow(10**length):0{length}d}"


class CodeHashes:
    """Makes the hash of a code, and compares with it."""

    def __init__(self, box: SecretBox) -> None:
        self._box = box

    def hash(self, otp_id: str, code: str) -> str:
        return self._box.keyed_hash(PURPOSE, _value(otp_id, code))

    def match(self, otp_id: str, code: str, stored: str) -> bool:
        """Whether the hash is of this code, in constant time.

        Secret keys can be rotated while codes are valid: each key in use is tried.
        """
        found = False
        for known in self._box.keyed_hashes(PURPOSE, _value(otp_id, code)):
            found |= hmac.compare_digest(known, stored)
        return found


def _value(otp_id: str, code: str) -> str:
    return f"{otp_id} {code}"
