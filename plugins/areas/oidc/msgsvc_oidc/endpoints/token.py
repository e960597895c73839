"""The token endpoint, revocation and introspection (RFC 6749, 7009 and 7662)."""

from collections.abc import Mapping
from typing import Protocol

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from msgsvc_core.db import Database
from msgsvc_oidc.clients.service import Clients
from msgsvc_oidc.endpoints.client_access import ClientAccess
from msgsvc_oidc.endpoints.responses import NO_STORE, endpoint, json_response, posted
from msgsvc_oidc.grants.references import References
from msgsvc_oidc.grants.service import BY_CLIENT, Grants
from msgsvc_oidc.issuers import Issuers
from msgsvc_oidc.journal.failures import FailedRequests
from msgsvc_oidc.protocol.client_authentication import check_grant_type
from msgsvc_oidc.protocol.clients import Client
from msgsvc_oidc.protocol.discovery import INTROSPECTION, REVOCATION, TOKEN
from msgsvc_oidc.protocol.errors import OAuthError, invalid_client, invalid_grant
from msgsvc_oidc.protocol.parameters import Parameters
from msgsvc_oidc.protocol.token import (
    CodeRequest,
    Grant,
    RefreshRequest,
    narrowed,
    read_verifier,
)


class GrantSource(Protocol):
    """A grant type besides codes and refresh tokens: the grant of what a client presents."""

    async def take(self, client: Client, parameters: Parameters) -> Grant:
        """Raises `OAuthError`, e.g. `authorization_pending`."""
        ...


class TokenEndpoints:
    """POST of forms by authenticated clients. `sources` are the further grant types."""

    def __init__(
        self,
        *,
        db: Database,
        issuers: Issuers,
        access: ClientAccess,
        clients: Clients,
        grants: Grants,
        references: References,
        sources: Mapping[str, GrantSource],
        failed: FailedRequests,
    ) -> None:
        self._db = db
        self._issuers = issuers
        self._access = access
        self._clients = clients
        self._grants = grants
        self._references = references
        self._sources = sources
        self._failed = failed

    def routes(self) -> list[BaseRoute]:
        issuer, methods = "/oidc/{project_id}", ["POST", "OPTIONS"]
        return [
            Route(f"{issuer}{TOKEN}", endpoint(self.token), methods=methods),
            Route(f"{issuer}{REVOCATION}", endpoint(self.revoke), methods=methods),
            Route(f"{issuer}{INTROSPECTION}", endpoint(self.introspect), methods=methods),
        ]

    async def token(self, request: Request) -> Response:
        """Exchanges a code, a refresh token, a device code or a backchannel request for tokens."""
        parameters = await posted(request)
        client = await self._access.authenticate(request, parameters)
        grant_type = parameters.required("grant_type")
        if grant_type in self._sources:
            check_grant_type(client, grant_type)
            # Polls, of which only the last one says how the sign-in ended.
            grant, scopes = await self._sources[grant_type].take(client, parameters), None
        else:
            try:
                grant, scopes = await self._own_grant(client, grant_type, parameters)
            except OAuthError as error:
                await self._failed.record(client, "token", error)
                raise
        issuer = self._issuers.url(client.project_id)
        tokens = await self._grants.tokens(client, grant, issuer, scopes)
        return json_response(tokens.body())

    async def _own_grant(
        self, client: Client, grant_type: str, parameters: Parameters
    ) -> tuple[Grant, tuple[str, ...] | None]:
        """The grant of a code or a refresh token, and the scopes that a refresh is limited to."""
        if grant_type == "authorization_code":
            check_grant_type(client, grant_type)
            return await self._grants.exchange_code(self._code_request(client, parameters)), None
        if grant_type == "refresh_token":
            check_grant_type(client, grant_type)
            refresh = self._refresh_request(client, parameters)
            return await self._grants.refresh(refresh), refresh.scopes
        raise OAuthError("unsupported_grant_type", "grant_type is not supported")

    async def revoke(self, request: Request) -> Response:
        """Ends the grant of a token (RFC 7009): its other tokens end with it.

        An unknown token, or one of another client, is no error (section 2.2).
        """
        parameters = await posted(request)
        client = await self._access.authenticate(request, parameters)
        grant = await self._grant_of(client, parameters.required("token"))
        if grant is not None:
            async with self._db.transaction() as tx:
                await self._grants.revoke(tx, grant, BY_CLIENT)
        return json_response({})

    async def introspect(self, request: Request) -> Response:
        """Whether a token is valid, and for whom (RFC 7662): for tokens of the client itself, and for access
        tokens of the clients that call it as their API. Any other token is answered as one that does not
        exist (section 4).
        """
        parameters = await posted(request)
        client = await self._access.authenticate(request, parameters)
        if client.is_public:
            raise invalid_client("only clients that authenticate may introspect tokens")
        text = parameters.required("token")
        return json_response(await self._introspected(client, text), headers=NO_STORE)

    async def _introspected(self, client: Client, text: str) -> dict[str, object]:
        refresh = self._references.read_refresh_token(client.project_id, text)
        if refresh is not None:
            # Whoever calls an API keeps these to itself.
            found = await self._grants.find_refreshable(client.project_id, refresh)
            if found is None or found.client_id != client.client_id:
                return {"active": False}
            expires_at_s = (found.refresh_expires_at_ms or 0) // 1000
            return self._shown(client, found, client, found.scopes, expires_at_s)
        try:
            grant, token = await self._grants.find_by_access_token(client.project_id, text)
        except OAuthError:
            return {"active": False}
        if grant.client_id not in {client.client_id, *client.introspects}:
            return {"active": False}
        holder = await self._clients.find(grant.project_id, grant.client_id)
        if holder is None:
            return {"active": False}
        shown = self._shown(client, grant, holder, token.scopes, token.expires_at_s)
        return {**shown, "token_type": "Bearer"}

    def _shown(
        self,
        asks: Client,
        grant: Grant,
        holder: Client,
        scopes: tuple[str, ...],
        expires_at_s: int,
    ) -> dict[str, object]:
        """What the client that `asks` is told of a token that `holder` got: of the scopes those that it may
        still have. Which other APIs the token is for is not its concern."""
        return {
            "active": True,
            "scope": " ".join(narrowed(scopes, None, holder.scopes)),
            "client_id": grant.client_id,
            "sub": grant.subject,
            "iss": self._issuers.url(grant.project_id),
            "aud": asks.client_id,
            "exp": expires_at_s,
        }

    async def _grant_of(self, client: Client, text: str) -> Grant | None:
        """The grant of a token of this client, valid or not."""
        token = self._references.read_refresh_token(
            client.project_id, text
        ) or self._references.read_access_token(client.project_id, text)
        if token is None:
            return None
        grant = await self._grants.find(client.project_id, token.grant_id)
        return grant if grant is not None and grant.client_id == client.client_id else None

    def _code_request(self, client: Client, parameters: Parameters) -> CodeRequest:
        verifier = read_verifier(parameters)
        grant_id = self._references.read_code(client.project_id, parameters.required("code"))
        if grant_id is None:
            raise invalid_grant("the code is not valid for this client")
        return CodeRequest(
            project_id=client.project_id,
            client_id=client.client_id,
            grant_id=grant_id,
            redirect_uri=parameters.get("redirect_uri"),
            verifier=verifier,
        )

    def _refresh_request(self, client: Client, parameters: Parameters) -> RefreshRequest:
        token = self._references.read_refresh_token(
            client.project_id, parameters.required("refresh_token")
        )
        if token is None:
            raise invalid_grant("the refresh token is not valid for this client")
        return RefreshRequest(
            project_id=client.project_id,
            client_id=client.client_id,
            grant_id=token.grant_id,
            number=token.number,
            scopes=parameters.words("scope") or None,
            must_prove=client.must_prove,
            may_have=client.scopes,
        )
