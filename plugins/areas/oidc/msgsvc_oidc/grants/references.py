"""Codes and tokens: signed references to a grant or a request, which only the provider can make.

Nothing of them is stored, so access to the database without the secret key gives no token, and a token costs
no row. What is single-use is a state of the row that is referred to.
"""

import re
from dataclasses import dataclass

from msgsvc_core.kernel.ids import new_token
from msgsvc_core.security import SecretBox
from msgsvc_oidc.protocol.scopes import scope_letters, scopes_of_letters

#: Random bits in an access token. They are no secret: the signature is.
UNIQUE_BITS = 32

#: An id, and then parts and a signature, with separators that no part has.
_REFERENCE = re.compile(
    r"([a-z]{3}_[0-9A-Za-z]{22})((?:\.[0-9A-Za-z]{0,22}){0,3})\.([0-9A-Za-z]{22})"
)


@dataclass(frozen=True, slots=True)
class AccessToken:
    """The content of a valid access token. It may have expired, and its grant been revoked."""

    grant_id: str
    expires_at_s: int
    scopes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RefreshToken:
    """The content of a valid refresh token: its grant, and its number in the line of tokens."""

    grant_id: str
    number: int


class References:
    """Makes and reads them. Those of another project, or for another purpose, are not valid."""

    def __init__(self, secrets: SecretBox) -> None:
        self._secrets = secrets

    def make(self, purpose: str, project_id: str, row_id: str, *parts: str) -> str:
        """A reference to a row, for one purpose."""
        signature = self._secrets.sign(f"oidc.{purpose}", project_id, row_id, *parts)
        return ".".join((row_id, *parts, signature))

    def read(self, purpose: str, project_id: str, text: str) -> tuple[str, tuple[str, ...]] | None:
        """The row and the further parts; None for what is not one of these references."""
        match = _REFERENCE.fullmatch(text)
        if match is None:
            return None
        row_id, parts = match[1], tuple(match[2].split(".")[1:])
        if not self._secrets.verify(match[3], f"oidc.{purpose}", project_id, row_id, *parts):
            return None
        return row_id, parts

    def code(self, project_id: str, grant_id: str) -> str:
        """An authorization code."""
        return self.make("code", project_id, grant_id)

    def read_code(self, project_id: str, code: str) -> str | None:
        """The grant of an authorization code."""
        found = self.read("code", project_id, code)
        return None if found is None or found[1] else found[0]

    def access_token(self, project_id: str, token: AccessToken) -> str:
        """An access token (RFC 6750). Two of the same second differ: clients tell by it whether a token is
        new."""
        parts = (str(token.expires_at_s), scope_letters(token.scopes), new_token(UNIQUE_BITS))
        return self.make("access", project_id, token.grant_id, *parts)

    def read_access_token(self, project_id: str, text: str) -> AccessToken | None:
        """None for what is no access token of the project."""
        found = self.read("access", project_id, text)
        if found is None:
            return None
        grant_id, (expires_at_s, letters, _) = found
        return AccessToken(grant_id, int(expires_at_s), scopes_of_letters(letters))

    def refresh_token(self, project_id: str, token: RefreshToken) -> str:
        """A refresh token."""
        return self.make("refresh", project_id, token.grant_id, str(token.number))

    def read_refresh_token(self, project_id: str, text: str) -> RefreshToken | None:
        """None for what is no refresh token of the project."""
        found = self.read("refresh", project_id, text)
        return None if found is None else RefreshToken(found[0], int(found[1][0]))
