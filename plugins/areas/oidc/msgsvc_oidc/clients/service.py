"""Registers clients, and authenticates them."""

import hmac
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from msgsvc_core.db import Database, DataLoader, Tx
from msgsvc_core.kernel.clock import HOUR_MS, Clock
from msgsvc_core.kernel.errors import Conflict, InvalidUrl, NotFound, ValidationFailed
from msgsvc_core.kernel.ids import new_id, new_token
from msgsvc_core.kernel.json import to_json
from msgsvc_core.security import digest
from msgsvc_core.security.guard import ForbiddenTarget, OutboundGuard
from msgsvc_oidc.brief_cache import BriefCache
from msgsvc_oidc.clients import store
from msgsvc_oidc.clients.models import (
    MAX_JWKS_LENGTH,
    MAX_SECRETS,
    ClientQuery,
    CreateOidcClientBody,
    NewClient,
    SecretQuery,
    UpdateOidcClientBody,
    as_tuple,
)
from msgsvc_oidc.clients.remote_keys import RemoteKeys
from msgsvc_oidc.protocol.client_authentication import (
    Credentials,
    check_credentials,
    names_unknown_key,
)
from msgsvc_oidc.protocol.clients import CIBA, Client, ClientSecret
from msgsvc_oidc.protocol.errors import OAuthError, invalid_client, invalid_token
from msgsvc_oidc.protocol.keys import is_signing_key
from msgsvc_oidc.protocol.redirects import redirect_problem
from msgsvc_oidc.settings import OidcSettings

#: Before a secret, so that scanners of repositories can find one.
SECRET_PREFIX = "mos_"  # noqa: S105 - no secret, the start of every one

#: Bits of a secret.
SECRET_BITS = 256

#: Parts of a JWK that only a private one has.
_PRIVATE_PARTS = frozenset({"d", "p", "q", "dp", "dq", "qi", "k"})


class Clients:
    """Clients of all projects."""

    def __init__(
        self, *, clock: Clock, db: Database, settings: OidcSettings, remote_keys: RemoteKeys
    ) -> None:
        self._clock = clock
        self._db = db
        self._settings = settings
        self._remote_keys = remote_keys
        self._known = BriefCache(clock, DataLoader(db, store.find_clients).get)

    async def create(
        self,
        tx: Tx,
        project_id: str,
        body: CreateOidcClientBody,
        *,
        dynamic: bool = False,
        registration_digest: str | None = None,
    ) -> NewClient:
        """Registers a client. Raises `ValidationFailed`, `InvalidUrl`, and `Conflict` at the limit."""
        client = Client(
            project_id=project_id,
            client_id=new_id("app"),
            name=body.name,
            redirect_uris=as_tuple(body.redirect_uris),
            post_logout_redirect_uris=as_tuple(body.post_logout_redirect_uris),
            backchannel_logout_uri=body.backchannel_logout_uri,
            auth_method=body.token_endpoint_auth_method,
            jwks=body.jwks,
            jwks_uri=body.jwks_uri,
            grant_types=as_tuple(body.grant_types),
            scopes=as_tuple(body.scopes),
            first_party=body.first_party,
            number_matching=body.number_matching,
            must_prove=as_tuple(body.must_prove),
            require_pushed=body.require_pushed,
            claims_in_id_token=body.claims_in_id_token,
            introspects=as_tuple(body.introspects),
            subject_type=body.subject_type,
            signing_alg=body.id_token_signed_response_alg or self._settings.signing_alg,
            home_url=body.home_url,
            dynamic=dynamic,
            created_at_ms=self._clock.now_ms(),
        )
        if body.jwks is not None and body.jwks_uri is not None:
            raise _two_sources()
        self._check(client)
        await _lock_clients(tx, project_id)
        await _check_introspects(tx, client, ())
        if await store.count_clients(tx, project_id) >= self._settings.max_clients:
            raise Conflict("a project has at most {limit}", limit=self._settings.max_clients)
        await store.insert_client(tx, client, registration_digest=registration_digest)
        if client.jwks_uri is not None:
            await self._remote_keys.ask(tx, client)
        if not client.has_secret:
            return NewClient(client, None)
        _, secret = await self._add_secret(tx, client.row)
        return NewClient(client, secret)

    async def get_registered(
        self, tx: Tx, project_id: str, client_id: str, access_token: str
    ) -> Client:
        """A client that registered itself and manages its registration. Raises `OAuthError`, the same for an
        unknown client (RFC 7592, section 2.1)."""
        expected = await store.find_registration_digest(tx, project_id, client_id)
        client = await store.find_client(tx, project_id, client_id)
        offered = digest(access_token)
        if client is None or expected is None or not hmac.compare_digest(offered, expected):
            raise invalid_token("the registration access token is not valid for this client")
        return client

    async def page(self, tx: Tx, project_id: str, query: ClientQuery) -> list[Client]:
        """Newest first; one more than `query.limit` where there is, so that the caller sees it."""
        return await store.list_clients(tx, project_id, query.begin("app"), query.fetch_limit)

    async def list_all(self, tx: Tx, project_id: str) -> list[Client]:
        """All clients of a project, newest first."""
        return await store.list_clients(tx, project_id, None, self._settings.max_clients)

    async def get(self, tx: Tx, project_id: str, client_id: str) -> Client:
        """Raises `NotFound`."""
        client = await store.find_client(tx, project_id, client_id)
        if client is None:
            raise _missing(client_id)
        return client

    async def find(self, project_id: str, client_id: str) -> Client | None:
        """A client, looked up together with those of other requests."""
        found = await self._known.get((project_id, client_id))
        return None if found is None else found[0]

    async def change(
        self, tx: Tx, project_id: str, client_id: str, body: UpdateOidcClientBody
    ) -> Client:
        """Raises `NotFound`, `ValidationFailed`, `InvalidUrl`."""
        await _lock_clients(tx, project_id)
        await store.lock_client(tx, (project_id, client_id))
        client = await self.get(tx, project_id, client_id)
        changes: dict[str, Any] = {
            name: as_tuple(value) if isinstance(value, list) else value
            for name, value in body.model_dump(exclude_unset=True).items()
        }
        _set_auth_method(client, changes)
        moves = _set_key_source(client, changes)
        changed = replace(client, **changes)
        self._check(changed)
        await _check_introspects(tx, changed, client.introspects)
        if client.subject_type == "pairwise" and changed.sector != client.sector:
            # Every person would be another one to the client.
            raise ValidationFailed(
                "must keep the host of a pairwise client, for `sub` is of it", field="redirect_uris"
            )
        if not await store.update_client(tx, changed):
            raise _missing(client_id)
        if moves:
            await self._remote_keys.ask(tx, changed)
        tx.on_commit(self._known.clear)
        return changed

    async def delete(self, tx: Tx, project_id: str, client_id: str) -> None:
        """Deletes a client with its grants and consents. Raises `NotFound`."""
        await _lock_clients(tx, project_id)
        if not await store.delete_client(tx, project_id, client_id):
            raise _missing(client_id)
        for each in await store.list_introspecting(tx, project_id):
            if client_id in each.introspects:
                others = [other for other in each.introspects if other != client_id]
                await store.set_introspects(tx, each.row, others)
        tx.on_commit(self._known.clear)

    async def secrets(self, tx: Tx, client: Client) -> Sequence[ClientSecret]:
        """The valid secrets, newest first."""
        return await store.list_secrets(tx, *client.row, now_ms=self._clock.now_ms())

    async def secrets_page(self, tx: Tx, client: Client, query: SecretQuery) -> list[ClientSecret]:
        """The valid secrets of a page, newest first: at most `MAX_SECRETS`."""
        found = await self.secrets(tx, client)
        after = query.begin("sec")
        return [each for each in found if after is None or each.secret_id < after]

    async def rotate_secret(self, tx: Tx, client: Client) -> tuple[ClientSecret, str, int | None]:
        """A new secret; returns it, its text, and when the previous one ends. Older ones end now.

        Raises `Conflict` for a client that has no secret by its authentication.
        """
        if not client.has_secret:
            raise Conflict("this client authenticates without a secret")
        # Of two rotations at once the later one sees the secret of the first.
        await store.lock_client(tx, client.row)
        before = await self.secrets(tx, client)
        made, secret = await self._add_secret(tx, client.row)
        ends_at_ms = self._clock.now_ms() + self._settings.secret_overlap_hours * HOUR_MS
        kept = [made.secret_id, *[each.secret_id for each in before[: MAX_SECRETS - 1]]]
        await store.delete_secrets(tx, client.row, keeps=kept)
        await store.expire_secrets(tx, client.row, keeps=made.secret_id, at_ms=ends_at_ms)
        return made, secret, ends_at_ms if before else None

    async def delete_secret(self, tx: Tx, client: Client, secret_id: str) -> None:
        """Raises `NotFound`, and `Conflict` for the only one."""
        await store.lock_client(tx, client.row)
        valid = await self.secrets(tx, client)
        if [each.secret_id for each in valid] == [secret_id]:
            raise Conflict("the only secret can't be deleted; make another one first")
        if not await store.delete_secret(tx, client.row, secret_id):
            raise NotFound("there is no secret {secret_id!r}", secret_id=secret_id)
        tx.on_commit(self._known.clear)

    async def authenticate(
        self, project_id: str, given: Credentials, audiences: Collection[str]
    ) -> Client:
        """The client of a request. Raises `OAuthError`."""
        found = await self._known.get((project_id, given.client_id))
        if found is None:
            raise invalid_client("the client is not known", basic=given.way == "basic")
        client, secrets = found
        try:
            used = check_credentials(
                client, secrets, given, now_ms=self._clock.now_ms(), audiences=audiences
            )
        except OAuthError:
            await self._ask_for_keys(client, given)
            raise
        if used is not None:
            async with self._db.transaction() as tx:
                if not await store.use_assertion(
                    tx, client.row, used.assertion_id, used.expires_at_ms
                ):
                    raise invalid_client("the client assertion was used before")
        return client

    async def _ask_for_keys(self, client: Client, given: Credentials) -> None:
        """Has the keys of a client fetched for its next request, if this one is signed by an unknown one."""
        assertion = given.assertion
        if assertion is None or not names_unknown_key(client, assertion):
            return
        if self._remote_keys.may_ask(client):
            async with self._db.transaction() as tx:
                await self._remote_keys.ask(tx, client)
            self._known.clear()

    def redirect_problem(self, client: Client, uri: str) -> str | None:
        """What is wrong with a redirect URI of a client; None if it can be registered."""
        return redirect_problem(
            uri, public=client.is_public, allow_http=self._settings.allow_http_redirects
        )

    async def _add_secret(self, tx: Tx, key: store.Key) -> tuple[ClientSecret, str]:
        secret = SECRET_PREFIX + new_token(SECRET_BITS)
        made = ClientSecret(
            secret_id=new_id("sec"),
            digest=digest(secret),
            created_at_ms=self._clock.now_ms(),
            expires_at_ms=None,
        )
        await store.insert_secret(tx, key, made)
        tx.on_commit(self._known.clear)
        return made, secret

    def _check(self, client: Client) -> None:
        for field in ("redirect_uris", "post_logout_redirect_uris"):
            for number, uri in enumerate(getattr(client, field)):
                problem = self.redirect_problem(client, uri)
                if problem is not None:
                    raise InvalidUrl(problem, field=f"{field}[{number}]")
        self._check_urls(client)
        _check_flows(client)
        if client.subject_type == "pairwise" and len(client.sectors) > 1:
            raise ValidationFailed(
                "must have one host for a pairwise client", field="redirect_uris"
            )
        if "openid" not in client.scopes:
            raise ValidationFailed("must hold openid", field="scopes")
        has_keys = client.jwks is not None or client.jwks_uri is not None
        if has_keys != (client.auth_method == "private_key_jwt"):
            raise ValidationFailed("goes with private_key_jwt, and only with it", field="jwks")
        if client.jwks is not None and client.jwks_uri is None:
            _check_jwks(client.jwks)

    def _check_urls(self, client: Client) -> None:
        if client.home_url is not None:
            problem = self._web_problem(client.home_url)
            if problem is not None:
                raise InvalidUrl(problem, field="home_url")
        if client.backchannel_logout_uri is not None:
            self._check_called(client.backchannel_logout_uri, "backchannel_logout_uri")
        if client.jwks_uri is not None:
            self._check_called(client.jwks_uri, "jwks_uri")

    def _check_called(self, uri: str, field: str) -> None:
        """A URL that the provider calls itself."""
        allow_http = self._settings.allow_http_logout
        problem = redirect_problem(uri, public=False, allow_http=allow_http)
        if problem is not None:
            raise InvalidUrl(problem, field=field)
        try:
            OutboundGuard(self._settings.allow_cidrs, allow_http).check_url(uri)
        except ForbiddenTarget as refusal:
            raise InvalidUrl.because(refusal, field=field) from None

    def _web_problem(self, uri: str) -> str | None:
        return redirect_problem(uri, public=False, allow_http=self._settings.allow_http_redirects)


def _check_flows(client: Client) -> None:
    if "authorization_code" in client.grant_types and not client.redirect_uris:
        raise ValidationFailed("must hold one for this flow", field="redirect_uris")
    if CIBA in client.grant_types and client.is_public:
        raise ValidationFailed("CIBA needs a client that authenticates", field="grant_types")
    if client.is_public and not client.grant_types:
        raise ValidationFailed(
            "must hold one for a client that does not authenticate", field="grant_types"
        )
    if client.is_public and client.introspects:
        raise ValidationFailed("needs a client that authenticates", field="introspects")


async def _lock_clients(tx: Tx, project_id: str) -> None:
    """Has other changes of which clients there are wait until the transaction ends."""
    await tx.lock(f"oidc.clients of {project_id}")


async def _check_introspects(tx: Tx, client: Client, before: Collection[str]) -> None:
    """Each that is new has to be another client of the project."""
    added = [each for each in client.introspects if each not in before]
    known = await store.existing_clients(tx, client.project_id, added) if added else set()
    for number, each in enumerate(client.introspects):
        if each in added and (each not in known or each == client.client_id):
            raise ValidationFailed(
                "must be another client of the project", field=f"introspects[{number}]"
            )


def _set_auth_method(client: Client, changes: dict[str, Any]) -> None:
    """A secret may come in the other way from now on; a client without one stays without."""
    method = changes.pop("token_endpoint_auth_method", None)
    if method is None or method == client.auth_method:
        return
    if not client.has_secret:
        raise ValidationFailed(
            "can only be changed for a client with a secret", field="token_endpoint_auth_method"
        )
    changes["auth_method"] = method


def _set_key_source(client: Client, changes: dict[str, Any]) -> bool:
    """Completes changes of where a client's keys come from; returns whether they have to be fetched."""
    if "jwks" in changes and "jwks_uri" in changes:
        raise _two_sources()
    if "jwks" in changes:
        changes["jwks_uri"] = None
        return False
    moves = changes.get("jwks_uri", client.jwks_uri) != client.jwks_uri
    if moves:
        changes["jwks"] = None
    return moves


def _two_sources() -> ValidationFailed:
    """RFC 7591, section 2."""
    return ValidationFailed("goes without jwks_uri", field="jwks")


def _check_jwks(jwks: Mapping[str, Any]) -> None:
    keys = jwks.get("keys")
    if not isinstance(keys, list) or not keys or not all(isinstance(key, dict) for key in keys):
        raise ValidationFailed("must be a JWK Set", field="jwks")
    if any(_PRIVATE_PARTS & key.keys() for key in keys):
        raise ValidationFailed("must hold public keys only", field="jwks")
    if not all(map(is_signing_key, keys)):
        raise ValidationFailed(
            "must hold keys for RS256, PS256, ES256 or EdDSA, RSA of at least 2048 bits",
            field="jwks",
        )
    if len(to_json(dict(jwks))) > MAX_JWKS_LENGTH:
        raise ValidationFailed(
            "must be at most {limit} characters", limit=MAX_JWKS_LENGTH, field="jwks"
        )


def _missing(client_id: str) -> NotFound:
    return NotFound("there is no client {client_id!r}", client_id=client_id)
