"""A site behind `<msgsvc-signin>`: what its server answers, and the way without scripts.

Start with `MSGSVC_URL=... MSGSVC_API_KEY=... uvicorn site:app`. It needs starlette, itsdangerous, httpx2 and
uvicorn.
"""

import os
import secrets
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


async def api(method: str, path: str, **request: Any) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {os.environ['MSGSVC_API_KEY']}"}
    async with httpx2.AsyncClient(base_url=os.environ["MSGSVC_URL"], headers=headers) as client:
        answer = await client.request(method, path, timeout=40, **request)
        found: dict[str, Any] = answer.raise_for_status().json()
        return found


async def begin(request: Request) -> Response:
    """POST /signin: a sign-in that belongs to this browser, by the cookie of its session."""
    state = secrets.token_urlsafe()
    ip = request.client.host if request.client else ""
    client = {"ip": ip, "user_agent": request.headers.get("user-agent", "")}
    body = {"state": state, "match": True, "client": client}
    begun = await api("POST", "/v1/auth/session", json=body)
    request.session["signin"] = {"id": begun["session_id"], "state": state}
    shown = ("links", "start_messages", "match_number", "expires_in")
    return JSONResponse({name: begun.get(name) for name in shown})


async def status(request: Request) -> Response:
    """GET /signin: how it stands. The code stays here."""
    told = await status_of(request, wait=request.query_params.get("wait", "0"))
    return JSONResponse({"status": told["status"], "redirect": "/signin/finish"})


async def finish(request: Request) -> Response:
    """GET /signin/finish: exchanges the code, for the browser that began."""
    told = await status_of(request)
    return await let_in(request, told.get("code", ""), request.session["signin"]["state"])


async def status_of(request: Request, wait: str = "0") -> dict[str, Any]:
    if "signin" not in request.session:
        raise HTTPException(404)
    session_id = request.session["signin"]["id"]
    return await api("GET", f"/v1/auth/session/{session_id}/status", params={"wait": wait})


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
    Route("/signin", status),
    Route("/signin/finish", finish),
    Route("/login", login),
    Route("/back", back),
    Mount("/static", StaticFiles(directory=STATIC)),
]
# A key of your own, so that sessions outlive a restart; `https_only=True` where the site is public.
SESSIONS = Middleware(SessionMiddleware, secret_key=secrets.token_urlsafe(32))
app = Starlette(routes=ROUTES, middleware=[SESSIONS])
