"""The example site: its pages, the webhook receiver, and how it starts.

The routes of signing in are in `login_routes`, the rules behind them in `sign_in`. Start with
`python examples/login_site/app.py`; README.md lists the settings.
"""

from __future__ import annotations

import os
import re
import secrets
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict

import aiohttp
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

import login_routes
from context import Site, body_of, browser_of, form_of, site_of
from pages import HERE, Pages, texts_for
from service_api import MsgsvcClient, ServiceError
from sessions import Notice, SessionStore
from settings import SettingsError, SiteSettings
from sign_in import SignIn
from webhooks import BadDeliveryError, Inbox

#: What the service accepts as an Idempotency-Key.
IDEMPOTENCY_KEY = re.compile(r"[A-Za-z0-9_-]{8,128}")


async def home(request: Request) -> Response:
    """Greets a signed-in person, and offers the three ways to everybody else."""
    site, browser = site_of(request), browser_of(request)
    notice = browser.take_notice() if browser else None
    if browser and browser.person:
        # Made with the page: pressing twice, or reloading the answer, sends one notification.
        key = secrets.token_urlsafe(24)
        return site.pages.render(
            request, "signed_in.html", person=browser.person, notice=notice, idempotency_key=key
        )
    links, links_error = dict[str, str](), None
    try:
        links = await site.sign_in.static_links()
    except ServiceError as error:
        links_error = error.message
    session = site.sign_in.pending(browser, "link") if browser else None
    qr = site.sign_in.pending(browser, "qr") if browser else None
    return site.pages.render(
        request,
        "signed_out.html",
        images_from=qr.qr.values() if qr else (),
        notice=notice,
        links=links,
        links_error=links_error,
        session=session,
        qr=qr,
    )


async def notify(request: Request) -> Response:
    """Sends the signed-in person a notification, to nobody else's id."""
    site, browser, t = site_of(request), browser_of(request), texts_for(request)
    if browser is None or browser.person is None:
        return RedirectResponse("/", status_code=303)
    key = (await form_of(request)).get("idempotency_key", "")
    if not IDEMPOTENCY_KEY.fullmatch(key):
        key = secrets.token_urlsafe(24)
    text = t.notification.format(name=browser.person.first_name, site=site.settings.name)
    try:
        message_id = await site.client.send(browser.person.subscriber_id, text, idempotency_key=key)
        browser.notice = Notice(t.notified.format(message_id=message_id))
    except ServiceError as error:
        told = t.not_notified.format(error=error.message, code=error.code)
        browser.notice = Notice(told, is_error=True)
    return RedirectResponse("/", status_code=303)


async def receive_webhook(request: Request) -> Response:
    """Takes a delivery in: 204 when it is genuine, new or not, and 400 when it is not."""
    try:
        site_of(request).inbox.receive(
            await body_of(request),
            signature=request.headers.get("x-service-signature", ""),
            delivery_id=request.headers.get("x-service-delivery-id", ""),
        )
    except BadDeliveryError as error:
        return JSONResponse({"error": str(error)}, status_code=400)
    return Response(status_code=204)


async def events(request: Request) -> Response:
    """The received webhooks, live. A real site would show this to its own staff alone."""
    return site_of(request).pages.render(request, "events.html")


async def events_json(request: Request) -> Response:
    """The same as JSON, newest first."""
    deliveries = site_of(request).inbox.newest_first()
    return JSONResponse([asdict(delivery) for delivery in deliveries])


async def session_json(request: Request) -> Response:
    """Who is signed in here, for tests and scripts."""
    browser = browser_of(request)
    person = browser.person if browser else None
    return JSONResponse({"signed_in": person is not None, **(asdict(person) if person else {})})


def create_app(settings: SiteSettings) -> Starlette:
    """The site as an ASGI application."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with aiohttp.ClientSession() as http:
            client = MsgsvcClient(settings.service_url, settings.api_key, http)
            app.state.site = Site(
                settings=settings,
                client=client,
                sign_in=SignIn(
                    client, callback_url=settings.callback_url, link_slug=settings.link_slug
                ),
                sessions=SessionStore(),
                inbox=Inbox(settings.webhook_secret),
                pages=Pages(settings),
            )
            yield

    routes = [
        Route("/", home),
        *login_routes.ROUTES,
        Route("/notify", notify, methods=["POST"]),
        Route("/webhooks", receive_webhook, methods=["POST"]),
        Route("/events", events),
        Route("/events.json", events_json),
        Route("/session.json", session_json),
        Mount("/static", StaticFiles(directory=HERE / "static")),
    ]
    return Starlette(routes=routes, lifespan=lifespan)


def main() -> None:
    """Serve the site as the environment says."""
    try:
        settings = SiteSettings.from_env(os.environ)
    except SettingsError as error:
        sys.exit(f"login site: {error}")
    print(f"{settings.name} on {settings.url}", flush=True)
    # No access log: the callback's address holds codes, which do not belong in logs.
    uvicorn.run(
        create_app(settings),
        host=settings.host,
        port=settings.port,
        access_log=False,
        log_level="warning",
    )


if __name__ == "__main__":
    main()
