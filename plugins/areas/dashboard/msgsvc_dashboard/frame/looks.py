"""Appearance: the theme, stored by the browser; the language and the time zone, stored with the account."""

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from msgsvc_core.db import Database
from msgsvc_core.pages import known, page_headers
from msgsvc_dashboard.accounts import Accounts, AccountSession
from msgsvc_dashboard.frame.addresses import is_ours, root_of
from msgsvc_dashboard.frame.gate import Gate

THEME_COOKIE = "msgsvc_theme"
THEMES = ("light", "dark")

#: Seconds for which a browser remembers the colours: a year.
KEPT_S = 365 * 24 * 3600


def theme_of(request: Request) -> str:
    """`light` or `dark`; empty for the system's setting."""
    chosen = request.cookies.get(THEME_COOKIE, "")
    return chosen if chosen in THEMES else ""


async def change_looks(
    db: Database, accounts: Accounts, gate: Gate, request: Request, session: AccountSession
) -> Response:
    """Redirects to the page on which the button was pressed."""
    async with gate.form(request, session) as form:
        theme, lang, back = form.text("theme"), known(form.text("lang")), form.text("next")
    to = back if is_ours(request, back) else root_of(request)
    response = RedirectResponse(to, 303, page_headers(referrer="same-origin"))
    if theme:
        response.set_cookie(
            THEME_COOKIE,
            theme if theme in THEMES else "",
            max_age=KEPT_S if theme in THEMES else 0,
            path=root_of(request),
            secure=request.url.scheme == "https",
            httponly=True,
            samesite="lax",
        )
    if lang is not None:
        async with db.transaction() as tx:
            await accounts.speak(tx, session.account.account_id, lang)
    return response


async def learn_timezone(
    accounts: Accounts, gate: Gate, request: Request, session: AccountSession
) -> Response:
    """Keeps what the script of a page says of the browser's time zone."""
    async with gate.form(request, session) as form:
        timezone = form.text("timezone")
    await accounts.learn_timezone(session.account, timezone)
    return Response(status_code=204, headers=page_headers(referrer="same-origin"))
