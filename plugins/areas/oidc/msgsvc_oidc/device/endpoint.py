"""The device authorization endpoint (RFC 8628, section 3.1)."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from msgsvc_core.db import Database
from msgsvc_oidc.device.models import StartedDevice
from msgsvc_oidc.device.service import DeviceRequests
from msgsvc_oidc.endpoints.client_access import ClientAccess, RequestLimit
from msgsvc_oidc.endpoints.responses import endpoint, json_response, posted
from msgsvc_oidc.issuers import Issuers
from msgsvc_oidc.journal.service import SignInJournal
from msgsvc_oidc.protocol.authentication import ACR_VALUES
from msgsvc_oidc.protocol.client_authentication import check_grant_type
from msgsvc_oidc.protocol.clients import DEVICE_CODE, Client
from msgsvc_oidc.protocol.device import device_response
from msgsvc_oidc.protocol.discovery import DEVICE, DEVICE_AUTHORIZATION
from msgsvc_oidc.protocol.errors import OAuthError
from msgsvc_oidc.protocol.parameters import Parameters
from msgsvc_oidc.protocol.polling import requested_scopes


class DeviceEndpoint:
    """POST by clients, authenticated as at the token endpoint; a public one only names itself."""

    def __init__(
        self,
        *,
        db: Database,
        issuers: Issuers,
        access: ClientAccess,
        limit: RequestLimit,
        devices: DeviceRequests,
        journal: SignInJournal,
    ) -> None:
        self._db = db
        self._issuers = issuers
        self._access = access
        self._limit = limit
        self._devices = devices
        self._journal = journal

    def routes(self) -> list[BaseRoute]:
        path = "/oidc/{project_id}" + DEVICE_AUTHORIZATION
        return [Route(path, endpoint(self.authorize), methods=["POST", "OPTIONS"])]

    async def authorize(self, request: Request) -> Response:
        """Codes for a device and its person."""
        parameters = await posted(request)
        client = await self._access.authenticate(request, parameters)
        if client.is_public:
            # Anybody may send its client_id.
            await self._limit.count(request)
        try:
            started = await self._start(client, parameters)
        except OAuthError as error:
            async with self._db.transaction() as tx:
                await self._journal.failed(tx, client, "device", error)
            raise
        body = device_response(
            self._issuers.url(client.project_id) + DEVICE,
            started.device_code,
            started.user_code,
            expires_in_s=started.expires_in_s,
            interval_s=started.interval_s,
        )
        return json_response(body)

    async def _start(self, client: Client, parameters: Parameters) -> StartedDevice:
        check_grant_type(client, DEVICE_CODE)
        scopes = requested_scopes(parameters, client)
        wanted = [each for each in parameters.words("acr_values") if each in ACR_VALUES]
        return await self._devices.start(client, scopes, tuple(wanted))
