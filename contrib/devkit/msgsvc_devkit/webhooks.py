"""For tests of webhook receivers: a receiver on this machine, and signed requests.

Load the fixture `webhook_receiver` with `-p msgsvc_devkit.webhooks`. It needs no database, only
pytest-asyncio:

    async def test_a_customer_is_greeted(webhook_receiver):
        webhook_receiver.secret = add_webhook(webhook_receiver.url)["secret"]
        ...
        delivery = await webhook_receiver.next("subscription.created")
        assert delivery.data["first_name"] == "Ann"
"""

import asyncio
import json
import time
from collections import deque
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal

import pytest_asyncio
from aiohttp import web

from msgsvc_core.kernel.ids import new_id
from msgsvc_core.security.signing import WebhookDelivery, open_webhook, sign, standard_headers
from msgsvc_devkit.web_servers import stop

#: Maximum bytes of a request's body; those of events are far smaller.
MOST_BYTES = 4 * 1024 * 1024


def signed_webhook(
    event: str,
    data: Mapping[str, Any],
    secret: str,
    *,
    delivery_id: str | None = None,
    timestamp: int | None = None,
    prefix: str = "X-Service",
) -> tuple[dict[str, str], bytes]:
    """Headers and body of a webhook request as the service sends it: POST them to your own endpoint.

    `timestamp` is in Unix seconds, by default now; a request with the same `delivery_id` is a duplicate.
    """
    content = {"event": event, "data": dict(data)}
    body = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
    at = int(time.time()) if timestamp is None else timestamp
    id_ = delivery_id or new_id("whd")
    headers = {
        "Content-Type": "application/json",
        f"{prefix}-Signature": sign(body, [secret], at),
        f"{prefix}-Timestamp": str(at),
        f"{prefix}-Delivery-Id": id_,
        f"{prefix}-Event": event,
        **({f"{prefix}-Event-Id": str(data["event_id"])} if "event_id" in data else {}),
        **standard_headers(id_, body, [secret], at),
    }
    return headers, body


@dataclass(frozen=True, slots=True)
class ReceivedRequest:
    """A received request, and the status of the response; None if there was none."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    status: int | None


@dataclass(frozen=True, slots=True)
class _Behaviour:
    """How the receiver handles one request."""

    what: Literal["answer", "hang up"] = "answer"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    after_s: float = 0.0


class WebhookReceiver:
    """Receives webhooks on a free port of this machine: `async with WebhookReceiver() as receiver`.

    It responds 200 at once, unless a method below changes the next responses. The service calls a plain http
    URL on the same machine only with these settings:

        webhooks={"allow_http": True, "allow_cidrs": ["127.0.0.0/8"]}

    `secret` is the endpoint's secret, or several during a rotation. `url` is the URL to register.
    """

    def __init__(
        self,
        secret: str | list[str] = "",
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        prefix: str = "X-Service",
    ) -> None:
        self.secret = secret
        self.url = ""
        #: All received requests in order, including those with an error response.
        self.requests: list[ReceivedRequest] = []
        self._address = host, port
        self._prefix = prefix
        self._told: deque[_Behaviour] = deque()
        self._taken: set[str] = set()
        self._arrived = asyncio.Condition()
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> "WebhookReceiver":
        application = web.Application(client_max_size=MOST_BYTES)
        application.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(application, handler_cancellation=True, shutdown_timeout=0.01)
        await self._runner.setup()
        await web.TCPSite(self._runner, *self._address).start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}/webhooks"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._runner is not None:
            await stop(self._runner)

    def fail(self, status: int = 500, *, times: int = 1, retry_after: int | None = None) -> None:
        """Responds to the next `times` requests with `status`."""
        headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
        self._told.extend([_Behaviour(status=status, headers=headers)] * times)

    def be_slow(self, seconds: float, *, times: int = 1) -> None:
        """Responds to the next `times` requests after that many seconds."""
        self._told.extend([_Behaviour(after_s=seconds)] * times)

    def redirect(self, location: str, *, status: int = 307, times: int = 1) -> None:
        """Redirects the next `times` requests; the service doesn't follow."""
        self._told.extend([_Behaviour(status=status, headers={"Location": location})] * times)

    def hang_up(self, *, times: int = 1) -> None:
        """Closes the connection of the next `times` requests without a response."""
        self._told.extend([_Behaviour("hang up")] * times)

    async def next(self, event: str | None = None, *, timeout_s: float = 30.0) -> WebhookDelivery:
        """The first delivery with a 2xx response that was not returned yet, of `event` if given.

        Its signature is verified: raises `InvalidWebhook` if it is wrong, ValueError without a `secret`.
        Duplicates count once. `TimeoutError` lists the requests received instead.
        """
        try:
            async with asyncio.timeout(timeout_s), self._arrived:
                while (found := self._find(event)) is None:
                    await self._arrived.wait()
        except TimeoutError:
            came = [
                f"{one.headers.get(self._prefix + '-Event')} ({one.status})"
                for one in self.requests
            ]
            raise TimeoutError(
                f"no {event or 'event'} within {timeout_s:g} s; came: {came}"
            ) from None
        self._taken.add(found.delivery_id)
        return found

    def tries(self, delivery_id: str) -> list[ReceivedRequest]:
        """All requests of one delivery, the first one first."""
        name = f"{self._prefix}-Delivery-Id"
        return [one for one in self.requests if one.headers.get(name) == delivery_id]

    def _find(self, event: str | None) -> WebhookDelivery | None:
        for request in self.requests:
            if request.status is None or not 200 <= request.status < 300:
                continue
            delivery = open_webhook(request.headers, request.body, self.secret, prefix=self._prefix)
            if delivery.delivery_id not in self._taken and event in {None, delivery.event}:
                return delivery
        return None

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        told = self._told.popleft() if self._told else _Behaviour()
        status = None
        try:
            await asyncio.sleep(told.after_s)  # tests the timeout of the other side
            status = told.status if told.what == "answer" else None
        finally:
            # Also if the other side did not wait: then there was no response.
            self.requests.append(
                ReceivedRequest(request.method, request.path, request.headers.copy(), body, status)
            )
        async with self._arrived:
            self._arrived.notify_all()
        if status is None:
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        return web.Response(status=status, headers=told.headers)


@pytest_asyncio.fixture
async def webhook_receiver() -> AsyncIterator[WebhookReceiver]:
    """A `WebhookReceiver` that listens while the test runs."""
    async with WebhookReceiver() as receiver:
        yield receiver
