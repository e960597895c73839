"""Whom a client expects to sign in, by an ID token that it got before."""

from dataclasses import replace

from msgsvc_core.db import Database
from msgsvc_oidc.grants.service import Grants
from msgsvc_oidc.issuers import Issuers
from msgsvc_oidc.keys.service import SigningKeys
from msgsvc_oidc.protocol.authorize import AuthorizationRequest
from msgsvc_oidc.protocol.clients import Client
from msgsvc_oidc.protocol.errors import RedirectError
from msgsvc_oidc.protocol.id_token_hint import read_hint


class ExpectedPeople:
    """Resolves `id_token_hint` (OpenID Connect Core 1.0, section 3.1.2.1)."""

    def __init__(
        self, *, db: Database, issuers: Issuers, keys: SigningKeys, grants: Grants
    ) -> None:
        self._db = db
        self._issuers = issuers
        self._keys = keys
        self._grants = grants

    async def resolve(
        self, client: Client, request: AuthorizationRequest, token: str | None
    ) -> AuthorizationRequest:
        """The request, for the person of the ID token alone if there is one. Raises `RedirectError` for a
        token of another client or issuer, and if that person is not known any more."""
        if token is None:
            return request
        issuer = self._issuers.url(client.project_id)
        found = read_hint(token, await self._keys.public_keys(), issuer)
        if found is None or found.client_id != client.client_id:
            raise RedirectError("invalid_request", "id_token_hint is no ID token of this client")
        async with self._db.read() as tx:
            subscriber_id = await self._grants.subscriber_of(tx, client, found.subject)
        if subscriber_id is None:
            raise RedirectError("login_required", "the person of id_token_hint is not known")
        return replace(request, expected_subscriber_id=subscriber_id)
