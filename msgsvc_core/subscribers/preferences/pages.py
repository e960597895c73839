"""GET and POST /preferences/{token}."""

from functools import cached_property, partial
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from msgsvc_core.api.envelope import api_error
from msgsvc_core.db import Database
from msgsvc_core.kernel.i18n import Texts, in_language, own_name
from msgsvc_core.pages import (
    new_templates,
    page_endpoint,
    page_headers,
    read_language,
    request_id,
    static_files,
)
from msgsvc_core.pages.posting import posted_values
from msgsvc_core.projects.page_brand import page_brand, set_page_brand
from msgsvc_core.subscribers.preferences.service import Preferences, ShownPreferences
from msgsvc_core.subscribers.preferences_links import LinkExpired

if TYPE_CHECKING:
    from jinja2 import Environment

STATIC = Path(__file__).parent / "static"

#: Values of a form: each permission twice, and what else there is.
MOST_FIELDS = 400

#: Bytes of a form: its values, each with a key of 64 characters.
FORM_BYTES = 65_536


class PreferencesPages:
    """The routes. Opening a page changes nothing: messengers look ahead. Its forms need no token of their
    own, since the address is the secret."""

    def __init__(self, *, db: Database, texts: Texts, preferences: Preferences) -> None:
        self._db = db
        self._texts = texts
        self._preferences = preferences

    def routes(self) -> list[BaseRoute]:
        return [
            Mount("/preferences/_static", static_files(STATIC)),
            Route(
                "/preferences/{token}",
                page_endpoint(self.page, self._problem),
                methods=["GET", "POST"],
            ),
        ]

    async def page(self, request: Request) -> Response:
        """What the person gets, or by POST a change of it, also by a mail program (RFC 8058)."""
        token = request.path_params["token"]
        if request.method == "POST":
            return await self._change(request, token)
        async with self._db.read() as tx:
            shown = await self._preferences.get(tx, token)
        set_page_brand(request, shown.project)
        return self._shown(request, token, shown)

    async def _change(self, request: Request, token: str) -> Response:
        form = await posted_values(request, max_bytes=FORM_BYTES, max_values=MOST_FIELDS)
        action = str(form.get("do") or "save")
        shown = [str(key) for key in form.getlist("shown")]
        granted = [str(key) for key in form.getlist("granted")]
        lang = str(form.get("lang") or "")
        by_mail_client = form.get("List-Unsubscribe") == "One-Click"
        async with self._db.transaction() as tx:
            if action == "stop" or by_mail_client:
                await self._preferences.stop(tx, token)
            elif action == "start":
                await self._preferences.start(tx, token)
            else:
                await self._preferences.save(tx, token, shown=shown, granted=granted, lang=lang)
        if by_mail_client:
            # RFC 8058, section 3.2: a program asked, which follows no redirect.
            return Response(status_code=HTTPStatus.OK, headers=page_headers())
        done = action if action in {"stop", "start"} else "save"
        here = f"{_root(request)}/{token}?done={done}&lang={self._language(request)}"
        return RedirectResponse(here, HTTPStatus.SEE_OTHER, page_headers())

    def _shown(self, request: Request, token: str, shown: ShownPreferences) -> Response:
        lang = self._language(request, shown.subscriber.lang)
        here = f"{_root(request)}/{token}"
        return self._page(
            request,
            "preferences.html",
            lang,
            shown=shown,
            here=f"{here}?lang={lang}",
            done=request.query_params.get("done", ""),
            say=partial(in_language, lang=lang, default_lang=self._texts.default_lang),
            choices=[(tag, own_name(tag)) for tag in self._texts.languages],
            languages={each: f"{here}?lang={each}" for each in self._texts.spoken},
        )

    def _problem(self, request: Request, failure: Exception) -> Response:
        error = api_error(failure)
        is_old = isinstance(error, LinkExpired)
        return self._page(
            request, "told.html", self._language(request), status=error.status, is_old=is_old
        )

    @cached_property
    def _templates(self) -> "Environment":
        return new_templates("msgsvc_core.subscribers.preferences")

    def _page(
        self, request: Request, template: str, lang: str, status: int = 200, **values: object
    ) -> Response:
        html = self._templates.get_template(template).render(
            static=f"{_root(request)}/_static",
            lang=lang,
            _=self._texts.into(lang),
            status=status,
            request_id=request_id(request),
            brand=page_brand(request),
            **values,
        )
        return HTMLResponse(html, status, page_headers())

    def _language(self, request: Request, own: str = "") -> str:
        """The language in the URL, else the person's own, else the browser's preferred one."""
        return read_language(
            request.query_params.get("lang") or own,
            request.headers.get("accept-language", ""),
            self._texts.default_lang,
            self._texts.spoken,
        )


def _root(request: Request) -> str:
    return f"{request.scope.get('root_path', '')}/preferences"
