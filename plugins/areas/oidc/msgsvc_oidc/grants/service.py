"""Issues grants, and answers codes and refresh tokens with tokens."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from msgsvc_core.channels import Identity
from msgsvc_core.db import Database, DataLoader, TransactionBatcher, Tx
from msgsvc_core.kernel.clock import DAY_MS, Clock
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.plugins.sign_ins import SignInMethod
from msgsvc_oidc.grants import store
from msgsvc_oidc.grants.references import AccessToken, References, RefreshToken
from msgsvc_oidc.keys.service import SigningKeys
from msgsvc_oidc.people import People
from msgsvc_oidc.protocol.authorize import AuthorizationRequest, Session
from msgsvc_oidc.protocol.clients import Client
from msgsvc_oidc.protocol.errors import OAuthError, invalid_grant, invalid_token
from msgsvc_oidc.protocol.scopes import claims_of, tells_of_person
from msgsvc_oidc.protocol.token import (
    CodeRequest,
    Grant,
    RefreshRequest,
    Replayed,
    check_code,
    check_code_request,
    check_refresh,
    id_token_claims,
    narrowed,
)
from msgsvc_oidc.settings import OidcSettings

#: Why a grant was revoked.
REUSED, BY_CLIENT, BY_PERSON, SIGNED_OUT = "reused", "by_client", "by_person", "signed_out"


@dataclass(frozen=True, slots=True)
class Tokens:
    """The response of the token endpoint (RFC 6749, section 5.1)."""

    access_token: str
    expires_in_s: int
    scopes: tuple[str, ...]
    id_token: str | None
    refresh_token: str | None

    def body(self) -> dict[str, object]:
        """As JSON."""
        found: dict[str, object] = {
            "access_token": self.access_token,
            "token_type": "Bearer",
            "expires_in": self.expires_in_s,
            "scope": " ".join(self.scopes),
        }
        if self.id_token is not None:
            found["id_token"] = self.id_token
        if self.refresh_token is not None:
            found["refresh_token"] = self.refresh_token
        return found


class Grants:
    """Grants with their codes and tokens. Those of concurrent requests are changed in one transaction."""

    def __init__(
        self,
        *,
        clock: Clock,
        db: Database,
        settings: OidcSettings,
        references: References,
        keys: SigningKeys,
        people: People,
    ) -> None:
        self._clock = clock
        self._settings = settings
        self._references = references
        self._keys = keys
        self._people = people
        self._loader = DataLoader(db, store.find_grants)
        # Inline: a thread would wait for the interpreter while tokens are signed.
        self._codes = TransactionBatcher(db, self._use_codes, inline=True)
        self._refreshes = TransactionBatcher(db, self._rotate, inline=True)

    async def issue_code(
        self, tx: Tx, client: Client, request: AuthorizationRequest, session: Session
    ) -> str:
        """A code for what the person agreed to."""
        now_ms = self._clock.now_ms()
        code_expires_at_ms = now_ms + self._settings.code_lifetime_s * 1000
        grant = Grant(
            project_id=client.project_id,
            grant_id=new_id("gra"),
            client_id=client.client_id,
            subscriber_id=session.subscriber_id,
            subject=await self.subject_of(tx, client, session.subscriber_id),
            scopes=request.scopes,
            auth_time_ms=session.auth_time_ms,
            method=session.method,
            proves=session.proves,
            session_id=session.session_id,
            nonce=request.nonce,
            redirect_uri=request.redirect_uri,
            code_challenge=request.code_challenge,
            code_expires_at_ms=code_expires_at_ms,
            created_at_ms=now_ms,
        )
        # Known from the start, so that the exchange of a code touches no index.
        await store.insert_grant(tx, grant, code_expires_at_ms + self._lifetime_ms(grant))
        return self._references.code(client.project_id, grant.grant_id)

    async def issue(
        self,
        tx: Tx,
        client: Client,
        *,
        subscriber_id: str,
        scopes: tuple[str, ...],
        auth_time_ms: int,
        method: SignInMethod,
        proves: Identity | None,
    ) -> Grant:
        """A grant without a code: its tokens are issued at once."""
        now_ms = self._clock.now_ms()
        offline = "offline_access" in scopes
        refresh_until_ms = now_ms + self._settings.refresh_idle_days * DAY_MS
        access_until_ms = now_ms + self._settings.access_token_lifetime_s * 1000
        grant = Grant(
            project_id=client.project_id,
            grant_id=new_id("gra"),
            client_id=client.client_id,
            subscriber_id=subscriber_id,
            subject=await self.subject_of(tx, client, subscriber_id),
            scopes=scopes,
            auth_time_ms=auth_time_ms,
            method=method,
            proves=proves,
            refresh_number=1 if offline else 0,
            refresh_expires_at_ms=refresh_until_ms if offline else None,
            created_at_ms=now_ms,
        )
        await store.insert_grant(tx, grant, refresh_until_ms if offline else access_until_ms)
        return grant

    async def subject_of(self, tx: Tx, client: Client, subscriber_id: str) -> str:
        """The `sub` of a person for a client: the subscriber's id, or one of the client's host alone."""
        if client.subject_type == "public":
            return subscriber_id
        project_id, sector = client.project_id, client.sector
        await store.insert_subject(tx, project_id, sector, subscriber_id, new_id("sub"))
        found = await store.find_subject(tx, project_id, sector, subscriber_id)
        assert found is not None
        return found

    async def subscriber_of(self, tx: Tx, client: Client, subject: str) -> str | None:
        """The subscriber whom a client knows by a `sub`. None for one that it was never told, unless it is
        the subscriber's id: whether that exists is not checked."""
        if client.subject_type == "public":
            return subject
        return await store.find_subscriber(tx, client.project_id, client.sector, subject)

    async def exchange_code(self, request: CodeRequest) -> Grant:
        """The grant of a code, once. Raises `OAuthError`."""
        return await self._codes.submit(request)

    async def refresh(self, request: RefreshRequest) -> Grant:
        """The grant of a refresh token, with the number of the next one. Raises `OAuthError`."""
        return await self._refreshes.submit(request)

    async def tokens(
        self, client: Client, grant: Grant, issuer: str, scopes: tuple[str, ...] | None = None
    ) -> Tokens:
        """New tokens of a grant, for the scopes that a refresh asks for or all. Raises `OAuthError` for a
        person who was erased meanwhile."""
        now_ms, lifetime_s = self._clock.now_ms(), self._settings.access_token_lifetime_s
        allowed = narrowed(grant.scopes, scopes, client.scopes)
        access_token = self._references.access_token(
            grant.project_id, AccessToken(grant.grant_id, now_ms // 1000 + lifetime_s, allowed)
        )
        claims = id_token_claims(
            grant,
            issuer=issuer,
            now_ms=now_ms,
            lifetime_s=self._settings.id_token_lifetime_s,
            access_token=access_token,
            alg=client.signing_alg,
            person=await self._claims(client, grant, allowed),
        )
        refresh_token = None
        if grant.refresh_number:
            refresh_token = self._references.refresh_token(
                grant.project_id, RefreshToken(grant.grant_id, grant.refresh_number)
            )
        id_token = await self._keys.sign(claims, client.signing_alg)
        return Tokens(access_token, lifetime_s, allowed, id_token, refresh_token)

    async def _claims(
        self, client: Client, grant: Grant, scopes: tuple[str, ...]
    ) -> Mapping[str, object]:
        """What an ID token tells of the person. Section 5.4 of OpenID Connect Core 1.0 has these claims in
        `userinfo`; most software looks for them in the ID token, where they are allowed as well."""
        if not (client.claims_in_id_token and tells_of_person(scopes)):
            return {}
        person = await self._people.find(grant)
        if person is None:
            raise invalid_grant("the person is no longer known")
        return claims_of(person, grant.subject, scopes)

    async def find_by_access_token(self, project_id: str, text: str) -> tuple[Grant, AccessToken]:
        """Raises `OAuthError` unless it is valid now."""
        token = self._references.read_access_token(project_id, text)
        if token is None:
            raise invalid_token("the access token is not valid")
        if self._clock.now_ms() >= token.expires_at_s * 1000:
            raise invalid_token("the access token has expired")
        grant = await self._loader.get((project_id, token.grant_id))
        if grant is None or grant.revoked_at_ms is not None:
            raise invalid_token("the access token was revoked")
        return grant, token

    async def find(self, project_id: str, grant_id: str) -> Grant | None:
        """A grant by its id."""
        return await self._loader.get((project_id, grant_id))

    async def find_refreshable(self, project_id: str, token: RefreshToken) -> Grant | None:
        """The grant of a refresh token that could be used now."""
        grant = await self.find(project_id, token.grant_id)
        if grant is None or grant.revoked_at_ms is not None:
            return None
        is_current = token.number == grant.refresh_number
        lives = self._clock.now_ms() < (grant.refresh_expires_at_ms or 0)
        return grant if is_current and lives else None

    async def revoke(self, tx: Tx, grant: Grant, reason: str) -> None:
        """Ends a grant with all its tokens."""
        keys = [(grant.project_id, grant.grant_id)]
        await store.revoke(tx, keys, reason, now_ms=self._clock.now_ms())

    async def revoke_of_person(
        self, tx: Tx, project_id: str, client_id: str, subscriber_id: str, reason: str
    ) -> None:
        """Ends all grants of a person for a client."""
        now_ms = self._clock.now_ms()
        await store.revoke_of_person(
            tx, project_id, client_id, subscriber_id, reason, now_ms=now_ms
        )

    def _lifetime_ms(self, grant: Grant) -> int:
        """For how long the first tokens of a grant are valid."""
        if grant.is_offline:
            return self._settings.refresh_idle_days * DAY_MS
        return self._settings.access_token_lifetime_s * 1000

    async def revoke_of_session(self, tx: Tx, project_id: str, session_id: str) -> None:
        """Ends the grants of a browser's session, but for those that a client uses offline."""
        now_ms = self._clock.now_ms()
        await store.revoke_of_session(tx, project_id, session_id, SIGNED_OUT, now_ms=now_ms)

    async def delete_of_person(self, tx: Tx, project_id: str, subscriber_id: str) -> None:
        """Deletes all grants of a person who is erased."""
        await store.delete_of_person(tx, project_id, subscriber_id)

    async def _use_codes(self, tx: Tx, requests: Sequence[CodeRequest]) -> list[Grant | Exception]:
        # In one order, so that two processes don't wait for each other's rows.
        keys = sorted({(each.project_id, each.grant_id) for each in requests})
        now_ms = self._clock.now_ms()
        # Marked first and looked at then: nearly all are exchanged, by one statement.
        used = await store.use_codes(
            tx,
            keys,
            now_ms=now_ms,
            refresh_until_ms=now_ms + self._settings.refresh_idle_days * DAY_MS,
        )
        others = [key for key in keys if key not in used]
        found = await store.find_grants(tx, others) if others else {}
        taken: set[store.Key] = set()
        replayed: set[store.Key] = set()
        outcomes: list[Grant | Exception] = []
        for request in requests:
            key = (request.project_id, request.grant_id)
            verdict = _judged_code(used.get(key), found.get(key), request, now_ms)
            if isinstance(verdict, Replayed) or (isinstance(verdict, Grant) and key in taken):
                replayed.add(key)
                verdict = invalid_grant("the code was used before; its tokens are revoked")
            elif isinstance(verdict, Grant):
                taken.add(key)
            outcomes.append(verdict)
        # A code that only others presented is still its client's.
        if untaken := sorted(used.keys() - taken):
            await store.release_codes(tx, untaken)
        await self._revoke_replayed(tx, replayed)
        return outcomes

    async def _rotate(self, tx: Tx, requests: Sequence[RefreshRequest]) -> list[Grant | Exception]:
        keys = sorted({(each.project_id, each.grant_id) for each in requests})
        now_ms, reuse_ms = self._clock.now_ms(), self._settings.refresh_reuse_s * 1000
        found = await store.find_grants(tx, keys)
        results: list[Grant | Exception] = []
        turning: set[tuple[str, str, str]] = set()
        for each in requests:
            verdict, turns = _judged_refresh(found, each, now_ms, reuse_ms)
            results.append(verdict)
            if turns:
                turning.add((each.project_id, each.grant_id, str(each.number)))
        rotated: dict[store.Key, Grant] = {}
        if turning:
            rotated = await store.rotate(
                tx,
                sorted(turning),
                now_ms=now_ms,
                idle_ms=self._settings.refresh_idle_days * DAY_MS,
                most_ms=self._settings.refresh_days * DAY_MS,
            )
        return await self._settle_refreshes(tx, requests, results, rotated)

    async def _settle_refreshes(
        self,
        tx: Tx,
        requests: Sequence[RefreshRequest],
        results: Sequence[Grant | Exception],
        rotated: Mapping[store.Key, Grant],
    ) -> list[Grant | Exception]:
        """The first request with a token has the next one; the others are repetitions of it."""
        outcomes: list[Grant | Exception] = []
        replayed: set[store.Key] = set()
        taken: set[store.Key] = set()
        for request, verdict in zip(requests, results, strict=True):
            key = (request.project_id, request.grant_id)
            if isinstance(verdict, Replayed):
                replayed.add(key)
                outcomes.append(_reused())
            elif isinstance(verdict, Exception) or request.number != verdict.refresh_number:
                outcomes.append(verdict)
            elif key in rotated and (key not in taken or self._settings.refresh_reuse_s):
                taken.add(key)
                outcomes.append(rotated[key])
            elif key not in rotated and self._settings.refresh_reuse_s:
                # Another process rotated it just now: this is a repetition.
                outcomes.append(await self._successor(tx, key))
            else:
                replayed.add(key)
                outcomes.append(_reused())
        await self._revoke_replayed(tx, replayed)
        return outcomes

    async def _successor(self, tx: Tx, key: store.Key) -> Grant | Exception:
        grant = (await store.find_grants(tx, [key])).get(key)
        if grant is None or grant.revoked_at_ms is not None:
            return invalid_grant("the refresh token was revoked")
        return grant

    async def _revoke_replayed(self, tx: Tx, keys: set[store.Key]) -> None:
        if keys:
            await store.revoke(tx, sorted(keys), REUSED, now_ms=self._clock.now_ms())


def _key(grant: Grant) -> store.Key:
    return grant.project_id, grant.grant_id


def _judged_code(
    used: Grant | None, found: Grant | None, request: CodeRequest, now_ms: int
) -> Grant | Exception:
    """The grant that was just marked as `used`, or was `found` in another state, if the request is for it."""
    try:
        if used is None:
            return check_code(found, request, now_ms)
        check_code_request(used, request)
    except (OAuthError, Replayed) as error:
        return error
    return used


def _judged_refresh(
    found: Mapping[store.Key, Grant], request: RefreshRequest, now_ms: int, reuse_ms: int
) -> tuple[Grant | Exception, bool]:
    grant = found.get((request.project_id, request.grant_id))
    try:
        return check_refresh(grant, request, now_ms, reuse_ms=reuse_ms)
    except (OAuthError, Replayed) as error:
        return error, False


def _reused() -> OAuthError:
    return invalid_grant("the refresh token was used before; the person has to sign in again")
