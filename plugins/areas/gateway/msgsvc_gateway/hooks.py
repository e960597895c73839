"""POST /compat/{sender}/{secret}: where other servers post their messages."""

from typing import Any, get_args

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from msgsvc_core.api.body import check_is_json, read_body
from msgsvc_core.db import Database, Tx
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import ApiError, NotFound
from msgsvc_core.limits import Limiter
from msgsvc_core.projects.service import Projects
from msgsvc_gateway import senders
from msgsvc_gateway.errors import GatewayRateLimited
from msgsvc_gateway.models import Gateway, Sender
from msgsvc_gateway.sending import GatewaySending
from msgsvc_gateway.service import Gateways
from msgsvc_gateway.settings import GatewaySettings

WINDOW_S = 60

_SENDERS: tuple[Sender, ...] = get_args(Sender)


class GatewayHooks:
    """The routes, one for each sender. A failure is an error of the API, which senders show or log."""

    def __init__(
        self,
        *,
        clock: Clock,
        db: Database,
        limiter: Limiter,
        settings: GatewaySettings,
        projects: Projects,
        gateways: Gateways,
        sending: GatewaySending,
    ) -> None:
        self._clock = clock
        self._db = db
        self._limiter = limiter
        self._settings = settings
        self._projects = projects
        self._gateways = gateways
        self._sending = sending

    def routes(self) -> list[BaseRoute]:
        return [Route("/compat/{sender}/{secret}", self.take, methods=["POST"])]

    async def take(self, request: Request) -> Response:
        """A message, whose sender is answered once it is stored."""
        sender = next((one for one in _SENDERS if one == request.path_params["sender"]), None)
        if sender is None:
            raise NotFound("there is no sender of this name")
        async with self._db.read() as tx:
            gateway = await self._open(tx, sender, request)
        check_is_json(request.headers.get("content-type"))
        body = await read_body(request, self._settings.max_body_bytes)
        self._check_signature(gateway, request, body)
        try:
            answer = await self._send(gateway, body)
        except ApiError as error:
            if sender != "supabase" or error.status >= 500:
                raise
            answer = senders.refusal_in_answer(error)
        return JSONResponse(answer, headers={"Cache-Control": "no-store"})

    async def _send(self, gateway: Gateway, body: bytes) -> dict[str, Any]:
        await self._count(gateway)
        submitted = senders.read(gateway.sender, body, gateway.paths)
        async with self._db.transaction() as tx:
            message = await self._sending.submit(tx, gateway, submitted)
        return senders.answer(gateway.sender, message)

    async def _open(self, tx: Tx, sender: Sender, request: Request) -> Gateway:
        gateway = await self._gateways.open(tx, sender, request.path_params["secret"])
        self._projects.check_active(await self._projects.get(tx, gateway.project_id))
        return gateway

    def _check_signature(self, gateway: Gateway, request: Request, body: bytes) -> None:
        key = self._gateways.signing_key(gateway)
        if key is not None:
            now_s = self._clock.now_ms() // 1000
            senders.check_signature(gateway.sender, request.headers, body, key, now_s=now_s)

    async def _count(self, gateway: Gateway) -> None:
        limit = self._settings.requests_per_minute
        key = f"gateway:{gateway.gateway_id}"
        window = await self._limiter.hit(key, limit, WINDOW_S, when_away="count_locally")
        if not window.allowed:
            raise GatewayRateLimited(
                "more than {limit} messages in {seconds} s by this gateway",
                limit=limit,
                seconds=WINDOW_S,
                retry_after_s=window.retry_after_s,
            )
