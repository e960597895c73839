"""Apache with `mod_auth_openidc` before an application: discovery, PKCE, claims, refresh, logouts."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization

from msgsvc_devkit import until
from msgsvc_devkit.web_servers import stop
from tests.oidc_clients.browsing import browser
from tests.oidc_clients.jwk import KID, rsa_jwks
from tests.oidc_clients.programs import missing, program, serving
from tests.oidc_clients.provider import Answer, AuthMethod, ClientSpec, Provider
from tests.ports import free_ports

TEMPLATE = Path(__file__).with_name("mod_auth_openidc.conf")
MODULES = Path("/usr/lib/apache2/modules")


@dataclass(slots=True)
class Site:
    """The site, and a browser of a person who may be signed in there and at the provider."""

    url: str
    browser: httpx2.AsyncClient
    provider: Provider
    #: The browser's cookies at the provider: both stand on one host, which cookies can't tell by port.
    cookies: httpx2.Cookies

    async def visit(self) -> httpx2.Response:
        return await self.browser.get("/app/page")

    async def sign_in(self) -> dict[str, str]:
        """Opens a page, signs in, and is back there; the headers that the application then gets."""
        sent_away = await self.visit()
        assert sent_away.status_code == 302, sent_away.text
        page = await self._take(
            await self.provider.sign_in(sent_away.headers["location"], self.cookies)
        )
        assert page.status_code == 302, page.text
        headers: dict[str, str] = (await self.browser.get(page.headers["location"])).json()
        return headers

    async def info(self) -> dict[str, Any]:
        """What the module knows of the session."""
        told: dict[str, Any] = (await self.browser.get("/app/callback?info=json")).json()
        return told

    async def _take(self, answer: Answer) -> httpx2.Response:
        if answer.form is None:
            return await self.browser.get(answer.url)
        return await self.browser.post(answer.url, data=answer.form)


MakeSite = Callable[..., Awaitable[Site]]


@pytest.fixture
async def make_site(provider: Provider, tmp_path: Path) -> AsyncIterator[MakeSite]:
    """Starts sites; registers each as a client of the provider."""
    if not (MODULES / "mod_auth_openidc.so").exists():
        missing("libapache2-mod-auth-openidc")
    apache = program("apache2")
    async with AsyncExitStack() as stack:

        async def make(
            auth_method: AuthMethod = "client_secret_basic", response_mode: str = "query"
        ) -> Site:
            port = free_ports()
            url = f"http://127.0.0.1:{port}"
            client = await provider.register(
                ClientSpec(
                    name="Apache",
                    redirect_uris=[f"{url}/app/callback"],
                    post_logout_redirect_uris=[f"{url}/bye"],
                    backchannel_logout_uri=f"{url}/app/callback?logout=backchannel",
                    auth_method=auth_method,
                    jwks=_make_key(tmp_path) if auth_method == "private_key_jwt" else None,
                )
            )
            config = tmp_path / "apache.conf"
            config.write_text(
                TEMPLATE.read_text().format(
                    folder=tmp_path,
                    modules=MODULES,
                    port=port,
                    behind=await stack.enter_async_context(_application()),
                    issuer=provider.issuer,
                    client_id=client.client_id,
                    credentials=_credentials(client.client_secret, tmp_path),
                    auth_method=auth_method,
                    response_mode=response_mode,
                )
            )
            command = (apache, "-X", "-f", config)
            await stack.enter_async_context(serving(command, tmp_path / "error.log", url))
            visitor = await stack.enter_async_context(browser(base_url=url))
            return Site(url, visitor, provider, httpx2.Cookies())

        yield make


def _credentials(secret: str | None, folder: Path) -> str:
    """What the module authenticates by. Its key has a name, by which the provider finds the public half."""
    if secret is not None:
        return f"OIDCClientSecret {secret}"
    return f"OIDCPublicKeyFiles {KID}#{folder}/key.pem\nOIDCPrivateKeyFiles {KID}#{folder}/key.pem"


def _make_key(folder: Path) -> dict[str, object]:
    """Writes a key with a certificate that it has signed itself; the public half for the provider."""
    public, key = rsa_jwks()
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "app.example")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    (folder / "key.pem").write_bytes(private + pem)
    return public


@asynccontextmanager
async def _application() -> AsyncIterator[int]:
    """An application that answers with the headers that it gets; the port."""

    async def tell(request: web.Request) -> web.Response:
        return web.json_response(dict(request.headers))

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", tell)
    runner = web.AppRunner(app)
    await runner.setup()
    port = free_ports()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        yield port
    finally:
        await stop(runner)


@pytest.mark.parametrize(
    "auth_method", ["client_secret_basic", "client_secret_post", "private_key_jwt"]
)
async def test_the_application_learns_who_has_signed_in(
    make_site: MakeSite, auth_method: AuthMethod
) -> None:
    site = await make_site(auth_method)

    headers = await site.sign_in()
    again = await site.visit()

    assert headers["OIDC_CLAIM_sub"]
    assert headers["OIDC_CLAIM_name"]
    assert headers["OIDC_CLAIM_iss"] == site.provider.issuer
    assert again.json()["OIDC_CLAIM_sub"] == headers["OIDC_CLAIM_sub"]


async def test_the_module_publishes_the_keys_that_are_to_be_registered(make_site: MakeSite) -> None:
    site = await make_site("private_key_jwt")

    published = (await site.browser.get("/app/callback", params={"jwks": "rsa"})).json()

    [key] = published["keys"]
    assert (key["kty"], key["kid"]) == ("RSA", KID)


async def test_the_answer_may_be_posted(make_site: MakeSite) -> None:
    site = await make_site(response_mode="form_post")

    assert (await site.sign_in())["OIDC_CLAIM_sub"]


async def test_the_module_refreshes_its_token(make_site: MakeSite) -> None:
    site = await make_site()
    await site.sign_in()
    before = await site.info()

    back = await site.browser.get(
        "/app/callback",
        params={"refresh": f"{site.url}/app/page", "access_token": before["access_token"]},
    )
    after = await site.info()

    assert back.headers["location"] == f"{site.url}/app/page"
    for token in ("access_token", "refresh_token"):
        assert before[token] != after[token]
    assert after["userinfo"]["name"]


async def test_a_logout_at_the_site_leads_through_the_provider_and_back(
    make_site: MakeSite,
) -> None:
    site = await make_site()
    await site.sign_in()

    sent = await site.browser.get("/app/callback", params={"logout": f"{site.url}/bye"})
    answer = await site.provider.log_out(sent.headers["location"], site.cookies)

    assert answer.url == f"{site.url}/bye"
    assert (await site.visit()).status_code == 302


async def test_a_logout_elsewhere_ends_the_session_at_the_site(
    make_site: MakeSite,
) -> None:
    site = await make_site()
    await site.sign_in()
    here = (await site.visit()).status_code

    async with httpx2.AsyncClient() as client:
        metadata = await client.get(f"{site.provider.issuer}/.well-known/openid-configuration")
    await site.provider.log_out(metadata.json()["end_session_endpoint"], site.cookies)

    async def gone() -> bool:
        return (await site.visit()).status_code == 302

    await until(gone)
    assert here == 200
