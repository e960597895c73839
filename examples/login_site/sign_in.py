"""Signing in and out.

`/signin` is what `<msgsvc-signin>` asks: it begins a sign-in, waits for the person's answer, and
finishes. `/login` is where its link leads without scripts: the service's own page, from which the
browser comes back to `/callback`. Both end in `let_in`, which has the one rule that matters.
"""

from __future__ import annotations

import hmac
import secrets

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from msgsvc_client import MsgsvcError
from pages import messenger_name, problem, site_of, texts_for

#: Seconds for which the service may hold a question after the status.
LONGEST_WAIT_S = 25

#: Sign-ins of one browser that may wait for an answer, in a tab each.
MOST_SIGN_INS = 5


async def begin(request: Request) -> Response:
    """POST /signin: opens a sign-in that belongs to this browser, by its session."""
    if request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
        raise HTTPException(403)
    state = secrets.token_urlsafe(32)
    agent = request.headers.get("user-agent", "")[:512]
    try:
        begun = await site_of(request).client.auth.sessions.create(
            state=state,
            number_matching=True,
            lang=texts_for(request).lang,
            client={"ip": request.client.host if request.client else "", "user_agent": agent},
        )
    except MsgsvcError:
        # The element then follows its link: the service's own page says why.
        return JSONResponse({}, 503)
    # Each tab has its own; the cookie has room for the latest.
    waiting = {**request.session.get("sign_ins", {}), begun.session_id: state}
    request.session["sign_ins"] = dict(list(waiting.items())[-MOST_SIGN_INS:])
    shown = ("links", "start_messages", "match_number", "expires_in")
    return JSONResponse(
        {
            "status_url": f"/signin/{begun.session_id}",
            "names": {channel: messenger_name(channel) for channel in begun.links},
            **{name: begun.raw.get(name) for name in shown},
        }
    )


async def status(request: Request) -> Response:
    """GET /signin/{session_id}: how it stands, once that changes. The code stays on the server."""
    if "person" in request.session:  # signed in meanwhile, in another tab
        return JSONResponse({"status": "confirmed", "redirect": "/"})
    session_id = request.path_params["session_id"]
    if state_of(request) is None:
        raise HTTPException(404)
    wait = request.query_params.get("wait", "")
    wait_s = min(int(wait), LONGEST_WAIT_S) if wait.isdecimal() else 0
    try:
        found = await site_of(request).client.auth.sessions.get_status(session_id, wait=wait_s)
    except MsgsvcError:
        return JSONResponse({}, 503)
    return JSONResponse({"status": found.status, "redirect": f"/signin/{session_id}/finish"})


async def finish(request: Request) -> Response:
    """GET /signin/{session_id}/finish: exchanges the code, for the browser that began."""
    if "person" in request.session:
        return RedirectResponse("/", 303)
    session_id, state, t = request.path_params["session_id"], state_of(request), texts_for(request)
    if state is None:
        return problem(request, t.state_refused)
    try:
        found = await site_of(request).client.auth.sessions.get_status(session_id)
    except MsgsvcError as error:
        return problem(request, t.code_refused, error)
    if found.code is None:
        return problem(request, t.code_refused)
    return await let_in(request, found.code, state)


def state_of(request: Request) -> str | None:
    """The state of the sign-in in the address; None if this browser did not begin that one."""
    found: str | None = request.session.get("sign_ins", {}).get(request.path_params["session_id"])
    return found


async def hosted_login(request: Request) -> Response:
    """GET /login: without scripts, the service's own page, with a state of this browser."""
    # Pressing again goes on with the same state, and so with the sign-in that waits there.
    state = request.session.setdefault("hosted_state", secrets.token_urlsafe(32))
    lang = texts_for(request).lang
    page = site_of(request).settings.hosted_page
    return RedirectResponse(f"{page}?state={state}&lang={lang}", 303)


async def callback(request: Request) -> Response:
    """GET /callback: the browser comes back with a code, from that page or from the bot.

    A static link, such as on a poster, has no state: nothing ties the answer to a browser. Somebody
    may confirm one as themselves and hand you the resulting address (login CSRF). Leave that out
    if your site has no such links.
    """
    if request.method == "HEAD":
        return Response()  # link checkers ask HEAD, and the code works only once
    given, t = request.query_params, texts_for(request)
    if not given.get("code"):
        return problem(request, t.no_code)
    expected = request.session.get("hosted_state") if given.get("state") else ""
    if expected is None or not same(given.get("state", ""), expected):
        return problem(request, t.state_refused)
    return await let_in(request, given["code"], expected)


async def let_in(request: Request, code: str, state: str) -> Response:
    """Exchanges the code and signs in, if the code belongs to the sign-in that this browser began.

    Otherwise somebody could put a code of their own into your browser, and you would work in their
    account without noticing.
    """
    t = texts_for(request)
    try:
        person = await site_of(request).client.auth.verify(code=code)
    except MsgsvcError as error:
        request.session.pop("hosted_state", None)
        return problem(request, t.code_refused, error)
    if not same(person.state, state):
        return problem(request, t.state_refused)
    # A new session: nothing that somebody else had put into the old one stays.
    request.session.clear()
    request.session["person"] = {
        "subscriber_id": person.subscriber_id,
        "channel": person.channel,
        "first_name": person.first_name or person.username,
        "username": person.username,
    }
    return RedirectResponse("/", 303)  # so that the code is gone from the address bar


async def logout(request: Request) -> Response:
    """POST /logout: ends the session here; the person stays subscribed in the messenger."""
    request.session.clear()
    request.session["notice"] = {"text": texts_for(request).signed_out, "is_error": False}
    return RedirectResponse("/", 303)


def same(left: str, right: str) -> bool:
    # Constant time: how long the answer takes must not tell how much of a guess was right.
    return hmac.compare_digest(left.encode(), right.encode())


ROUTES = [
    Route("/signin", begin, methods=["POST"]),
    Route("/signin/{session_id}", status),
    Route("/signin/{session_id}/finish", finish),
    Route("/login", hosted_login),
    Route("/callback", callback),
    Route("/logout", logout, methods=["POST"]),
]
