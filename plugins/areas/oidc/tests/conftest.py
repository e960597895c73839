"""A service with the provider, clients of it, and people's browsers.

The plugin that signs people in does so as a test says: what the pages of `auth` do has tests of its own, and
the tests of whole sign-ins, from the client's redirect to the bot's button, are in `tests/oidc`.
"""

import base64
import hashlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from msgsvc_core.channels import ChannelUser, Identity
from msgsvc_core.plugins.sign_ins import SignInMethod
from msgsvc_core.service import Service
from msgsvc_core.subscribers.models import Subscriber
from msgsvc_oidc import plugin
from msgsvc_oidc.consents.service import Consents
from msgsvc_oidc.journal.store import list_entries
from plugins.areas.oidc.tests.sign_ins import ScriptedSignIns

CALLBACK = "https://app.example/callback"

#: Clients of the project, in the API.
PATH = "/v1/oidc/clients"

#: A PKCE verifier, and its challenge.
VERIFIER = "v" * 43
CHALLENGE = (
    base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()
)

#: Keys that are made in no time; RS256 has tests of its own.
FAST_KEYS = {"signing_alg": "ES256"}


@dataclass
class Visitor:
    """A person and their browser, which keeps cookies and follows no redirect by itself."""

    service: Service
    http: httpx2.AsyncClient
    sign_ins: ScriptedSignIns
    subscriber: Subscriber
    project_id: str

    @property
    def issuer(self) -> str:
        return f"/oidc/{self.project_id}"

    async def authorize(self, client: dict[str, Any], **changed: Any) -> httpx2.Response:
        """Follows the client's redirect to the authorization endpoint. A parameter of None is left out."""
        query = {
            "response_type": "code",
            "client_id": client["client_id"],
            "redirect_uri": CALLBACK,
            "scope": "openid",
            "state": "state-1",
            "nonce": "nonce-1",
            "code_challenge": CHALLENGE,
            "code_challenge_method": "S256",
            **changed,
        }
        given = {name: value for name, value in query.items() if value is not None}
        return await self.http.get(f"{self.issuer}/authorize", params=given)

    async def press_yes(
        self, method: SignInMethod = "button", proves: Identity = "account"
    ) -> httpx2.Response:
        """Says Yes on the sign-in page that was opened last, and returns from there."""
        started = self.sign_ins.latest
        code = self.sign_ins.confirm(started.session_id, self.subscriber, method, proves)
        return await self.http.get(
            f"{self.issuer}/return", params={"code": code, "state": started.request.state}
        )

    async def answer_consent(self, page: httpx2.Response, answer: str) -> httpx2.Response:
        """Opens the consent page that `page` leads to, and presses a button."""
        assert page.status_code == 303, page.text
        path = urlsplit(page.headers["Location"]).path
        shown = await self.http.get(path)
        assert shown.status_code == 200, shown.text
        return await self.http.post(path, data={"answer": answer})

    async def sign_in(
        self, client: dict[str, Any], method: SignInMethod = "button", **changed: Any
    ) -> httpx2.Response:
        """The whole way, with consent where it is asked; the last response leads to the client."""
        page = await self.authorize(client, **changed)
        assert page.status_code == 303, page.text
        if "/login/" in page.headers["Location"]:
            page = await self.press_yes(method)
        if "/consent/" in page.headers.get("Location", ""):
            page = await self.answer_consent(page, "allow")
        return page

    async def code(self, client: dict[str, Any], **changed: Any) -> str:
        """An authorization code."""
        return answer_of(await self.sign_in(client, **changed))["code"]

    async def token(self, client: dict[str, Any], **fields: Any) -> httpx2.Response:
        """A request to the token endpoint, authenticated in the client's way."""
        return await self.post(client, "/token", **fields)

    async def post(self, client: dict[str, Any], path: str, **fields: Any) -> httpx2.Response:
        """A form for an endpoint, authenticated in the client's way. A field of None is left out."""
        form, auth = dict(fields), None
        if client["token_endpoint_auth_method"] == "client_secret_basic":
            auth = (client["client_id"], client["client_secret"])
        elif client["token_endpoint_auth_method"] == "client_secret_post":
            form |= {"client_id": client["client_id"], "client_secret": client["client_secret"]}
        else:
            form |= {"client_id": client["client_id"]}
        given = {name: value for name, value in form.items() if value is not None}
        return await self.http.post(f"{self.issuer}{path}", data=given, auth=auth)

    async def exchange(self, client: dict[str, Any], code: str, **changed: Any) -> httpx2.Response:
        """Exchanges a code."""
        fields = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": CALLBACK,
            "code_verifier": VERIFIER,
            **changed,
        }
        return await self.token(client, **fields)

    async def tokens(self, client: dict[str, Any], **changed: Any) -> dict[str, Any]:
        """The tokens of a new sign-in."""
        response = await self.exchange(client, await self.code(client, **changed))
        assert response.status_code == 200, response.text
        found: dict[str, Any] = response.json()
        return found

    async def refresh(self, client: dict[str, Any], token: str, **fields: Any) -> httpx2.Response:
        """Uses a refresh token."""
        return await self.token(client, grant_type="refresh_token", refresh_token=token, **fields)

    async def userinfo(self, access_token: str) -> httpx2.Response:
        """Asks who the person is."""
        headers = {"Authorization": f"Bearer {access_token}"}
        return await self.http.get(f"{self.issuer}/userinfo", headers=headers)

    def claims(self, tokens: dict[str, Any]) -> dict[str, Any]:
        """What the ID token says; its signature has tests of its own."""
        payload = tokens["id_token"].split(".")[1]
        found: dict[str, Any] = json.loads(
            base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4))
        )
        return found

    async def take_back(self, client: dict[str, Any]) -> None:
        """Takes the consent for a client back."""
        person = (self.project_id, client["client_id"], self.subscriber.subscriber_id)
        async with self.service.db.transaction() as tx:
            assert await self.service.get(Consents).take_back(tx, *person)

    async def consents(self) -> list[tuple[str, tuple[str, ...]]]:
        """The names of the clients that the person allowed, with the scopes."""
        async with self.service.db.read() as tx:
            given = await self.service.get(Consents).list_of(
                tx, self.project_id, self.subscriber.subscriber_id
            )
        return [(consent.client_name, consent.scopes) for consent in given]

    async def outcomes(self, client: dict[str, Any]) -> list[tuple[str, str]]:
        """Flow and outcome of a client's sign-ins in the journal, newest first."""
        async with self.service.db.read() as tx:
            entries = await list_entries(tx, self.project_id, client["client_id"], None, 100)
        return [(entry.flow, entry.outcome) for entry in entries]


def answer_of(response: httpx2.Response) -> dict[str, str]:
    """The parameters that a redirect takes to the client."""
    assert response.status_code == 303, response.text
    location = response.headers["Location"]
    assert location.startswith(CALLBACK), location
    return {name: values[0] for name, values in parse_qs(urlsplit(location).query).items()}


@dataclass
class Registry:
    """Registers clients by the API."""

    client: httpx2.AsyncClient
    made: list[dict[str, Any]] = field(default_factory=list)

    async def __call__(self, **changed: Any) -> dict[str, Any]:
        body = {"name": "Grafana", "redirect_uris": [CALLBACK], **changed}
        response = await self.client.post(PATH, json=body)
        assert response.status_code == 201, response.text
        self.made.append(response.json())
        return self.made[-1]


@pytest.fixture
def sign_ins(clock: Any) -> ScriptedSignIns:
    return ScriptedSignIns(clock)


@pytest.fixture
def oidc_settings() -> dict[str, Any]:
    """Settings of the section `[oidc]`, for a module to change."""
    return dict(FAST_KEYS)


@pytest.fixture
async def service(
    make_service: Callable[..., Awaitable[Service]],
    sign_ins: ScriptedSignIns,
    oidc_settings: dict[str, Any],
) -> Service:
    plugins = [("signing", sign_ins), ("oidc", plugin)]
    return await make_service(
        extra_plugins=plugins, oidc=oidc_settings, base_url="http://msgsvc.test"
    )


@pytest.fixture
def register(client: httpx2.AsyncClient) -> Registry:
    return Registry(client)


@pytest.fixture
async def new_visitor(
    service: Service, sign_ins: ScriptedSignIns, tenant: Any
) -> AsyncIterator[Callable[..., Awaitable[Visitor]]]:
    opened: list[httpx2.AsyncClient] = []

    async def make(name: str = "Ann", user_id: str = "1001") -> Visitor:
        project_id = tenant.project.project_id
        async with service.db.transaction() as tx:
            subscriber = await service.subscribers.ensure(
                tx,
                project_id,
                "messenger_a",
                ChannelUser(user_id, name, f"{name.lower()}_k", "en"),
                f"chat-{user_id}",
                source="auth",
            )
        transport = httpx2.ASGITransport(app=service.app, client=("203.0.113.7", 50000))
        http = httpx2.AsyncClient(transport=transport, base_url="http://msgsvc.test")
        opened.append(http)
        return Visitor(service, http, sign_ins, subscriber, project_id)

    yield make
    for http in opened:
        await http.aclose()


@pytest.fixture
async def ann(new_visitor: Callable[..., Awaitable[Visitor]]) -> Visitor:
    return await new_visitor()
