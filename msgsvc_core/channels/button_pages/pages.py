"""GET and POST /b/{token}/{number}."""

import secrets
from collections.abc import Awaitable, Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from msgsvc_core.api.envelope import api_error
from msgsvc_core.channels.button_pages.service import PATH, ButtonPage, ButtonPages
from msgsvc_core.channels.registry import Channels
from msgsvc_core.channels.updates import ButtonPressed
from msgsvc_core.content.markup import to_spans
from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.db import Database, Tx
from msgsvc_core.kernel.errors import NotFound
from msgsvc_core.kernel.i18n import Texts
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
from msgsvc_core.projects.service import Projects

if TYPE_CHECKING:
    from jinja2 import Environment

STATIC = Path(__file__).parent / "static"

#: Values of the form, and its bytes.
MOST_FIELDS, FORM_BYTES = 4, 4096

#: Characters of `attempt`, which tells a form that is sent twice from a second press.
MOST_CHARACTERS = 64

#: Processes a press of a bot, by its key: see `Inbound.press`.
Press = Callable[[str, ButtonPressed], Awaitable[list[OutgoingMessage] | None]]


class ButtonPagesRoutes:
    """The routes. Opening a page presses nothing: mail servers and messengers open every link. Its form needs
    no token of its own, since the address is the secret."""

    def __init__(
        self,
        *,
        db: Database,
        texts: Texts,
        projects: Projects,
        channels: Channels,
        pages: ButtonPages,
        press: Press,
    ) -> None:
        self._db = db
        self._texts = texts
        self._projects = projects
        self._channels = channels
        self._pages = pages
        self._press = press

    def routes(self) -> list[BaseRoute]:
        return [
            Mount(f"{PATH}/_static", static_files(STATIC)),
            Route(
                f"{PATH}/{{token}}/{{number}}",
                page_endpoint(self.page, self._problem),
                methods=["GET", "POST"],
            ),
        ]

    async def page(self, request: Request) -> Response:
        """The question, or by POST what the bot says to the press."""
        token, number = request.path_params["token"], request.path_params["number"]
        if not number.isascii() or not number.isdigit() or len(number) > 3:
            raise NotFound("there is no page at this address")
        async with self._db.read() as tx:
            page = await self._pages.get(tx, self._channels, token, int(number))
            await self._set_brand(request, tx, page)
        if request.method == "POST":
            return await self._pressed(request, token, page)
        return self._page(
            request,
            "question.html",
            page.lang,
            shown=page,
            text=_plain(page.message),
            attempt=secrets.token_hex(8),
        )

    async def _pressed(self, request: Request, token: str, page: ButtonPage) -> Response:
        form = await posted_values(request, max_bytes=FORM_BYTES, max_values=MOST_FIELDS)
        attempt = str(form.get("attempt") or "")[:MOST_CHARACTERS]
        said = await self._press(page.channel.key, page.press(token, attempt))
        messages = [
            (_plain(message), [b for row in message.buttons for b in row if b.url is not None])
            for message in said or ()
        ]
        return self._page(request, "said.html", page.lang, messages=messages, shown=page)

    async def _set_brand(self, request: Request, tx: Tx, page: ButtonPage) -> None:
        if page.project_id is not None:
            set_page_brand(request, await self._projects.get(tx, page.project_id))

    def _problem(self, request: Request, failure: Exception) -> Response:
        status = api_error(failure).status
        return self._page(request, "told.html", "", status=status)

    @cached_property
    def _templates(self) -> "Environment":
        return new_templates("msgsvc_core.channels.button_pages")

    def _page(
        self, request: Request, template: str, own_lang: str, status: int = 200, **values: object
    ) -> Response:
        lang = read_language(
            own_lang,
            request.headers.get("accept-language", ""),
            self._texts.default_lang,
            self._texts.spoken,
        )
        html = self._templates.get_template(template).render(
            static=f"{request.scope.get('root_path', '')}{PATH}/_static",
            lang=lang,
            _=self._texts.into(lang),
            status=status,
            request_id=request_id(request),
            brand=page_brand(request),
            **values,
        )
        return HTMLResponse(html, status, page_headers())


def _plain(message: OutgoingMessage) -> str:
    return "".join(span.text for span in to_spans(message.text, message.format))
