"""API keys: where they may stand, and what is said of each that does not open."""

from collections.abc import AsyncIterator, Awaitable, Callable

import httpx2
import pytest

from msgsvc_core.kernel.clock import DAY_MS, to_rfc3339
from msgsvc_core.projects.models import READ_ONLY
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock
from msgsvc_devkit.fixtures import Tenant
from tests.api.conftest import RATE_HEADERS, CheckError


@pytest.fixture
async def stranger(service: Service) -> AsyncIterator[httpx2.AsyncClient]:
    """A client without a key."""
    transport = httpx2.ASGITransport(app=service.app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://msgsvc.test") as client:
        yield client


@pytest.mark.shared_service
@pytest.mark.parametrize(
    "headers",
    [
        lambda key: {"Authorization": f"Bearer {key}"},
        lambda key: {"Authorization": f"bearer  {key}"},
        lambda key: {"X-API-Key": key},
        lambda key: {"X-API-Key": key, "Authorization": "Basic YTpi"},
    ],
    ids=["bearer", "lower case", "X-API-Key", "beside another scheme"],
)
async def test_a_key_opens_its_project(
    stranger: httpx2.AsyncClient, tenant: Tenant, headers: Callable[[str], dict[str, str]]
) -> None:
    answer = await stranger.get("/v1/project", headers=headers(tenant.key))

    assert answer.json()["project_id"] == tenant.project.project_id


@pytest.mark.shared_service
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": ""},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer  "},
        {"X-API-Key": ""},
        {"Authorization": "Basic YTpi"},
    ],
)
async def test_no_key_is_unauthorized(
    stranger: httpx2.AsyncClient, check_error: CheckError, headers: dict[str, str]
) -> None:
    answer = await stranger.get("/v1/project", headers=headers)

    check_error(answer, 401, "unauthorized")


@pytest.mark.shared_service
@pytest.mark.parametrize(
    "key",
    ["nonsense", "msk_", "msk_" + "0" * 43, "msk_" + "0" * 44, "' OR 1=1 --", "\xff", "x" * 5000],
)
async def test_an_unknown_key_is_invalid(
    stranger: httpx2.AsyncClient, check_error: CheckError, key: str
) -> None:
    headers = {"Authorization": b"Bearer " + key.encode("latin-1")}
    answer = await stranger.get("/v1/project", headers=headers)

    check_error(answer, 401, "invalid_api_key")


@pytest.mark.both_databases
async def test_a_revoked_key_is_invalid_at_once(
    service: Service, tenant: Tenant, check_error: CheckError
) -> None:
    project_id = tenant.project.project_id
    async with service.db.read() as tx:
        key_id = await tx.fetch_val("SELECT key_id FROM core_api_keys")
    await service.projects.revoke_key(project_id, key_id)

    answer = await tenant.client.get("/v1/project")

    check_error(answer, 401, "invalid_api_key")


async def test_a_key_is_invalid_from_its_expiry_on(
    service: Service, tenant: Tenant, clock: FakeClock, check_error: CheckError
) -> None:
    expires_at_ms = clock.now_ms() + DAY_MS
    _, secret = await service.projects.create_key(
        tenant.project.project_id, "a day", expires_at_ms=expires_at_ms
    )
    headers = {"Authorization": f"Bearer {secret}"}
    clock.advance(24 * 3600 - 0.001)
    before = await tenant.client.get("/v1/project", headers=headers)
    clock.advance(0.001)
    after = await tenant.client.get("/v1/project", headers=headers)

    assert before.status_code == 200
    error = check_error(after, 401, "invalid_api_key")
    assert error["error"] == f"the API key expired at {to_rfc3339(expires_at_ms)}"


async def test_the_other_keys_of_a_project_outlive_a_revoked_one(
    service: Service, tenant: Tenant, stranger: httpx2.AsyncClient
) -> None:
    project_id = tenant.project.project_id
    revoked, _ = await service.projects.create_key(project_id, "old")
    await service.projects.revoke_key(project_id, revoked.key_id)

    answer = await tenant.client.get("/v1/project")

    assert answer.status_code == 200


async def test_a_disabled_project_is_inactive_and_an_enabled_one_back(
    service: Service, tenant: Tenant, check_error: CheckError
) -> None:
    await service.projects.set_active(tenant.project.project_id, False)
    disabled = await tenant.client.get("/v1/project")
    await service.projects.set_active(tenant.project.project_id, True)
    enabled = await tenant.client.get("/v1/project")

    check_error(disabled, 403, "project_inactive")
    assert enabled.status_code == 200


async def test_a_key_opens_only_the_areas_of_its_scopes(
    service: Service, make_tenant: Callable[..., Awaitable[Tenant]], check_error: CheckError
) -> None:
    tenant = await make_tenant(service, scopes=("messages",))

    allowed = await tenant.client.get("/v1/messages")
    refused = await tenant.client.get("/v1/subscribers")

    assert allowed.status_code == 200
    assert "subscribers" in check_error(refused, 403, "forbidden")["error"]


async def test_a_key_that_reads_everything_changes_nothing(
    service: Service, make_tenant: Callable[..., Awaitable[Tenant]], check_error: CheckError
) -> None:
    tenant = await make_tenant(service, scopes=(READ_ONLY,))

    read = [(await tenant.client.get(path)).status_code for path in ("/v1/project", "/v1/messages")]
    refused = await tenant.client.patch("/v1/project", json={"name": "Store"})

    assert read == [200, 200]
    assert "may only read 'project'" in check_error(refused, 403, "forbidden")["error"]


async def test_who_is_known_sees_the_rate_headers_and_who_is_not_does_not(
    service: Service, make_tenant: Callable[..., Awaitable[Tenant]], stranger: httpx2.AsyncClient
) -> None:
    tenant = await make_tenant(service, scopes=("messages",))

    known = await tenant.client.get("/v1/subscribers")
    unknown = await stranger.get("/v1/subscribers")

    assert all(name in known.headers for name in RATE_HEADERS)
    assert not any(name in unknown.headers for name in RATE_HEADERS)


async def test_neither_database_nor_answer_holds_the_key(service: Service, tenant: Tenant) -> None:
    async with service.db.read() as tx:
        rows = await tx.fetch_all("SELECT * FROM core_api_keys")
    answer = await tenant.client.get("/v1/project")

    stored = " ".join(str(row[column]) for row in rows for column in row.keys())
    assert tenant.key not in stored
    assert tenant.key[:12] in stored
    assert tenant.key not in answer.text


async def test_a_wrong_key_is_refused_before_the_body_is_read(
    stranger: httpx2.AsyncClient, check_error: CheckError
) -> None:
    async def body() -> AsyncIterator[bytes]:
        raise AssertionError("the body was asked for")
        yield b""

    answer = await stranger.post("/v1/send", content=body(), headers={"X-API-Key": "msk_x"})

    check_error(answer, 401, "invalid_api_key")
