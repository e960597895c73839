"""The registration endpoint, and the one where a client manages its registration (RFC 7591 and 7592)."""

from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from msgsvc_oidc.endpoints.client_access import RequestLimit
from msgsvc_oidc.endpoints.responses import NO_STORE, endpoint, json_response, posted_json
from msgsvc_oidc.issuers import Issuers
from msgsvc_oidc.protocol.discovery import REGISTRATION
from msgsvc_oidc.protocol.registration import registration_body
from msgsvc_oidc.protocol.userinfo import read_bearer
from msgsvc_oidc.registration.service import Registered, Registrations


class RegistrationEndpoints:
    """JSON in and out, by bearer tokens. There are none where registration is off."""

    def __init__(
        self, *, issuers: Issuers, limit: RequestLimit, registrations: Registrations, is_on: bool
    ) -> None:
        self._issuers = issuers
        self._limit = limit
        self._registrations = registrations
        self._is_on = is_on

    def routes(self) -> list[BaseRoute]:
        path = "/oidc/{project_id}" + REGISTRATION
        if not self._is_on:
            return []
        return [
            Route(path, endpoint(self.register), methods=["POST", "OPTIONS"]),
            Route(
                f"{path}/{{client_id}}",
                endpoint(self.manage),
                methods=["GET", "PUT", "DELETE", "OPTIONS"],
            ),
        ]

    async def register(self, request: Request) -> Response:
        """Registers a client, by an initial access token."""
        project_id, token = await self._bearer(request)
        body = await posted_json(request)
        made = await self._registrations.register(project_id, token, body)
        return self._shown(made, HTTPStatus.CREATED)

    async def manage(self, request: Request) -> Response:
        """Shows, changes or deletes a registration, by its registration access token."""
        project_id, token = await self._bearer(request)
        client_id = request.path_params["client_id"]
        if request.method == "DELETE":
            await self._registrations.delete(project_id, client_id, token)
            return Response(status_code=HTTPStatus.NO_CONTENT, headers=NO_STORE)
        if request.method == "PUT":
            body = await posted_json(request)
            changed = await self._registrations.change(project_id, client_id, token, body)
            return self._shown(changed)
        return self._shown(await self._registrations.get(project_id, client_id, token))

    async def _bearer(self, request: Request) -> tuple[str, str]:
        project = await self._issuers.project(request.path_params["project_id"])
        await self._limit.count(request)
        return project.project_id, read_bearer(request.headers.get("authorization"), None)

    def _shown(self, found: Registered, status: int = HTTPStatus.OK) -> Response:
        client = found.client
        body = registration_body(
            client,
            url=f"{self._issuers.url(client.project_id)}{REGISTRATION}/{client.client_id}",
            access_token=found.access_token,
            secret=found.secret,
        )
        return json_response(body, status)
