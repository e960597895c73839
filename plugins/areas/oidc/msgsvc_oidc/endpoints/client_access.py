"""The client of a request to the provider: authenticated, and limited when it fails."""

from starlette.requests import Request

from msgsvc_core.kernel.errors import RateLimitProject
from msgsvc_core.limits import Limiter
from msgsvc_core.security import digest
from msgsvc_core.security.networks import customer_network
from msgsvc_oidc.clients.service import Clients
from msgsvc_oidc.issuers import Issuers
from msgsvc_oidc.journal.failures import FailedRequests
from msgsvc_oidc.protocol.client_authentication import read_credentials
from msgsvc_oidc.protocol.clients import Client
from msgsvc_oidc.protocol.discovery import (
    BACKCHANNEL,
    DEVICE_AUTHORIZATION,
    INTROSPECTION,
    PUSHED,
    REVOCATION,
    TOKEN,
)
from msgsvc_oidc.protocol.errors import OAuthError
from msgsvc_oidc.protocol.parameters import Parameters

#: Endpoints by whose URL a client may name the provider in an assertion (RFC 7523, section 3), beside the
#: issuer. Libraries take that of the token endpoint, or the one that they call.
AUDIENCES = (TOKEN, PUSHED, BACKCHANNEL, DEVICE_AUTHORIZATION, REVOCATION, INTROSPECTION)

#: Seconds of the window in which failures are counted.
WINDOW_S = 60


class ClientAccess:
    """Authenticates clients. An address that fails too often for a client has to wait."""

    def __init__(
        self,
        *,
        issuers: Issuers,
        clients: Clients,
        limiter: Limiter,
        failures_per_minute: int,
        failed: FailedRequests,
    ) -> None:
        self._issuers = issuers
        self._clients = clients
        self._limiter = limiter
        self._failures = failures_per_minute
        self._failed = failed

    async def authenticate(self, request: Request, parameters: Parameters) -> Client:
        """Raises `OAuthError`, `NotFound` for an unknown issuer, and `RateLimitProject`."""
        project = await self._issuers.project(request.path_params["project_id"])
        given = read_credentials(request.headers.get("authorization"), parameters)
        issuer = self._issuers.url(project.project_id)
        audiences = {issuer, *(issuer + path for path in AUDIENCES)}
        # Before: afterwards it would be remembered as it was before its keys are fetched.
        known = await self._clients.find(project.project_id, given.client_id)
        try:
            return await self._clients.authenticate(project.project_id, given, audiences)
        except OAuthError as error:
            address = network_of(request)
            # As a digest: the name may be as long as the form.
            client = digest(given.client_id)
            await self._count(f"oidc.failures:{project.project_id}:{client}:{address}")
            if known is not None:
                await self._failed.record(known, "token", error)
            raise

    async def _count(self, key: str) -> None:
        # Secrets have 256 bits and can't be guessed: this bounds load, so it need not hold without Redis.
        window = await self._limiter.hit(key, self._failures, WINDOW_S, when_away="count_locally")
        if not window.allowed:
            raise RateLimitProject(
                "more than {limit} failed authentications in {seconds} s",
                limit=self._failures,
                seconds=WINDOW_S,
                retry_after_s=window.retry_after_s,
            )


class ClientLimit:
    """Limits what a client that has authenticated may ask for; each `name` for itself."""

    def __init__(self, *, limiter: Limiter, per_minute: int, name: str) -> None:
        self._limiter = limiter
        self._per_minute = per_minute
        self._name = name

    async def count(self, client: Client) -> None:
        """Raises `RateLimitProject` beyond the limit."""
        window = await self._limiter.hit(
            f"oidc.{self._name}:{client.client_id}",
            self._per_minute,
            WINDOW_S,
            when_away="count_locally",
        )
        if not window.allowed:
            raise RateLimitProject(
                "more than {limit} requests of one client in {seconds} s",
                limit=self._per_minute,
                seconds=WINDOW_S,
                retry_after_s=window.retry_after_s,
            )


class RequestLimit:
    """Limits what anybody may ask for without authentication, by address; each `name` for itself."""

    def __init__(self, *, limiter: Limiter, per_minute: int, name: str = "requests") -> None:
        self._limiter = limiter
        self._per_minute = per_minute
        self._name = name

    async def count(self, request: Request) -> None:
        """Raises `RateLimitProject` beyond the limit."""
        window = await self._limiter.hit(
            f"oidc.{self._name}:{network_of(request)}",
            self._per_minute,
            WINDOW_S,
            when_away="count_locally",
        )
        if not window.allowed:
            raise RateLimitProject(
                "more than {limit} requests from one address in {seconds} s",
                limit=self._per_minute,
                seconds=WINDOW_S,
                retry_after_s=window.retry_after_s,
            )


def network_of(request: Request) -> str:
    """What belongs to one customer of a provider; those whose address nobody knows are one."""
    return customer_network(request.client.host if request.client else "") or ""
