"""People who subscribe, and what every answer must look like."""

from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import pytest

from msgsvc_core.service import Service
from msgsvc_devkit.fixtures import Tenant
from tests.api.subscribing import Subscribe, subscribing

Send = Callable[..., Awaitable[str]]
CheckError = Callable[[httpx2.Response, int, str], dict[str, Any]]

RATE_HEADERS = ("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")


def client_at(service: Service, tenant: Tenant) -> httpx2.AsyncClient:
    """A client with the tenant's key at another process of its deployment; for `async with`."""
    return httpx2.AsyncClient(
        transport=httpx2.ASGITransport(app=service.app),
        base_url="http://msgsvc.test",
        headers={"Authorization": f"Bearer {tenant.key}"},
    )


@pytest.fixture
def subscribe(service: Service, tenant: Tenant) -> Subscribe:
    """See `subscribing`."""
    return subscribing(service, tenant)


@pytest.fixture
async def ann(subscribe: Subscribe) -> str:
    return await subscribe("Ann")


@pytest.fixture
def send(client: httpx2.AsyncClient, ann: str) -> Send:
    """`await send(text="Hi")` sends to Ann, unless told otherwise; returns the message's id."""

    async def post(**body: Any) -> str:
        answer = await client.post("/v1/send", json={"subscriber_id": ann, "text": "Hi", **body})
        assert answer.status_code == 202, answer.text
        return str(answer.json()["message_id"])

    return post


@pytest.fixture
def check_error() -> CheckError:
    """Checks that an answer is the envelope with that status and code; returns its fields."""

    def check(answer: httpx2.Response, status: int, code: str) -> dict[str, Any]:
        assert answer.status_code == status, answer.text
        fields: dict[str, Any] = answer.json()
        assert set(fields) == {"error", "code", "retryable", "docs_url"}
        assert fields["code"] == code
        assert isinstance(fields["error"], str)
        assert fields["error"]
        assert fields["retryable"] is (status in {425, 429, 500, 503})
        assert fields["docs_url"].endswith(f"/docs/errors#{code}")
        assert answer.headers["Content-Type"] == "application/json"
        assert answer.headers["X-Request-Id"].startswith("req_")
        return fields

    return check


@pytest.fixture
def rate_headers() -> Callable[[httpx2.Response], dict[str, int]]:
    """The three rate-limit headers of an answer, as numbers. All of them must be there."""

    def read(answer: httpx2.Response) -> dict[str, int]:
        return {
            name.removeprefix("X-RateLimit-"): int(answer.headers[name]) for name in RATE_HEADERS
        }

    return read
