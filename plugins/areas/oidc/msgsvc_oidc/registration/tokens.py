"""Initial access tokens: who has one may register clients of the project."""

from collections.abc import Sequence

from msgsvc_core.db import Tx
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import Conflict, NotFound
from msgsvc_core.kernel.ids import new_id, new_token
from msgsvc_core.security import digest
from msgsvc_oidc.protocol.errors import invalid_token
from msgsvc_oidc.registration import store
from msgsvc_oidc.registration.models import (
    CreateRegistrationTokenBody,
    RegistrationToken,
    RegistrationTokenQuery,
)

#: Before a token, so that scanners of repositories can find one.
PREFIX = "moi_"

#: Bits of a token.
TOKEN_BITS = 256

#: Tokens of a project.
MAX_TOKENS = 100


class RegistrationTokens:
    """Makes, lists, revokes and uses them. `is_on` says whether the operator allows registration."""

    def __init__(self, *, clock: Clock, is_on: bool) -> None:
        self._clock = clock
        self._is_on = is_on

    async def create(
        self, tx: Tx, project_id: str, body: CreateRegistrationTokenBody
    ) -> tuple[RegistrationToken, str]:
        """A new token, and its text, which can't be read again. Raises `Conflict` at the limit, and where
        registration is off."""
        if not self._is_on:
            raise Conflict("the setting oidc.registration is off")
        await tx.lock(f"oidc.registration_tokens of {project_id}")
        if await store.count_tokens(tx, project_id) >= MAX_TOKENS:
            raise Conflict("a project has at most {limit}", limit=MAX_TOKENS)
        text, now_ms = PREFIX + new_token(TOKEN_BITS), self._clock.now_ms()
        token = RegistrationToken(
            project_id=project_id,
            token_id=new_id("ort"),
            name=body.name,
            digest=digest(text),
            uses_left=body.max_uses,
            expires_at_ms=None if body.expires_in is None else now_ms + body.expires_in * 1000,
            created_at_ms=now_ms,
        )
        await store.insert_token(tx, token)
        return token, text

    async def page(
        self, tx: Tx, project_id: str, query: RegistrationTokenQuery
    ) -> Sequence[RegistrationToken]:
        """Newest first; one more than `query.limit` where there is, so that the caller sees it."""
        return await store.list_tokens(tx, project_id, query.begin("ort"), query.fetch_limit)

    async def revoke(self, tx: Tx, project_id: str, token_id: str) -> None:
        """Clients that it has registered stay. Raises `NotFound`."""
        if not await store.delete_token(tx, project_id, token_id):
            raise NotFound("there is no token {token_id!r}", token_id=token_id)

    async def use(self, tx: Tx, project_id: str, text: str) -> None:
        """Takes one of its uses, in the transaction that registers the client: a request that is refused
        costs none. Raises `OAuthError`."""
        now_ms = self._clock.now_ms()
        if await store.use_token(tx, project_id, digest(text), now_ms=now_ms) is None:
            raise invalid_token("the initial access token is not valid, expired, or used up")
