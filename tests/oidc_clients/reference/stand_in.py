"""The certified provider `oidc-provider`, and a person who fills in its forms."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from playwright.async_api import Page

from tests.oidc_clients.browsing import Walk, browser
from tests.oidc_clients.programs import node, node_environment
from tests.oidc_clients.provider import Answer, ClientSpec, RegisteredClient
from tests.ports import free_ports
from tests.process import start_server

SCRIPT = Path(__file__).with_name("provider.mjs")

#: What the person enters as their login; `sub` and names are that.
PERSON = "Ann"


@dataclass(frozen=True, slots=True)
class ReferenceProvider:
    """See `Provider`."""

    issuer: str
    hint: str = PERSON

    async def register(self, spec: ClientSpec) -> RegisteredClient:
        asked: dict[str, object] = {
            "client_name": spec.name,
            "redirect_uris": list(spec.redirect_uris),
            "token_endpoint_auth_method": spec.auth_method,
            "grant_types": list(spec.grant_types),
            "response_types": ["code"] if "authorization_code" in spec.grant_types else [],
            "post_logout_redirect_uris": list(spec.post_logout_redirect_uris),
        }
        if spec.backchannel_logout_uri:
            asked["backchannel_logout_uri"] = spec.backchannel_logout_uri
            asked["backchannel_logout_session_required"] = True
        if spec.jwks is not None:
            asked["jwks"] = spec.jwks
        if "urn:openid:params:grant-type:ciba" in spec.grant_types:
            asked["backchannel_token_delivery_mode"] = "poll"
        async with httpx2.AsyncClient() as client:
            answer = await client.post(f"{self.issuer}/reg", json=asked)
        assert answer.status_code == 201, answer.text
        made = answer.json()
        return RegisteredClient(made["client_id"], made.get("client_secret"))

    async def sign_in(self, url: str, cookies: httpx2.Cookies, *, yes: bool = True) -> Answer:
        async with browser(cookies) as client:
            if yes:
                answer = Answer(*await self._walk(client).go(url))
            else:
                page = await client.get(url, follow_redirects=True)
                gone = await client.get(f"{page.url}/abort", follow_redirects=False)
                answer = Answer(*await self._walk(client).go(gone.headers["location"]))
            cookies.update(client.cookies)
        return answer

    async def sign_in_page(self, page: Page) -> None:
        await page.locator("input[name=login]").fill(PERSON)
        await page.locator("input[name=password]").fill("any")
        await page.locator("button[type=submit]").click()
        # The page of the consent.
        await page.locator("input[name=prompt][value=consent]").wait_for(state="attached")
        await page.locator("button[type=submit]").click()

    async def log_out(self, url: str, cookies: httpx2.Cookies) -> Answer:
        async with browser(cookies) as client:
            answer = Answer(*await self._walk(client, presses=("logout",)).go(url))
            cookies.update(client.cookies)
        return answer

    async def log_out_page(self, page: Page) -> None:
        await page.locator("button[name=logout]").click()

    async def answer_device(self, uri: str, user_code: str, *, yes: bool = True) -> None:
        async with httpx2.AsyncClient() as client:
            walk = self._walk(client, user_code=user_code, presses=() if yes else ("abort",))
            await walk.go(uri)

    async def answer_ciba(
        self, started: Mapping[str, Any], message: str, *, yes: bool = True
    ) -> None:
        asked = started["auth_req_id"]
        await self._tell("ciba", auth_req_id=asked, answer="yes" if yes else "no")

    async def advance(self, seconds: int) -> None:
        """Lets time pass, for the provider alone."""
        await self._tell("advance", seconds=str(seconds))

    async def _tell(self, what: str, **values: str) -> None:
        async with httpx2.AsyncClient() as client:
            answer = await client.get(f"{self.issuer}/test/{what}", params=values)
        assert answer.status_code == 204, answer.text

    def _walk(
        self, client: httpx2.AsyncClient, *, user_code: str = "", presses: Collection[str] = ()
    ) -> Walk:
        entries = {"login": PERSON, "password": "any", "user_code": user_code}
        return Walk(client, self.issuer, entries, presses)


@contextmanager
def reference_provider(folder: Path, *options: str) -> Iterator[ReferenceProvider]:
    """The provider in a process of its own, with the options of its script. Its log is `reference.log` in
    the folder."""
    port = free_ports()
    log = folder / "reference.log"
    server = start_server([node(), SCRIPT, str(port), *options], log, node_environment())
    try:
        yield ReferenceProvider(server.url)
    finally:
        server.kill()
