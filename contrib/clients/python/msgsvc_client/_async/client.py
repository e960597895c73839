"""The client: an API key, an address, and the resources of the API."""

from __future__ import annotations

import platform
from types import TracebackType

from msgsvc_client._async.calls import AsyncCaller
from msgsvc_client._async.resources import AsyncResources
from msgsvc_client._async.transport import (
    AsyncClock,
    AsyncHttpxTransport,
    AsyncSystemClock,
    AsyncTransport,
)
from msgsvc_client._wire import check_api_key, check_base_url
from msgsvc_client.retries import RetryPolicy
from msgsvc_client.version import __version__


class AsyncClient(AsyncResources):
    """One project of a service.

        async with AsyncClient(api_key, base_url) as client:
            await client.messages.send(external_id="customer-1", text="Your parcel is here")

    `timeout_s` limits each wait for the network, `retries` how often and how long a call is tried. A
    `transport` of one's own is closed with the client.
    """

    def __init__(
        self,
        api_key: str,
        base_url: str,
        *,
        timeout_s: float = 30.0,
        retries: RetryPolicy | None = None,
        transport: AsyncTransport | None = None,
        clock: AsyncClock | None = None,
        user_agent: str = "",
    ) -> None:
        own = f"msgsvc-client-python/{__version__} (Python {platform.python_version()})"
        headers = {
            "Authorization": f"Bearer {check_api_key(api_key)}",
            "User-Agent": f"{user_agent} {own}".strip(),
            "Accept": "application/json, */*",
        }
        caller = AsyncCaller(
            transport=transport or AsyncHttpxTransport(),
            clock=clock or AsyncSystemClock(),
            retries=retries or RetryPolicy(),
            timeout_s=timeout_s,
            base_url=check_base_url(base_url),
            headers=headers,
        )
        super().__init__(caller)

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._caller.transport.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._caller.base_url}>"
