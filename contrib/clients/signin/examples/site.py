"""A site behind `<msgsvc-signin>`: what its server answers, and the way without scripts.

Start with `MSGSVC_URL=... MSGSVC_API_KEY=... uvicorn site:app`. It needs starlette, itsdangerous, httpx2 and
uvicorn.
"""

import os
import secrets
import ssl
from typing import Any

import httpx2
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

PAGE = """<!doctype html>
<html lang="en">
<title>Shop</title>
<script type="module" src="/static/msgsvc-signin.js"></script>
<h1>Shop</h1>
<p id="user">{user}</p>
<msgsvc-signin session="/signin"><a href="/login">Sign in to Shop</a></msgsvc-signin>
"""


# Made once: reading the machine's certificates takes longer than most calls.
TLS = ssl.create_default_context()


async def api(method: str, path: str, **request: Any) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {os.environ['MSGSVC_API_KEY']}"}
    url = os.environ["MSGSVC_URL"]
    async with httpx2.AsyncClient(base_url=url, headers=headers, verify=TLS) as client:
        answer = await client.request(method, path, timeout=40, **request)
    if answer.is_error:
        # Gone, and asked too often: the element ends, and waits. All else is trouble of the site.
        raise HTTPException(answer.status_code if answer.status_code in (404, 429) else 502)
    found: dict[str, Any] = answer.json()
    return found


async def begin(request: Request) -> Response:
    """POST /signin: a sign-in that belongs to this browser, by the cookie of its session."""
    state = secrets.token_urlsafe()
    ip = request.client.host if request.client else ""
    client = {"ip": ip, "user_agent": request.headers.get("user-agent", "")}
    body = {"state": state, "number_matching": True, "client": client}
    begun = await api("POST", "/v1/auth/session", json=body)
    # Each tab has its own. The cookie has room for the latest.
    waiting = {**request.session.get("signin", {}), begun["session_id"]: state}
    request.session["signin"] = dict(list(waiting.items())[-5:])
    shown = ("links", "start_messages", "match_number", "expires_in")
    status_url = f"/signin/{begun['session_id']}"
    return JSONResponse({"status_url": status_url, **{name: begun.get(name) for name in shown}})


async def status(request: Request) -> Response:
    """GET /signin/{id}: how it stands. The code stays here."""
    if state_of(request) is None and "user" in request.session:  # another tab was first
        return JSONResponse({"status": "confirmed", "redirect": "/"})
    told = await status_of(request, wait=request.query_params.get("wait", "0"))
    return JSONResponse({"status": told["status"], "redirect": f"{request.url.path}/finish"})


async def finish(request: Request) -> Response:
    """GET /signin/{id}/finish: exchanges the code, for the browser that began."""
    state = state_of(request)
    told = await status_of(request) if state else {}
    if told.get("status") != "confirmed":  # opened by hand, or once more
        return RedirectResponse("/", 303)
    return await let_in(request, told["code"], state)


def state_of(request: Request) -> str | None:
    """None if this browser didn't begin that sign-in."""
    found: str | None = request.session.get("signin", {}).get(request.path_params["id"])
    return found


async def status_of(request: Request, wait: str = "0") -> dict[str, Any]:
    if state_of(request) is None:
        raise HTTPException(404)
    path = f"/v1/auth/session/{request.path_params['id']}/status"
    return await api("GET", path, params={"wait": wait})


async def login(request: Request) -> Response:
    """GET /login: without scripts, the service's own page."""
    state = request.session["state"] = secrets.token_urlsafe()
    return RedirectResponse(f"{os.environ['MSGSVC_URL']}/login/shop?state={state}", 303)


async def back(request: Request) -> Response:
    """GET /back: the browser returns from there, with a code."""
    return await let_in(request, request.query_params.get("code", ""), request.session.get("state"))


async def let_in(request: Request, code: str, state: str | None) -> Response:
    person = await api("POST", "/v1/auth/verify", json={"code": code})
    # A code that somebody else's sign-in led to would sign this browser in as them.
    if state is None or not secrets.compare_digest(person["state"] or "", state):
        raise HTTPException(403)
    request.session.clear()
    request.session["user"] = person["subscriber_id"]
    return RedirectResponse("/", 303)


async def home(request: Request) -> Response:
    return HTMLResponse(PAGE.format(user=request.session.get("user", "")))


STATIC = os.path.join(os.path.dirname(__file__), "..", "dist")

ROUTES = [
    Route("/", home),
    Route("/signin", begin, methods=["POST"]),
    Route("/signin/{id}", status),
    Route("/signin/{id}/finish", finish),
    Route("/login", login),
    Route("/back", back),
    Mount("/static", StaticFiles(directory=STATIC)),
]
# A key of your own, so that sessions outlive a restart; `https_only=True` where the site is public.
SESSIONS = Middleware(SessionMiddleware, secret_key=secrets.token_urlsafe(32))
app = Starlette(routes=ROUTES, middleware=[SESSIONS])
