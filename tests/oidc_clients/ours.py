"""Our provider, in a process of its own, and a person who presses Yes in the sandbox messenger."""

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import httpx2
from playwright.async_api import Page

from msgsvc_devkit import until
from msgsvc_devkit.platforms.sandbox import Sandbox, SandboxPerson
from tests.oidc_clients.browsing import MAX_STEPS, browser, forms_of, is_at
from tests.oidc_clients.provider import Answer, ClientSpec, RegisteredClient
from tests.oidc_clients.reference import clock_ahead
from tests.ports import free_ports
from tests.process import Deployment, install_module

#: Limits that tests of an hour's sign-ins would meet.
SETTINGS = """\
base_url = "{url}"
plugins = ["sandbox", "auth", "oidc"]

[channels.messenger_a]
plugin = "sandbox"

[auth]
sessions_per_hour = 100000
sessions_per_hour_per_address = 100000
pages_per_hour_per_address = 100000
questions_per_hour = 1000
questions_pending = 1000

[oidc]
poll_interval_s = {interval_s}
requests_per_minute_per_address = 100000
failures_per_minute_per_client = 100000
device_codes_per_minute_per_address = 100000
allow_http_logout = true
allow_cidrs = ["127.0.0.0/8"]

[limits]
requests_per_minute = 100000
"""

#: The bot's link on the sign-in page, where the page leads without scripts, and back after a Cancel.
BOT_LINK = re.compile(r'data-channel="messenger_a" href="([^"]+)"')
REFRESH = re.compile(r'http-equiv="refresh" content="\d+; url=([^"]+)"')
BACK = re.compile(r'data-status="denied".*<a class="button[^"]*" href="([^"]+)"', re.DOTALL)

#: The number that the page shows where the person has to choose it in the messenger.
NUMBER = re.compile(r'class="number">(\d+)<')

#: The button that says Yes, by the last of its form, which says No.
YES = {"deny": "allow", "stay": "sign_out"}

#: The project's own id of the person.
EXTERNAL_ID = "ann-1"

SCOPES = ["openid", "profile", "email", "phone", "offline_access", "notify"]


@dataclass(frozen=True, slots=True)
class OurProvider:
    """See `Provider`. `api` calls the service as the project's owner."""

    issuer: str
    api: httpx2.AsyncClient
    person: SandboxPerson
    hint: str = EXTERNAL_ID

    async def register(self, spec: ClientSpec) -> RegisteredClient:
        body = {
            "name": spec.name,
            "redirect_uris": list(spec.redirect_uris),
            "post_logout_redirect_uris": list(spec.post_logout_redirect_uris),
            "backchannel_logout_uri": spec.backchannel_logout_uri,
            "token_endpoint_auth_method": spec.auth_method,
            "grant_types": list(spec.grant_types),
            "jwks": spec.jwks,
            "scopes": SCOPES,
        }
        answer = await self.api.post("/v1/oidc/clients", json=body)
        assert answer.status_code == 201, answer.text
        made = answer.json()
        return RegisteredClient(made["client_id"], made.get("client_secret"))

    async def sign_in(self, url: str, cookies: httpx2.Cookies, *, yes: bool = True) -> Answer:
        return await self._walk(url, cookies, yes=yes)

    async def _walk(
        self, url: str, cookies: httpx2.Cookies, *, yes: bool = True, user_code: str = ""
    ) -> Answer:
        """Goes through our pages, to where they lead outside or to one on which nothing is left to do."""
        async with browser(cookies) as client:
            page = await client.get(url)
            for _ in range(MAX_STEPS):
                answer = self._answer_of(page)
                if answer is not None:
                    cookies.update(client.cookies)
                    return answer
                page = await self._next(client, page, yes=yes, user_code=user_code)
        raise AssertionError(f"no end after {MAX_STEPS} pages, last {page.url}")

    def _answer_of(self, page: httpx2.Response) -> Answer | None:
        """Where the page leads outside, by a redirect or by a form; itself if it leads nowhere."""
        if page.is_redirect:
            target = urljoin(str(page.url), page.headers["location"])
            return None if is_at(target, self.issuer) else Answer(target)
        assert page.status_code == 200, f"{page.url}: {page.status_code}"
        forms = forms_of(page)
        for form in forms:
            if not is_at(form.action, self.issuer):
                return Answer(form.action, form.fields)
        leads_on = forms or BOT_LINK.search(page.text) or BACK.search(page.text)
        return None if leads_on else Answer(str(page.url))

    async def _next(
        self, client: httpx2.AsyncClient, page: httpx2.Response, *, yes: bool, user_code: str
    ) -> httpx2.Response:
        if page.is_redirect:
            return await client.get(urljoin(str(page.url), page.headers["location"]))
        if found := BOT_LINK.search(page.text):
            shown = NUMBER.search(page.text)
            agree = shown[1] if shown else "Yes"
            await self._press(unescape(found[1]), agree if yes else "Cancel")
            return await self._answered(client, page)
        if back := BACK.search(page.text):
            return await client.get(urljoin(str(page.url), unescape(back[1])))
        form = forms_of(page)[0]
        filled = dict(form.fields)
        if "user_code" in filled:
            filled["user_code"] = user_code
        if "answer" in form.buttons:
            last = form.buttons["answer"]
            filled["answer"] = YES[last] if yes else last
        return await client.post(form.action, data=filled)

    async def _answered(self, client: httpx2.AsyncClient, page: httpx2.Response) -> httpx2.Response:
        """The sign-in page after the bot has had the answer."""
        found = REFRESH.search(page.text)
        assert found is not None, page.text
        here = urljoin(str(page.url), unescape(found[1]))

        async def moved() -> httpx2.Response | None:
            now = await client.get(here)
            return None if BOT_LINK.search(now.text) else now

        return await until(moved)

    async def _press(self, link: str, button: str) -> None:
        seen = await self._refs()
        await self.person.open(link)

        async def is_asked() -> bool:
            return not await self._refs() <= seen

        # An earlier message may have the same button.
        await until(is_asked)
        await self.person.press(button, channel="messenger_a")

    async def sign_in_page(self, page: Page) -> None:
        link = await page.locator("a.button[data-channel=messenger_a]").get_attribute("href")
        await self._press(str(link), "Yes")
        await page.locator("button[name=answer][value=allow]").click()

    async def log_out(self, url: str, cookies: httpx2.Cookies) -> Answer:
        return await self._walk(url, cookies)

    async def log_out_page(self, page: Page) -> None:
        """An ID token of the session is enough: nobody is asked."""

    async def answer_device(self, uri: str, user_code: str, *, yes: bool = True) -> None:
        await self._walk(uri, httpx2.Cookies(), yes=yes, user_code=user_code)

    async def answer_ciba(
        self, started: Mapping[str, Any], message: str, *, yes: bool = True
    ) -> None:
        agree = str(started.get("match_number", "Yes"))
        await self.person.press(agree if yes else "Cancel", text=message, channel="messenger_a")

    async def _refs(self) -> set[str]:
        """Of what the bot has written."""
        return {message.ref for message in await self.person.messages("messenger_a")}


@dataclass(frozen=True, slots=True, kw_only=True)
class OurClockedProvider(OurProvider):
    """Also a `Clocked`."""

    ahead_s: Path

    async def advance(self, seconds: int) -> None:
        """Lets time pass, for the provider alone."""
        before = int(self.ahead_s.read_text()) if self.ahead_s.exists() else 0
        # In one step: the service may be reading.
        changed = self.ahead_s.with_suffix(".new")
        changed.write_text(str(before + seconds))
        changed.replace(self.ahead_s)


@asynccontextmanager
async def our_provider(folder: Path) -> AsyncIterator[OurProvider]:
    """A service with one project, whose people use the sandbox messenger."""
    # Clients that poll wait for one interval at least.
    async with _serving(Deployment(folder), SETTINGS, interval_s=1) as served:
        yield OurProvider(*served)


@asynccontextmanager
async def our_clocked_provider(folder: Path) -> AsyncIterator[OurClockedProvider]:
    """The same, with a clock that can be put forward."""
    installed = install_module(folder / "installed", Path(clock_ahead.__file__))
    settings = SETTINGS.replace('"oidc"]', f'"oidc", "{clock_ahead.__name__.rpartition(".")[2]}"]')
    # On a busy machine "at once" may be a second later.
    async with _serving(Deployment(folder, [installed]), settings, interval_s=5) as served:
        yield OurClockedProvider(*served, ahead_s=installed / clock_ahead.AHEAD_S)


@asynccontextmanager
async def _serving(
    deployment: Deployment, settings: str, *, interval_s: int
) -> AsyncIterator[tuple[str, httpx2.AsyncClient, SandboxPerson]]:
    port = free_ports()
    url = f"http://127.0.0.1:{port}"
    deployment.configure(settings.format(url=url, interval_s=interval_s), port=port)
    key = deployment.create_key()
    with deployment.serving():
        headers = {"Authorization": f"Bearer {key}"}
        async with (
            httpx2.AsyncClient(base_url=url, headers=headers) as api,
            Sandbox.over_http(url) as sandbox,
        ):
            person = await sandbox.person("Ann", username="ann_k", lang="en")
            probe = await api.post(
                "/v1/oidc/clients", json={"name": "Probe", "redirect_uris": [f"{url}/"]}
            )
            issuer = probe.json()["issuer"]
            await api.delete(f"/v1/oidc/clients/{probe.json()['client_id']}")
            await _subscribe(api, person)
            yield issuer, api, person


async def _subscribe(api: httpx2.AsyncClient, person: SandboxPerson) -> None:
    """The person starts the bot, so that it can ask them."""
    answer = await api.post("/v1/subscribers/links", json={"external_id": EXTERNAL_ID})
    await person.open(answer.json()["links"]["messenger_a"])

    async def known() -> bool:
        found = await api.get("/v1/subscribers", params={"external_id": EXTERNAL_ID})
        return bool(found.json()["data"])

    await until(known)
