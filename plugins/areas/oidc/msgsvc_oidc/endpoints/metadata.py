"""Discovery and the signing keys, for clients to fetch and cache."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from msgsvc_core.kernel.i18n import Texts
from msgsvc_oidc.endpoints.responses import endpoint, json_response
from msgsvc_oidc.issuers import Issuers
from msgsvc_oidc.keys.service import SigningKeys
from msgsvc_oidc.protocol.discovery import JWKS, metadata


class MetadataEndpoints:
    """GET of the documents: the same for everybody, from any origin."""

    def __init__(
        self,
        *,
        issuers: Issuers,
        keys: SigningKeys,
        texts: Texts,
        max_age_s: int,
        registers: bool,
    ) -> None:
        self._issuers = issuers
        self._keys = keys
        self._texts = texts
        self._registers = registers
        self._headers = {"Cache-Control": f"public, max-age={max_age_s}"}

    def routes(self) -> list[BaseRoute]:
        issuer = "/oidc/{project_id}"
        document, methods = endpoint(self.document), ["GET", "OPTIONS"]
        return [
            Route(f"{issuer}/.well-known/openid-configuration", document, methods=methods),
            Route(f"{issuer}/.well-known/oauth-authorization-server", document, methods=methods),
            # Where RFC 8414, section 3.1, looks for an issuer with a path.
            Route(f"/.well-known/oauth-authorization-server{issuer}", document, methods=methods),
            Route(f"/.well-known/openid-configuration{issuer}", document, methods=methods),
            Route(f"{issuer}{JWKS}", endpoint(self.key_set), methods=methods),
        ]

    async def document(self, request: Request) -> Response:
        """The provider's metadata (OpenID Connect Discovery 1.0, section 4)."""
        project = await self._issuers.project(request.path_params["project_id"])
        found = metadata(
            self._issuers.url(project.project_id),
            languages=self._texts.spoken,
            registers=self._registers,
        )
        return json_response(found, headers=self._headers)

    async def key_set(self, request: Request) -> Response:
        """The public keys (RFC 7517)."""
        await self._issuers.project(request.path_params["project_id"])
        return json_response(await self._keys.public_set(), headers=self._headers)
