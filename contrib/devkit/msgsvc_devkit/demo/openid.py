"""A step of the tour: a site that only knows OpenID Connect signs a person in through their messenger."""

import re
from collections.abc import Mapping
from html import unescape
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

import httpx2
from authlib.integrations.starlette_client import OAuth
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from msgsvc_core.kernel.ids import new_token
from msgsvc_devkit.demo.parts import PROJECT
from msgsvc_devkit.demo.stage import StepFailed, appears, expect

if TYPE_CHECKING:
    from msgsvc_devkit.demo.tour import Cast

#: Where the site is. It has no network address: the tour calls it in its own process.
SITE = "https://catalogue.example"

CHANNEL = "messenger_a"


def openid_site(issuer: str, client_id: str, client_secret: str) -> Starlette:
    """A site with Authlib, which reads everything else from the issuer and checks the ID token."""
    oauth = OAuth()
    oauth.register(
        "messenger",
        client_id=client_id,
        client_secret=client_secret,
        server_metadata_url=f"{issuer}/.well-known/openid-configuration",
        client_kwargs={"scope": "openid profile", "code_challenge_method": "S256"},
    )

    async def login(request: Request) -> Response:
        answer: Response = await oauth.messenger.authorize_redirect(request, f"{SITE}/callback")
        return answer

    async def callback(request: Request) -> Response:
        token = await oauth.messenger.authorize_access_token(request)
        person = await oauth.messenger.userinfo(token=token)
        return JSONResponse({"claims": token["userinfo"], "person": person})

    return Starlette(
        routes=[Route("/login", login), Route("/callback", callback)],
        middleware=[Middleware(SessionMiddleware, secret_key=new_token())],
    )


async def sign_in_with_openid(cast: "Cast") -> None:
    """Ann signs in to a site that was given an issuer, a client id and a secret."""
    async with cast.stage.step(
        "A stock OpenID client (Authlib) signs Ann in: one press in her messenger, then consent"
    ):
        body = {"name": "Catalogue", "redirect_uris": [f"{SITE}/callback"]}
        client = await cast.api.post("/v1/oidc/clients", body)
        site = openid_site(client["issuer"], client["client_id"], client["client_secret"])
        transport = httpx2.ASGITransport(app=site)
        async with httpx2.AsyncClient(transport=transport) as at_site, _browser() as browser:
            begun = await at_site.get(f"{SITE}/login")
            back = await _answer(cast, browser, begun.headers["Location"])
            signed_in = (await at_site.get(back)).json()
        expect(signed_in["person"]["name"], "Ann", "the name in userinfo")
        expect(signed_in["claims"]["sub"], signed_in["person"]["sub"], "the person of both")
        expect(signed_in["claims"]["amr"], ["mca"], "how Ann was authenticated")


def _browser() -> httpx2.AsyncClient:
    return httpx2.AsyncClient(headers={"Accept-Language": "en"})


async def _answer(cast: "Cast", browser: httpx2.AsyncClient, url: str) -> str:
    """What Ann does from the site's redirect on; returns the address that leads back to the site."""
    page = await _open(browser, url)
    await cast.ann.open(_find(page.text, rf'data-channel="{CHANNEL}" href="([^"]+)"'))
    await cast.ann.press(await cast.ann.sees(CHANNEL, PROJECT, button="Yes"), "Yes")
    status_url = urljoin(str(page.url), _find(page.text, r' status-url="([^"]+)"'))

    async def confirmed() -> str | None:
        found: Mapping[str, Any] = (await browser.get(status_url)).json()
        redirect: str | None = found.get("redirect")
        return redirect

    consent = await _open(browser, await appears("the way back", confirmed))
    answer = await browser.post(str(consent.url), data={"answer": "allow"})
    return str(answer.headers["Location"])


async def _open(browser: httpx2.AsyncClient, url: str) -> httpx2.Response:
    response = await browser.get(url, follow_redirects=True)
    if response.status_code != 200:
        raise StepFailed(f"{response.url} answered {response.status_code}: {response.text}")
    return response


def _find(html: str, pattern: str) -> str:
    match = re.search(pattern, html)
    if match is None:
        raise StepFailed(f"the page has no {pattern}")
    return unescape(match[1])
