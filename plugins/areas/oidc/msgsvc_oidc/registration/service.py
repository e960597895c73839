"""Clients that register themselves, and change and delete their registration."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from msgsvc_core.db import Database
from msgsvc_core.kernel.errors import Conflict, ValidationFailed
from msgsvc_core.kernel.ids import new_token
from msgsvc_core.security import digest
from msgsvc_oidc.clients.models import CreateOidcClientBody, UpdateOidcClientBody
from msgsvc_oidc.clients.service import Clients
from msgsvc_oidc.protocol.clients import Client
from msgsvc_oidc.protocol.errors import OAuthError, invalid_request
from msgsvc_oidc.protocol.registration import (
    check_unchanged,
    check_update,
    invalid_metadata,
    invalid_redirect_uri,
    read_metadata,
    wire_name,
)
from msgsvc_oidc.registration.tokens import RegistrationTokens

#: Before a registration access token, so that scanners of repositories can find one.
PREFIX = "mor_"

#: Bits of a token.
TOKEN_BITS = 256

#: What can't be changed by a client itself, and is not in a change.
_FIXED = ("token_endpoint_auth_method", "subject_type", "id_token_signed_response_alg")

#: What an update without it removes (RFC 7592, section 2.2).
_REMOVED: Mapping[str, Any] = {
    "redirect_uris": [],
    "post_logout_redirect_uris": [],
    "backchannel_logout_uri": None,
    "home_url": None,
    "require_pushed": False,
}

#: How clients are refused by what registers them.
_REFUSALS = (ValidationError, ValidationFailed, Conflict)


@dataclass(frozen=True, slots=True)
class Registered:
    """A client with the token for its registration, and the secret of a new one."""

    client: Client
    access_token: str = field(repr=False)
    secret: str | None = field(default=None, repr=False)


class Registrations:
    """Each request is one transaction. Errors are those of the standard, `OAuthError`."""

    def __init__(self, *, db: Database, clients: Clients, tokens: RegistrationTokens) -> None:
        self._db = db
        self._clients = clients
        self._tokens = tokens

    async def register(
        self, project_id: str, initial_token: str, body: Mapping[str, Any]
    ) -> Registered:
        """A new client (RFC 7591, section 3)."""
        access_token = PREFIX + new_token(TOKEN_BITS)
        async with self._db.transaction() as tx:
            await self._tokens.use(tx, project_id, initial_token)
            try:
                new = await self._clients.create(
                    tx,
                    project_id,
                    CreateOidcClientBody(**read_metadata(body)),
                    dynamic=True,
                    registration_digest=digest(access_token),
                )
            except _REFUSALS as error:
                raise _as_oauth(error) from None
        return Registered(new.client, access_token, new.secret)

    async def get(self, project_id: str, client_id: str, access_token: str) -> Registered:
        """The client as it is registered (RFC 7592, section 2.1)."""
        async with self._db.read() as tx:
            client = await self._clients.get_registered(tx, project_id, client_id, access_token)
        return Registered(client, access_token)

    async def change(
        self, project_id: str, client_id: str, access_token: str, body: Mapping[str, Any]
    ) -> Registered:
        """The client with new metadata in place of all that it had (RFC 7592, section 2.2)."""
        async with self._db.transaction() as tx:
            client = await self._clients.get_registered(tx, project_id, client_id, access_token)
            check_update(body, client)
            if "client_secret" in body:
                secrets = await self._clients.secrets(tx, client)
                given = digest(str(body["client_secret"]))
                if given not in {secret.digest for secret in secrets}:
                    raise invalid_request("client_secret is not the client's")
            metadata = read_metadata(body)
            check_unchanged(metadata, client)
            changes = {name: value for name, value in metadata.items() if name not in _FIXED}
            try:
                change = UpdateOidcClientBody(**{**_REMOVED, **changes})
                client = await self._clients.change(tx, project_id, client_id, change)
            except _REFUSALS as error:
                raise _as_oauth(error) from None
        return Registered(client, access_token)

    async def delete(self, project_id: str, client_id: str, access_token: str) -> None:
        """Ends the registration, and with it all that people allowed the client (RFC 7592, section 2.3)."""
        async with self._db.transaction() as tx:
            await self._clients.get_registered(tx, project_id, client_id, access_token)
            await self._clients.delete(tx, project_id, client_id)


def _as_oauth(error: ValidationError | ValidationFailed | Conflict) -> OAuthError:
    """The error in the words of RFC 7591, section 3.2.2."""
    if isinstance(error, ValidationError):
        found = error.errors()[0]
        return _wrong(str(found["loc"][0]), f"{found['loc'][0]}: {found['msg']}")
    if isinstance(error, ValidationFailed):
        path = error.findings[0].path
        return _wrong(str(path[0]) if path else "", error.message)
    return invalid_metadata("the project has no room for more clients")


def _wrong(name: str, message: str) -> OAuthError:
    wrong = invalid_redirect_uri if name.startswith("redirect_uris") else invalid_metadata
    return wrong(_ascii(message.replace(name, wire_name(name), 1)))


def _ascii(text: str) -> str:
    """As a description may be (RFC 6749, section 5.2)."""
    return text.encode("ascii", "replace").decode().replace('"', "'").replace("\\", "/")[:300]
