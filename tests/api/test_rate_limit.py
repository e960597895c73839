"""300 requests a minute and project, in a window that slides; and what the headers say of it."""

from collections.abc import Awaitable, Callable

import httpx2
import pytest

from msgsvc_core.config.limits import LimitSettings
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from tests.api.conftest import CheckError

LIMIT = 300
RateHeaders = Callable[[httpx2.Response], dict[str, int]]
MakeTenant = Callable[..., Awaitable[Tenant]]


async def test_the_300_first_requests_of_a_minute_pass_and_the_next_does_not(
    make_service: ServiceFactory,
    make_tenant: MakeTenant,
    check_error: CheckError,
    rate_headers: RateHeaders,
) -> None:
    assert LimitSettings().requests_per_minute == LIMIT
    service = await make_service(limits={"requests_per_minute": LIMIT})
    client = (await make_tenant(service)).client
    answers = [await client.get("/v1/project") for _ in range(LIMIT)]
    refused = await client.get("/v1/project")

    assert {answer.status_code for answer in answers} == {200}
    assert [rate_headers(answer)["Remaining"] for answer in answers] == [*range(LIMIT - 1, -1, -1)]
    check_error(refused, 429, "rate_limit_project")


async def test_a_slot_frees_60_seconds_after_its_request_and_no_sooner(
    make_service: ServiceFactory, make_tenant: MakeTenant, clock: FakeClock
) -> None:
    service = await make_service(limits={"requests_per_minute": 2})
    client = (await make_tenant(service)).client
    await client.get("/v1/project")
    clock.advance(30)
    await client.get("/v1/project")
    clock.advance(29.999)
    early = await client.get("/v1/project")
    clock.advance(0.001)

    first = await client.get("/v1/project")
    second = await client.get("/v1/project")

    assert [early.status_code, first.status_code, second.status_code] == [429, 200, 429]


async def test_reset_and_retry_after_name_the_moment_at_which_a_slot_frees(
    make_service: ServiceFactory,
    make_tenant: MakeTenant,
    clock: FakeClock,
    rate_headers: RateHeaders,
) -> None:
    service = await make_service(limits={"requests_per_minute": 1})
    client = (await make_tenant(service)).client
    started = clock.time()
    await client.get("/v1/project")
    clock.advance(12.5)

    refused = await client.get("/v1/project")

    assert rate_headers(refused) == {"Limit": 1, "Remaining": 0, "Reset": started + 60}
    assert refused.headers["Retry-After"] == "48"


async def test_who_waits_as_told_gets_through(
    make_service: ServiceFactory, make_tenant: MakeTenant, clock: FakeClock
) -> None:
    service = await make_service(limits={"requests_per_minute": 1})
    client = (await make_tenant(service)).client
    await client.get("/v1/project")
    clock.advance(0.7)
    refused = await client.get("/v1/project")
    clock.advance(int(refused.headers["Retry-After"]))

    answer = await client.get("/v1/project")

    assert answer.status_code == 200


async def test_projects_do_not_use_up_one_another(
    make_service: ServiceFactory, make_tenant: MakeTenant
) -> None:
    service = await make_service(limits={"requests_per_minute": 1})
    one, other = await make_tenant(service), await make_tenant(service)
    await one.client.get("/v1/project")

    answer = await other.client.get("/v1/project")

    assert answer.status_code == 200


async def test_all_keys_of_a_project_share_its_rate(
    make_service: ServiceFactory, make_tenant: MakeTenant
) -> None:
    service = await make_service(limits={"requests_per_minute": 1})
    tenant = await make_tenant(service)
    _, second_key = await service.projects.create_key(tenant.project.project_id, "second")
    await tenant.client.get("/v1/project")

    answer = await tenant.client.get(
        "/v1/project", headers={"Authorization": f"Bearer {second_key}"}
    )

    assert answer.status_code == 429


async def test_failed_requests_count_as_well(
    make_service: ServiceFactory, make_tenant: MakeTenant
) -> None:
    service = await make_service(limits={"requests_per_minute": 2})
    client = (await make_tenant(service)).client

    statuses = [(await client.post("/v1/send", content=b"{")).status_code for _ in range(3)]

    assert statuses == [400, 400, 429]


@pytest.mark.shared_service
@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/send", 405),
        ("POST", "/v1/nothing", 404),
        ("GET", "/v1/messages/%00", 404),
        ("GET", "/v1/messages/msg_1?x=1", 400),
    ],
)
async def test_answers_without_an_endpoint_say_how_the_rate_stands_and_count(
    client: httpx2.AsyncClient, rate_headers: RateHeaders, method: str, path: str, status: int
) -> None:
    before = rate_headers(await client.get("/v1/project"))["Remaining"]

    answer = await client.request(method, path)

    assert answer.status_code == status
    assert rate_headers(answer)["Remaining"] == before - 1


async def test_without_a_key_a_path_that_is_not_there_has_no_rate(
    client: httpx2.AsyncClient,
) -> None:
    answers = [
        await client.get("/v1/nothing", headers={"Authorization": ""}),
        await client.get("/v1/nothing", headers={"Authorization": "Bearer msk_wrong"}),
    ]

    assert [answer.status_code for answer in answers] == [404, 404]
    assert not any("X-RateLimit-Limit" in answer.headers for answer in answers)


@pytest.mark.parametrize("path", ["/v1/send", "/v1/nothing", "/v1/send/batch"])
async def test_a_disabled_project_hears_how_its_rate_stands(
    service: Service,
    tenant: Tenant,
    client: httpx2.AsyncClient,
    check_error: CheckError,
    rate_headers: RateHeaders,
    path: str,
) -> None:
    await service.projects.set_active(tenant.project.project_id, active=False)

    answer = await client.post(path, json={})

    check_error(answer, 403, "project_inactive")
    assert rate_headers(answer)["Remaining"] < rate_headers(answer)["Limit"]


async def test_an_error_on_our_side_says_how_the_rate_stands(
    service: Service,
    client: httpx2.AsyncClient,
    check_error: CheckError,
    rate_headers: RateHeaders,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def out_of_order(*_args: object) -> None:
        raise RuntimeError("out of order")

    monkeypatch.setattr(service.projects, "texts", out_of_order)

    answer = await client.get("/v1/project")

    check_error(answer, 500, "internal_error")
    assert rate_headers(answer)["Remaining"] < rate_headers(answer)["Limit"]


async def test_a_limited_send_sends_nothing(
    make_service: ServiceFactory, make_tenant: MakeTenant
) -> None:
    service: Service = await make_service(limits={"requests_per_minute": 1})
    client = (await make_tenant(service)).client
    await client.get("/v1/project")

    answer = await client.post("/v1/subscribers/links", json={})

    assert answer.status_code == 429
    async with service.db.read() as tx:
        assert await tx.fetch_val("SELECT COUNT(*) FROM core_links") == 0
