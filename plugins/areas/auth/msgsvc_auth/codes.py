"""Single-use codes, which the site exchanges for the user. Only hashes are stored.

A code is derived from its session and a stored nonce with the service's key, so that polling returns the same
one again, and it is found by its keyed hash. Access to the database without the key does not allow signing
in.
"""

from dataclasses import dataclass

from msgsvc_core.kernel.ids import encode_base62, new_token
from msgsvc_core.security import SecretBox

#: What the derived bytes and the hashes are for; other uses of the same key give other values.
PURPOSE = "auth.code"

#: Base62 characters that hold a code's 256 bits (decision 0075).
CODE_WIDTH = 43


@dataclass(frozen=True, slots=True)
class IssuedCode:
    """A new code, and the two values of it that are stored."""

    code: str
    nonce: str
    hash: str


class Codes:
    """Issues codes and recognises them."""

    def __init__(self, secrets: SecretBox) -> None:
        self._secrets = secrets

    def issue(self, session_id: str) -> IssuedCode:
        nonce = new_token()
        code = _encode(self._secrets.derive(PURPOSE, session_id, nonce))
        return IssuedCode(code, nonce, self._secrets.keyed_hash(PURPOSE, code))

    def reissue(self, session_id: str, nonce: str, code_hash: str) -> str | None:
        """The code that was issued; None if its secret key is no longer configured."""
        for derived in self._secrets.derive_all(PURPOSE, session_id, nonce):
            code = _encode(derived)
            if code_hash in self.hashes(code):
                return code
        return None

    def hashes(self, code: str) -> list[str]:
        """What the code's stored hash may be, one for every secret key in use."""
        return self._secrets.keyed_hashes(PURPOSE, code)


def _encode(derived: bytes) -> str:
    return encode_base62(derived, CODE_WIDTH)
