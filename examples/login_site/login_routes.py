"""The routes of signing in and out: begin, poll, come back, leave."""

from __future__ import annotations

from typing import cast, get_args
from urllib.parse import urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from context import browser_of, form_of, keep_cookie, site_of
from pages import texts_for
from service_api import ServiceError
from sessions import LoginKind, Notice, PendingLogin
from sign_in import StateMismatchError


async def hosted_login(request: Request) -> Response:
    """Sends the browser to the service's own sign-in page, with a state that is this browser's."""
    site = site_of(request)
    browser = browser_of(request) or site.sessions.create()
    state = site.sign_in.begin_hosted(browser)
    query = urlencode({"state": state, "lang": texts_for(request).lang})
    response = RedirectResponse(f"{site.settings.hosted_page}?{query}", status_code=303)
    keep_cookie(site, response, browser)
    return response


async def begin_login(request: Request) -> Response:
    """Opens a sign-in (`kind` is link or qr) and shows it; programs that ask for JSON get that."""
    site = site_of(request)
    kind = (await form_of(request)).get("kind", "link")
    if kind not in get_args(LoginKind):
        raise HTTPException(400)
    browser = browser_of(request) or site.sessions.create()
    try:
        pending = await site.sign_in.begin(
            browser, cast(LoginKind, kind), lang=texts_for(request).lang
        )
    except ServiceError as error:
        return problem(request, texts_for(request).not_started, error)
    response: Response = RedirectResponse(f"/#{kind}", status_code=303)
    if "application/json" in request.headers.get("accept", ""):
        response = JSONResponse(described(pending), status_code=201)
    keep_cookie(site, response, browser)
    return response


def described(pending: PendingLogin) -> dict[str, object]:
    """A pending sign-in as JSON; its `state` stays on the server."""
    return {
        "session_id": pending.session_id,
        "links": pending.links,
        "qr": pending.qr,
        "interval": pending.interval,
        "status_url": f"/login/session/{pending.session_id}/status",
    }


async def login_status(request: Request) -> Response:
    """What the page polls: `{status, message}`, and the cookie of whoever was let in.

    `status` is pending, confirmed, signed_in, denied or expired, or trouble (ask again).
    """
    site, browser, t = site_of(request), browser_of(request), texts_for(request)
    if browser and browser.person:
        return JSONResponse({"status": "signed_in", "message": t.signed_in})
    session_id = request.path_params["session_id"]
    waiting = list(browser.pending.values()) if browser else []
    # Only the browser that began a sign-in may watch it, or it would be let in instead.
    pending = next((one for one in waiting if one.session_id == session_id), None)
    if browser is None or pending is None:
        return JSONResponse({"status": "expired", "message": t.expired}, status_code=404)
    try:
        progress = await site.sign_in.poll(browser, pending)
    except ServiceError as error:
        if error.retryable:
            return JSONResponse({"status": "trouble", "message": t.trouble}, status_code=503)
        return JSONResponse({"status": "expired", "message": t.expired, "code": error.code})
    except StateMismatchError:
        return JSONResponse({"status": "expired", "message": t.expired})
    message = {
        "pending": t.waiting,
        "confirmed": t.confirmed,
        "signed_in": t.signed_in,
        "denied": t.denied,
        "expired": t.expired,
    }[progress.status]
    response = JSONResponse({"status": progress.status, "message": message})
    if progress.person:
        keep_cookie(site, response, site.sessions.sign_in(browser, progress.person))
    return response


async def callback(request: Request) -> Response:
    """Where the messenger's button leads: checks the state, exchanges the code, lets in."""
    if request.method == "HEAD":
        # Link checkers ask HEAD, and the code works only once.
        return Response()
    site, browser, t = site_of(request), browser_of(request), texts_for(request)
    code = request.query_params.get("code")
    if not code:
        return problem(request, t.no_code)
    try:
        person = await site.sign_in.finish(browser, code, request.query_params.get("state"))
    except StateMismatchError:
        return problem(request, t.state_refused)
    except ServiceError as error:
        return problem(request, t.code_refused, error)
    # A redirect, so that the code is gone from the address bar and from "reload".
    response = RedirectResponse("/", status_code=303)
    keep_cookie(site, response, site.sessions.sign_in(browser, person))
    return response


def problem(request: Request, text: str, error: ServiceError | None = None) -> Response:
    """A friendly page that says what went wrong and leads back."""
    status = 503 if error and error.retryable else 400
    return site_of(request).pages.render(
        request, "problem.html", status=status, text=text, error=error
    )


async def logout(request: Request) -> Response:
    """Ends the session here; the person stays subscribed in the messenger."""
    site = site_of(request)
    site.sessions.end(browser_of(request))
    browser = site.sessions.create()
    browser.notice = Notice(texts_for(request).signed_out)
    response = RedirectResponse("/", status_code=303)
    keep_cookie(site, response, browser)
    return response


ROUTES = [
    Route("/login", hosted_login),
    Route("/login/session", begin_login, methods=["POST"]),
    Route("/login/session/{session_id}/status", login_status),
    Route("/callback", callback),
    Route("/logout", logout, methods=["POST"]),
]
