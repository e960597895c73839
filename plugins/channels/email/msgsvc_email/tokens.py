"""What the channel signs: message ids, and addresses for bounces and replies."""

import base64
import hmac
import re
from uuid import uuid4

from msgsvc_core.security.secret_box import SecretBox

#: Bytes of a signature in an address. Its local part has 64 characters at most, and servers may change their
#: case, so it is base32: 16 characters.
SIGNATURE_BYTES = 10

#: The part of a message id before `@`: the message's key and the signature.
_OWN_ID = re.compile(r"<?([A-Za-z0-9_-]{1,64})\.([a-z2-7]{16})@([a-z0-9.-]+)>?")


class Tokens:
    """Signs and verifies for one channel, with the service's secret keys."""

    def __init__(self, secrets: SecretBox, key: str, domain: str) -> None:
        self._secrets = secrets
        self._key = key
        self._domain = domain

    def message_id(self, message_key: str, address: str) -> str:
        """`Message-ID` without brackets: the same in each attempt to send the message."""
        name = message_key or uuid4().hex
        return f"{name}.{self._signature('message', name, address)}@{self._domain}"

    def is_own_id(self, message_id: str, address: str) -> bool:
        """Whether `message_id` made it, for a message to that address."""
        found = _OWN_ID.fullmatch(message_id.strip())
        return found is not None and self._verify(found[2], "message", found[1], address)

    def subaddress(self, mailbox: str, purpose: str, address: str) -> str:
        """The mailbox's address for what comes back from `address`: `help+r-<signature>@shop.example`."""
        local, _, domain = mailbox.rpartition("@")
        return f"{local}+{purpose}-{self._signature(purpose, address)}@{domain}"

    def is_subaddress(self, found: str, mailbox: str, purpose: str, address: str) -> bool:
        """Whether `subaddress` made the address `found`."""
        local, _, domain = mailbox.rpartition("@")
        prefix, given = f"{local}+{purpose}-", found.lower()
        if not (given.startswith(prefix) and given.endswith(f"@{domain}")):
            return False
        return self._verify(given[len(prefix) : -len(domain) - 1], purpose, address)

    def _signature(self, *parts: str) -> str:
        return _written(self._secrets.derive("email", self._key, *parts))

    def _verify(self, given: str, *parts: str) -> bool:
        known = self._secrets.derive_all("email", self._key, *parts)
        matches = [hmac.compare_digest(given.encode(), _written(one).encode()) for one in known]
        return any(matches)


def _written(derived: bytes) -> str:
    return base64.b32encode(derived[:SIGNATURE_BYTES]).decode().lower()
