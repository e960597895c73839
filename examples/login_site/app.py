"""The example site: an ordinary web site whose visitors sign in through a messenger.

Signing in is in `sign_in`. Start with `python examples/login_site/app.py`; README.md lists the
settings.
"""

from __future__ import annotations

import os
import re
import secrets
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

import sign_in
from msgsvc_client import AsyncClient, InvalidWebhook, MsgsvcError
from pages import HERE, Site, page, site_of, texts_for
from settings import SettingsError, SiteSettings
from webhooks import Inbox

#: The element. A site of your own has a copy among its static files.
ELEMENT = HERE.parents[1] / "contrib/clients/signin/dist/msgsvc-signin.js"
#: What the service accepts as an Idempotency-Key.
IDEMPOTENCY_KEY = re.compile(r"[A-Za-z0-9_-]{8,128}")
#: Bytes of a request body that are read; the service's events are far smaller.
MAX_BODY_BYTES = 1_048_576


async def home(request: Request) -> Response:
    """Greets a signed-in person, and offers the button to everybody else."""
    person = request.session.get("person")
    if person is None:
        return page(request, "signed_out.html")
    # Made with the page: pressing twice, or reloading the answer, sends one notification.
    key = secrets.token_urlsafe(24)
    return page(request, "signed_in.html", person=person, idempotency_key=key)


async def notify(request: Request) -> Response:
    """Sends the signed-in person a notification, to nobody else's id."""
    site, person, t = site_of(request), request.session.get("person"), texts_for(request)
    if person is None:
        return RedirectResponse("/", 303)
    key = str((await request.form()).get("idempotency_key"))
    text = t.notification.format(name=person["first_name"], site=site.settings.name)
    try:
        sent = await site.client.messages.send(
            subscriber_id=person["subscriber_id"],
            text=text,
            idempotency_key=key if IDEMPOTENCY_KEY.fullmatch(key) else None,
        )
        notice = {"text": t.notified.format(message_id=sent.message_id), "is_error": False}
    except MsgsvcError as error:
        notice = {"text": t.not_notified.format(error=error), "is_error": True}
    request.session["notice"] = notice
    return RedirectResponse("/", 303)


async def receive_webhook(request: Request) -> Response:
    """Takes a delivery in: 204 when it is genuine, new or not, and 400 when it is not."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            raise HTTPException(413)
    try:
        site_of(request).inbox.receive(request.headers, bytes(body))
    except InvalidWebhook as error:
        return JSONResponse({"error": str(error)}, 400)
    return Response(status_code=204)


async def events(request: Request) -> Response:
    """The received webhooks, live. A real site would show this to its own staff alone."""
    return page(request, "events.html")


async def events_json(request: Request) -> Response:
    """The same as JSON, newest first."""
    received = site_of(request).inbox.newest_first()
    return JSONResponse([asdict(one) for one in received])


async def session_json(request: Request) -> Response:
    """Who is signed in here, for tests and scripts."""
    person = request.session.get("person")
    return JSONResponse({"signed_in": person is not None, **(person or {})})


async def element(request: Request) -> Response:
    """The sign-in element."""
    return FileResponse(ELEMENT, media_type="text/javascript")


def create_app(settings: SiteSettings) -> Starlette:
    """The site as an ASGI application."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with AsyncClient(settings.api_key, settings.service_url) as client:
            app.state.site = Site(settings, client, Inbox(settings.webhook_secret))
            yield

    routes = [
        Route("/", home),
        *sign_in.ROUTES,
        Route("/notify", notify, methods=["POST"]),
        Route("/webhooks", receive_webhook, methods=["POST"]),
        Route("/events", events),
        Route("/events.json", events_json),
        Route("/session.json", session_json),
        Route("/static/msgsvc-signin.js", element),
        Mount("/static", StaticFiles(directory=HERE / "static")),
    ]
    # SameSite=Lax is also what guards our forms: another site's POST arrives without the cookie,
    # hence signed out. Lax and not Strict, because people come back to /callback from outside.
    sessions = Middleware(
        SessionMiddleware,
        secret_key=os.environ.get("LOGIN_SITE_SESSION_KEY") or secrets.token_urlsafe(32),
        max_age=8 * 3600,
        same_site="lax",
        https_only=settings.url.startswith("https:"),
    )
    return Starlette(routes=routes, lifespan=lifespan, middleware=[sessions])


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
