"""Reads logout requests."""

from dataclasses import dataclass

from msgsvc_oidc.clients.service import Clients
from msgsvc_oidc.issuers import Issuers
from msgsvc_oidc.keys.service import SigningKeys
from msgsvc_oidc.protocol.clients import Client
from msgsvc_oidc.protocol.id_token_hint import read_hint
from msgsvc_oidc.protocol.logout import LogoutRequest, check_return, read_logout
from msgsvc_oidc.protocol.parameters import Parameters


@dataclass(frozen=True, slots=True)
class AskedLogout:
    """A valid request, and the client that sent the browser; None if it does not say which."""

    request: LogoutRequest
    client: Client | None


class LogoutReader:
    """Verifies ID tokens that come as hints, and where a browser may go afterwards."""

    def __init__(self, *, issuers: Issuers, clients: Clients, keys: SigningKeys) -> None:
        self._issuers = issuers
        self._clients = clients
        self._keys = keys

    async def read(self, project_id: str, parameters: Parameters) -> AskedLogout:
        """Raises `UnusableRequest`, and `OAuthError` for a parameter that came twice."""
        parameters.check_single()
        token, hint = parameters.get("id_token_hint"), None
        if token is not None:
            keys = await self._keys.public_keys()
            hint = read_hint(token, keys, self._issuers.url(project_id))
        request = read_logout(parameters, hint)
        client = None
        if request.client_id is not None:
            client = await self._clients.find(project_id, request.client_id)
        check_return(request, client)
        return AskedLogout(request, client)
