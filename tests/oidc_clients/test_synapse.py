"""Matrix Synapse: a home server whose accounts are made and entered by the provider alone."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from msgsvc_devkit import until
from tests.oidc_clients.browsing import browser
from tests.oidc_clients.programs import python, serving
from tests.oidc_clients.provider import AuthMethod, ClientSpec, Provider
from tests.ports import free_ports

TEMPLATE = Path(__file__).with_name("synapse.yaml")

#: What its error pages say, among much else.
ERROR = re.compile(r'id="errormsg">(.*?)<')

#: Of a Matrix client that runs in the browser; nobody listens there.
APP = "http://127.0.0.1:18080/"

LOG_CONFIG = """\
version: 1
handlers: {console: {class: logging.StreamHandler, stream: ext://sys.stderr}}
root: {level: WARNING, handlers: [console]}
disable_existing_loggers: false
"""


#: Of a home server that talks with no other: its own command for making one takes seconds.
SIGNING_KEY = f"ed25519 a_test {'A' * 43}\n"


@dataclass(slots=True)
class HomeServer:
    """A home server, and a browser of a person."""

    browser: httpx2.AsyncClient
    provider: Provider
    cookies: httpx2.Cookies

    async def sign_in(self) -> str:
        """Signs in as the Matrix specification tells clients to; the access token."""
        sent = await self.browser.get(
            "/_matrix/client/v3/login/sso/redirect/oidc-messenger", params={"redirectUrl": APP}
        )
        assert sent.status_code == 302, sent.text
        answer = await self.provider.sign_in(sent.headers["location"], self.cookies)
        back = await self.browser.get(answer.url)
        assert back.status_code == 302, ERROR.findall(back.text)
        login_token = parse_qs(urlsplit(back.headers["location"]).query)["loginToken"][0]
        done = await self.browser.post(
            "/_matrix/client/v3/login", json={"type": "m.login.token", "token": login_token}
        )
        return str(done.raise_for_status().json()["access_token"])

    async def get(self, path: str, token: str) -> httpx2.Response:
        return await self.browser.get(
            f"/_matrix/client/v3/{path}", headers={"Authorization": f"Bearer {token}"}
        )


MakeServer = Callable[..., Awaitable[HomeServer]]


@pytest.fixture
async def make_server(provider: Provider, tmp_path: Path) -> AsyncIterator[MakeServer]:
    """Starts home servers; registers each as a client of the provider."""
    interpreter = python("synapse")
    async with AsyncExitStack() as stack:

        async def make(
            auth_method: AuthMethod = "client_secret_basic", user_profile_method: str = "auto"
        ) -> HomeServer:
            port = free_ports()
            url = f"http://127.0.0.1:{port}"
            client = await provider.register(
                ClientSpec(
                    name="Matrix",
                    redirect_uris=[f"{url}/_synapse/client/oidc/callback"],
                    backchannel_logout_uri=f"{url}/_synapse/client/oidc/backchannel_logout",
                    auth_method=auth_method,
                )
            )
            (tmp_path / "log.yaml").write_text(LOG_CONFIG)
            (tmp_path / "signing.key").write_text(SIGNING_KEY)
            config = tmp_path / "synapse.yaml"
            config.write_text(
                TEMPLATE.read_text().format(
                    folder=tmp_path,
                    url=url,
                    port=port,
                    app=APP,
                    issuer=provider.issuer,
                    client_id=client.client_id,
                    client_secret=client.client_secret,
                    auth_method=auth_method,
                    user_profile_method=user_profile_method,
                )
            )
            command = (interpreter, "-m", "synapse.app.homeserver", "--config-path", config)
            await stack.enter_async_context(
                serving(command, tmp_path / "synapse.log", f"{url}/health")
            )
            visitor = await stack.enter_async_context(browser(base_url=url))
            return HomeServer(visitor, provider, httpx2.Cookies())

        yield make


@pytest.mark.parametrize("user_profile_method", ["auto", "userinfo_endpoint"])
async def test_a_person_gets_an_account_and_comes_back_to_it(
    make_server: MakeServer, user_profile_method: str
) -> None:
    server = await make_server(user_profile_method=user_profile_method)

    first = await server.get("account/whoami", await server.sign_in())
    user_id = first.json()["user_id"]
    second_token = await server.sign_in()
    second = await server.get("account/whoami", second_token)
    profile = await server.get(f"profile/{user_id}/displayname", second_token)

    assert user_id.endswith(":matrix.example")
    assert second.json()["user_id"] == user_id
    assert profile.json()["displayname"]


async def test_a_logout_at_the_provider_ends_the_session_at_the_home_server(
    make_server: MakeServer,
) -> None:
    server = await make_server()
    token = await server.sign_in()
    before = await server.get("account/whoami", token)

    async with httpx2.AsyncClient() as client:
        found = await client.get(f"{server.provider.issuer}/.well-known/openid-configuration")
    await server.provider.log_out(found.json()["end_session_endpoint"], server.cookies)

    async def gone() -> bool:
        return (await server.get("account/whoami", token)).status_code == 401

    await until(gone)
    assert before.status_code == 200
