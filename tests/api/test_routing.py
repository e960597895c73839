"""Paths and methods: what exists, what does not, and what HEAD and OPTIONS say."""

import httpx2
import pytest

from msgsvc_core.kernel.errors import ErrorCatalogue
from msgsvc_core.service import Service
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from tests.api.conftest import CheckError

PAGES = ("/healthz", "/readyz", "/openapi.json", "/docs", "/docs/types", "/docs/errors")


@pytest.mark.shared_service
@pytest.mark.parametrize(
    "path",
    [
        "/v1",
        "/v1/",
        "/v1/nothing",
        "/v2/send",
        "/v1/send/",
        "/v1/send/more",
        "/V1/send",
        "//v1/send",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "OPTIONS"])
async def test_an_unknown_path_is_not_found(
    client: httpx2.AsyncClient, check_error: CheckError, method: str, path: str
) -> None:
    answer = await client.request(method, f"http://msgsvc.test{path}")

    check_error(answer, 404, "not_found")


async def test_an_unknown_path_asks_for_no_key(service: Service, check_error: CheckError) -> None:
    transport = httpx2.ASGITransport(app=service.app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://msgsvc.test") as stranger:
        answer = await stranger.get("/v1/nothing")

    check_error(answer, 404, "not_found")


@pytest.mark.shared_service
@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/v1/send", {"POST", "OPTIONS"}),
        ("PUT", "/v1/send", {"POST", "OPTIONS"}),
        ("POST", "/v1/messages", {"GET", "HEAD", "OPTIONS"}),
        ("PUT", "/v1/messages/msg_1", {"GET", "HEAD", "DELETE", "OPTIONS"}),
        ("TRACE", "/v1/events", {"GET", "HEAD", "POST", "OPTIONS"}),
        ("BREW", "/v1/events", {"GET", "HEAD", "POST", "OPTIONS"}),
        ("POST", "/healthz", {"GET", "HEAD"}),
        ("POST", "/docs", {"GET", "HEAD"}),
    ],
)
async def test_another_method_is_refused_with_those_that_are_allowed(
    client: httpx2.AsyncClient, check_error: CheckError, method: str, path: str, allowed: set[str]
) -> None:
    answer = await client.request(method, path)

    check_error(answer, 405, "method_not_allowed")
    assert set(answer.headers["Allow"].split(", ")) == allowed


@pytest.mark.shared_service
@pytest.mark.parametrize("path", ["/v1/project", "/v1/messages", *PAGES])
async def test_head_answers_as_get_does(client: httpx2.AsyncClient, path: str) -> None:
    got = await client.get(path)
    headed = await client.head(path)

    assert headed.status_code == got.status_code == 200
    assert headed.headers["Content-Type"] == got.headers["Content-Type"]


@pytest.mark.shared_service
@pytest.mark.parametrize("path", ["/v1/project", "/v1/send", *PAGES])
async def test_options_names_the_methods(client: httpx2.AsyncClient, path: str) -> None:
    answer = await client.options(path, headers={"Authorization": ""})

    assert answer.status_code == 204
    assert ("POST" if path == "/v1/send" else "GET") in answer.headers["Allow"]


async def test_a_path_with_a_nul_byte_is_not_found(
    client: httpx2.AsyncClient, check_error: CheckError
) -> None:
    answer = await client.get("/v1/messages/msg_%00")

    check_error(answer, 404, "not_found")


async def test_a_path_with_invalid_utf_8_is_not_found(
    client: httpx2.AsyncClient, check_error: CheckError
) -> None:
    answer = await client.get("/v1/messages/%ff%fe")

    check_error(answer, 404, "not_found")


@pytest.mark.shared_service
@pytest.mark.parametrize("host", ["[", "[::1", "evil.example/?", ""])
async def test_a_senseless_host_header_does_no_harm(
    client: httpx2.AsyncClient, check_error: CheckError, host: str
) -> None:
    known = await client.get("/v1/project", headers={"Host": host})
    unknown = await client.get("/v1/nothing", headers={"Host": host})

    assert known.status_code == 200
    check_error(unknown, 404, "not_found")


@pytest.mark.shared_service
@pytest.mark.parametrize(
    "query", ["limit=1&limit=2", "limit=0", "limit=101", "limit=x", "lmit=1", "a=%00"]
)
async def test_a_senseless_query_is_validation_failed(
    client: httpx2.AsyncClient, check_error: CheckError, query: str
) -> None:
    answer = await client.get(f"/v1/messages?{query}")

    check_error(answer, 400, "validation_failed")


async def test_every_answer_has_a_request_id_of_its_own(client: httpx2.AsyncClient) -> None:
    answers = [await client.get(path) for path in ("/v1/project", "/v1/nothing", "/docs", "/docs")]

    assert len({answer.headers["X-Request-Id"] for answer in answers}) == 4


async def test_a_request_id_from_outside_is_not_taken_over(client: httpx2.AsyncClient) -> None:
    answer = await client.get("/v1/project", headers={"X-Request-Id": "req_mine"})

    assert answer.headers["X-Request-Id"] != "req_mine"


async def test_browsers_of_other_sites_are_let_in_only_by_setting(
    make_service: ServiceFactory, make_tenant: object, client: httpx2.AsyncClient
) -> None:
    site = "https://shop.example"
    asks = {"Origin": site, "Access-Control-Request-Method": "POST"}
    service = await make_service(server={"cors_origins": [site]})
    transport = httpx2.ASGITransport(app=service.app)
    async with httpx2.AsyncClient(
        transport=transport, base_url="http://msgsvc.test"
    ) as open_client:
        allowed = await open_client.options("/v1/send", headers=asks)

    refused = await client.options("/v1/send", headers=asks)

    assert allowed.headers["Access-Control-Allow-Origin"] == site
    assert "Access-Control-Allow-Origin" not in refused.headers


async def test_a_page_that_fails_is_in_the_envelope_too(
    service: Service,
    client: httpx2.AsyncClient,
    check_error: CheckError,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(_catalogue: ErrorCatalogue) -> None:
        raise RuntimeError("there is no catalogue")

    monkeypatch.setattr(ErrorCatalogue, "__iter__", fail)

    answer = await client.get("/docs/errors")

    assert "request id" in check_error(answer, 500, "internal_error")["error"]


async def test_a_database_that_is_away_is_unavailable(
    service: Service, tenant: Tenant, check_error: CheckError
) -> None:
    await service.db.disconnect()

    answer = await tenant.client.get("/v1/project")

    check_error(answer, 503, "unavailable")
    assert answer.headers["Retry-After"] == "1"
    await service.db.connect()


@pytest.mark.parametrize(
    ("asked", "heading"), [("ru, en;q=0.5", "Страница не найдена"), ("de", "Page not found")]
)
async def test_a_browser_reads_a_page_where_nothing_is_and_a_program_the_envelope(
    client: httpx2.AsyncClient, check_error: CheckError, asked: str, heading: str
) -> None:
    browser = {"Accept": "text/html,application/xhtml+xml", "Accept-Language": asked}
    page = await client.get("/nowhere", headers=browser)

    assert (page.status_code, f"<h1>{heading}</h1>" in page.text) == (404, True)
    check_error(await client.get("/nowhere"), 404, "not_found")
    check_error(await client.get("/v1/nowhere", headers=browser), 404, "not_found")


async def test_a_browser_finds_an_icon_under_the_name_that_it_asks_for(
    client: httpx2.AsyncClient,
) -> None:
    answer = await client.get("/favicon.ico")

    assert (answer.status_code, answer.headers["content-type"]) == (200, "image/svg+xml")


async def test_a_browser_at_the_front_door_is_led_to_the_page_that_a_plugin_calls_home(
    make_service: ServiceFactory,
) -> None:
    service = await make_service(plugins=("dashboard",))
    transport = httpx2.ASGITransport(app=service.app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://msgsvc.test") as client:
        answer = await client.get("/")

    assert (answer.status_code, answer.headers["location"]) == (307, "/dashboard")


async def test_a_browser_at_the_front_door_is_led_to_the_description(
    client: httpx2.AsyncClient,
) -> None:
    answer = await client.get("/", follow_redirects=True)

    assert answer.url.path == "/docs"
    assert answer.status_code == 200


@pytest.mark.shared_service
@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/sandbox/p/%00", 404),
        ("/v1/messages/a%00b", 404),
        ("/f/%00", 404),
        ("/login/%00", 404),
        ("/login/shop?state=a%00b", 400),
        ("/v1/messages?channel=%00", 400),
        ("/sandbox/?x=%00", 400),
        ("/docs?%00=1", 400),
    ],
)
async def test_nul_is_nowhere(
    client: httpx2.AsyncClient, check_error: CheckError, path: str, status: int
) -> None:
    answer = await client.get(path)

    check_error(answer, status, "not_found" if status == 404 else "validation_failed")


async def test_a_refused_key_is_told_how_to_authenticate(client: httpx2.AsyncClient) -> None:
    answer = await client.get("/v1/project", headers={"Authorization": "Bearer nonsense"})

    assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
