"""A script with a client, played against a provider, with a person who answers."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from tests.oidc_clients.jwk import ec_jwks
from tests.oidc_clients.programs import converse
from tests.oidc_clients.provider import (
    CODE,
    REFRESH,
    SCOPE,
    AuthMethod,
    ClientSpec,
    Provider,
    RegisteredClient,
)

#: Nobody listens there: the scripts take the URLs that a browser would open.
REDIRECT_URI = "http://127.0.0.1:18080/callback"
AFTER_LOGOUT = "http://127.0.0.1:18080/bye"


@dataclass(slots=True)
class Player:
    """Plays scenarios of one script. The first call registers the client, which the others use again, as
    they do the browser's cookies."""

    provider: Provider
    command: Sequence[str | Path]
    redirect_uri: str = REDIRECT_URI
    cookies: httpx2.Cookies = field(default_factory=httpx2.Cookies)
    _registered: RegisteredClient | None = None
    _private_key: dict[str, str] | None = None

    async def play(
        self,
        scenario: str,
        *,
        auth_method: AuthMethod = "client_secret_basic",
        grant_types: tuple[str, ...] = (CODE, REFRESH),
        yes: bool = True,
        **config: Any,
    ) -> Any:
        """The result of a scenario. `yes` is what the person answers; the rest goes to the script."""
        if self._registered is None:
            self._registered = await self._register(auth_method, grant_types)
        provider = self.provider

        async def sign_in(said: dict[str, Any]) -> str:
            return (await provider.sign_in(said["url"], self.cookies, yes=yes)).url

        async def device(said: dict[str, Any]) -> None:
            uri = said["verification_uri_complete"]
            await provider.answer_device(uri, said["user_code"], yes=yes)

        async def ciba(said: dict[str, Any]) -> None:
            await provider.answer_ciba(said, said["binding_message"], yes=yes)

        return await converse(
            self.command,
            {
                "scenario": scenario,
                "issuer": provider.issuer,
                "client_id": self._registered.client_id,
                "client_secret": self._registered.client_secret,
                "auth_method": auth_method,
                "private_key": self._private_key,
                "redirect_uri": self.redirect_uri,
                "post_logout_redirect_uri": AFTER_LOGOUT,
                "scope": SCOPE,
                "login_hint": provider.hint,
            }
            | config,
            {"sign_in": sign_in, "device": device, "ciba": ciba},
        )

    async def _register(
        self, auth_method: AuthMethod, grant_types: tuple[str, ...]
    ) -> RegisteredClient:
        jwks = None
        if auth_method == "private_key_jwt":
            jwks, self._private_key = ec_jwks()
        return await self.provider.register(
            ClientSpec(
                name="A site",
                redirect_uris=[self.redirect_uri] if CODE in grant_types else [],
                post_logout_redirect_uris=[AFTER_LOGOUT],
                auth_method=auth_method,
                grant_types=grant_types,
                jwks=jwks,
            )
        )
