"""Another project's id is answered exactly as one that does not exist."""

from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import pytest

from msgsvc_core.api.endpoint import Endpoint
from msgsvc_core.service import Service
from msgsvc_core.settings import Settings
from msgsvc_core.testing import settled
from msgsvc_core.testing.fixtures import SECRET_KEY, ServiceFactory, Tenant
from tests.api.conftest import Subscribe

PLUGINS = ("auth", "webhooks")

#: What each route with an id needs as its body. A new route with an id must be added to `ids` below.
BODIES: dict[str, Any] = {
    "update_webhook": {"description": "mine now"},
    "update_auth_link": {"name": "mine now"},
    "update_channel": {"settings": {}},
}

CALLBACK = "https://shop.example/back"


def routes_with_ids() -> list[Endpoint]:
    settings = {
        "secret_keys": (SECRET_KEY,),
        "plugins": ("sandbox", *PLUGINS),
        "channels": {"messenger_a": {"plugin": "sandbox"}},
    }
    service = Service(Settings.model_validate(settings))
    return [
        endpoint
        for endpoint in service.endpoints
        if endpoint.path_parameters and not endpoint.public
    ]


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    return await make_service(plugins=PLUGINS)


@pytest.fixture
async def ids(service: Service, tenant: Tenant, subscribe: Subscribe) -> dict[str, str]:
    """One resource of every kind that `tenant` owns, by the name of its path parameter."""
    client = tenant.client
    subscriber_id = await subscribe()

    async def post(path: str, **body: Any) -> Any:
        answer = await client.post(path, json=body)
        assert answer.is_success, answer.text
        return answer.json()

    webhook = await post("/v1/webhooks", url="https://93.184.216.34/hook")
    session = await post("/v1/auth/session", state="s")
    link = await post("/v1/auth/links", slug="shop-login", name="Shop", callback_url=CALLBACK)
    channel = await post("/v1/channels", name="own_bot", plugin="recording")
    message = await post("/v1/send", subscriber_id=subscriber_id, text="Hi")
    return {
        "subscriber_id": subscriber_id,
        "message_id": message["message_id"],
        "webhook_id": next(value for name, value in webhook.items() if name.endswith("id")),
        "session_id": session["session_id"],
        "slug": link["slug"],
        "name": channel["name"],
    }


async def call(
    client: httpx2.AsyncClient, endpoint: Endpoint, ids: dict[str, str]
) -> httpx2.Response:
    path = endpoint.path.format_map(ids)
    body = BODIES.get(endpoint.name)
    return await client.request(endpoint.method, path, **({} if body is None else {"json": body}))


@pytest.mark.parametrize("endpoint", routes_with_ids(), ids=lambda e: f"{e.method} {e.path}")
async def test_a_foreign_id_is_answered_as_a_missing_one(
    service: Service,
    tenant: Tenant,
    make_tenant: Callable[..., Awaitable[Tenant]],
    ids: dict[str, str],
    endpoint: Endpoint,
) -> None:
    other = await make_tenant(service, "Other")
    missing_ids = {name: "".join(reversed(value)) for name, value in ids.items()}

    foreign = await call(other.client, endpoint, ids)
    missing = await call(other.client, endpoint, missing_ids)
    own = await call(tenant.client, endpoint, ids)

    assert foreign.status_code == missing.status_code == 404
    name = endpoint.path_parameters[0]
    assert foreign.text.replace(ids[name], "?") == missing.text.replace(missing_ids[name], "?")
    assert own.is_success, own.text


@pytest.mark.parametrize("identifier", ["subscriber_id", "external_id"])
async def test_a_send_to_a_foreign_subscriber_is_answered_as_to_a_missing_one(
    service: Service,
    make_tenant: Callable[..., Awaitable[Tenant]],
    subscribe: Subscribe,
    identifier: str,
) -> None:
    other = await make_tenant(service, "Other")
    value = await subscribe(external_id="customer-1")
    value = value if identifier == "subscriber_id" else "customer-1"

    foreign = await other.client.post("/v1/send", json={identifier: value, "text": "Hi"})
    missing = await other.client.post("/v1/send", json={identifier: "nobody", "text": "Hi"})

    assert foreign.status_code == missing.status_code == 404
    assert foreign.text.replace(value, "?") == missing.text.replace("nobody", "?")


@pytest.mark.parametrize(
    "path",
    [
        "/v1/subscribers",
        "/v1/messages",
        "/v1/events",
        "/v1/channels",
        "/v1/webhooks",
        "/v1/auth/links",
    ],
)
async def test_lists_hold_nothing_of_another_project(
    service: Service,
    tenant: Tenant,
    make_tenant: Callable[..., Awaitable[Tenant]],
    ids: dict[str, str],
    path: str,
) -> None:
    other = await make_tenant(service, "Other")
    await settled(service)

    own = await tenant.client.get(path)
    foreign = await other.client.get(path)

    assert own.json()["data"]
    assert foreign.json()["data"] == []


@pytest.mark.parametrize("path", ["/v1/subscribers", "/v1/messages", "/v1/events"])
async def test_a_cursor_of_another_project_shows_nothing_of_it(
    service: Service,
    tenant: Tenant,
    make_tenant: Callable[..., Awaitable[Tenant]],
    subscribe: Subscribe,
    path: str,
) -> None:
    for name in ("Ann", "Bob"):
        subscriber_id = await subscribe(name)
        await tenant.client.post("/v1/send", json={"subscriber_id": subscriber_id, "text": "Hi"})
    cursor = (await tenant.client.get(f"{path}?limit=1")).json()["next_cursor"]
    other = await make_tenant(service, "Other")

    answer = await other.client.get(path, params={"cursor": cursor})

    assert answer.json() == {"data": [], "next_cursor": None}


async def test_one_person_is_two_subscribers_of_two_projects(
    service: Service, make_tenant: Callable[..., Awaitable[Tenant]], subscribe: Subscribe
) -> None:
    other = await make_tenant(service, "Other")

    assert await subscribe("Ann") != await subscribe("Ann", to=other)
