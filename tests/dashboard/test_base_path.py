"""The service below a path of its host, whose proxy passes the path on or strips it."""

import re
from collections.abc import Callable
from html import unescape
from urllib.parse import urljoin, urlsplit

import httpx2
import pytest

from msgsvc_core.service import Service
from msgsvc_dashboard.frame.browser import CSRF_FIELD, csrf_token
from msgsvc_devkit.dashboard import visitor
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from tests.api.resources import MiniAppPlugin
from tests.dashboard.walking import SETTINGS, at, pages_of

#: The path that a proxy asks the service for, of the one that a browser asks it for.
Proxy = Callable[[str], str]

#: Where the service is.
BASE = "/office/notify"
ORIGIN = "http://msgsvc.test"

_ADDRESS = re.compile(r'\s(?:href|src|action|formaction|hx-get|hx-post|data-[a-z-]+)="(/[^"]*)"')
_IN_SCRIPTS = re.compile(r"""(?:from|import)\s*["'](\.?\.?/[^"']+)["']|url\(["']?([^"')]+)""")


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    return await make_service(
        extra_plugins=[("mini_app", MiniAppPlugin())],
        **SETTINGS,
        base_url=ORIGIN + BASE,
        jobs={"runner": "none"},
    )


def stripped(path: str) -> str:
    """What a proxy that strips the path asks for."""
    return path.removeprefix(BASE) or "/"


def passed_on(path: str) -> str:
    return path


async def follow(client: httpx2.AsyncClient, path: str, proxy: Proxy) -> httpx2.Response:
    """The answer at an address as the browser has it, and where a redirect leads."""
    for _ in range(5):
        answer = await client.get(proxy(path))
        if not answer.is_redirect:
            return answer
        target = urlsplit(urljoin(ORIGIN + path, answer.headers["location"]))
        assert target.path.startswith(BASE), f"{path} leads to {answer.headers['location']}"
        path = target.path + (f"?{target.query}" if target.query else "")
    raise AssertionError(f"{path} redirects again and again")


@pytest.mark.parametrize("proxy", [passed_on, stripped])
async def test_every_address_of_every_page_is_below_the_path(
    service: Service, tenant: Tenant, proxy: Proxy
) -> None:
    project_id = tenant.project.project_id
    link = {"slug": "shop", "name": "Shop", "callback_url": "https://shop.example/callback"}
    form = {
        "slug": "contact",
        "title": "Contact",
        "fields": [{"key": "name", "type": "text", "label": "Name"}],
    }
    for path, body in (("/v1/auth/links", link), ("/v1/forms", form)):
        assert (await tenant.client.post(BASE + path, json=body)).status_code == 201
    form_id = (await tenant.client.get("/v1/forms")).json()["data"][0]["form_id"]
    owner = await visitor(service, project_id)
    pages = [
        at(page, project_id, {}).url
        for page in pages_of(service)
        if page.method == "GET" and "{" not in page.path
    ]
    public = [
        *("/", "", "/docs", "/docs/errors", "/nothing", "/login/shop", f"/f/{form_id}", "/sandbox"),
        "/dashboard/sign-in",
        f"/oidc/{project_id}/device",
    ]
    wrong, files = [], set[str]()
    owner.client.headers["accept"] = "text/html"
    for path in [*public, *pages]:
        answer = await follow(owner.client, BASE + path, proxy)
        assert answer.status_code < 500, path
        # Of operations, the reference shows the paths below the server that it names.
        html = re.sub(r'data-path="[^"]*"', "", answer.text)
        for address in map(unescape, _ADDRESS.findall(html)):
            if not address.startswith(f"{BASE}/") and address != BASE:
                wrong.append((path, address))
            elif "_static" in address or address.endswith((".js", ".css", ".svg")):
                files.add(address.partition("#")[0])
    answers = {each: await owner.client.get(proxy(each)) for each in files}
    missing = [each for each, answer in answers.items() if answer.status_code != 200]
    for each, answer in answers.items():
        for found in _IN_SCRIPTS.findall(answer.text):
            target = urlsplit(urljoin(each, "".join(found)))
            if not target.scheme and not target.path.startswith(f"{BASE}/"):
                wrong.append((each, target.path))
    await owner.client.aclose()

    assert wrong == []
    assert missing == []
    assert len(files) > 10


@pytest.mark.parametrize("proxy", [passed_on, stripped])
async def test_openid_connect_and_the_api_work_below_the_path(
    service: Service, tenant: Tenant, proxy: Proxy
) -> None:
    issuer = f"{BASE}/oidc/{tenant.project.project_id}"
    found = await tenant.client.get(proxy(f"{issuer}/.well-known/openid-configuration"))
    keys = await tenant.client.get(proxy(urlsplit(found.json()["jwks_uri"]).path))
    project = await tenant.client.get(proxy(f"{BASE}/v1/project"))
    ready = await tenant.client.get("/readyz")
    document = (await tenant.client.get(proxy(f"{BASE}/openapi.json"))).json()

    assert found.json()["issuer"] == ORIGIN + issuer
    assert all(
        value.startswith(f"{ORIGIN}{BASE}/")
        for name, value in found.json().items()
        if name.endswith(("_endpoint", "_uri"))
    )
    assert (keys.status_code, project.status_code, ready.status_code) == (200, 200, 200)
    assert document["servers"] == [{"url": ORIGIN + BASE}]


@pytest.mark.parametrize("proxy", [passed_on, stripped])
async def test_cookies_come_back_to_the_path(
    service: Service, tenant: Tenant, proxy: Proxy
) -> None:
    owner = await visitor(service, tenant.project.project_id)
    answer = await owner.client.get(proxy(f"{BASE}/sandbox"))
    token = csrf_token(service.secrets, owner.session_id)
    signed_out = await owner.client.post(
        proxy(f"{BASE}/dashboard/sign-out"),
        data={CSRF_FIELD: token},
    )
    await owner.client.aclose()
    paths = re.findall(
        r"[Pp]ath=([^;,]+)",
        ";".join(
            [*answer.headers.get_list("set-cookie"), *signed_out.headers.get_list("set-cookie")]
        ),
    )

    assert paths
    assert all(path == "/" or path.startswith(BASE) for path in paths), paths
