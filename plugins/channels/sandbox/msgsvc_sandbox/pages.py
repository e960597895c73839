"""The messenger's pages: people, one person's messenger, and start links."""

from collections.abc import Awaitable, Callable
from functools import cached_property
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from msgsvc_core.kernel.errors import ApiError, NotFound
from msgsvc_core.kernel.i18n import Texts, own_name
from msgsvc_core.pages import NO_DEVICES, static_files
from msgsvc_sandbox.admission import Admission
from msgsvc_sandbox.avatars import initials, tone
from msgsvc_sandbox.forms import PersonForm, read_form
from msgsvc_sandbox.links import valid_payload
from msgsvc_sandbox.models import OpenLink, Person
from msgsvc_sandbox.service import Messenger

if TYPE_CHECKING:
    from jinja2 import Environment

Handler = Callable[[Request], Awaitable[Response]]

STATIC = Path(__file__).parent / "static"

#: Remembers who opened the last link here, to offer that person first.
COOKIE = "sandbox_person"

#: Everything is ours; only the pictures and films of messages come from where the message says.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"
    " img-src 'self' blob: data: http: https:; media-src 'self' http: https:;"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)

HEADERS = {
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "same-origin",
    "Permissions-Policy": NO_DEVICES,
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


class SandboxPages:
    """Everything under /sandbox except the JSON API."""

    def __init__(self, messenger: Messenger, texts: Texts) -> None:
        self._messenger = messenger
        self._texts = texts

    @cached_property
    def _templates(self) -> "Environment":
        # Jinja is 2 MiB that a process may do without which nobody asks for pages.
        from jinja2 import Environment, PackageLoader  # noqa: PLC0415 - see above

        templates = Environment(
            loader=PackageLoader("msgsvc_sandbox"),
            autoescape=True,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        languages = [(tag, own_name(tag)) for tag in self._texts.languages]
        templates.globals.update(initials=initials, tone=tone, languages=languages)
        return templates

    def routes(self, admission: Admission) -> list[BaseRoute]:
        table = [
            ("GET", "/sandbox", self.people),
            ("POST", "/sandbox", self.add_person),
            ("GET", "/sandbox/p/{person_id}", self.person),
            ("GET", "/sandbox/open/{channel}", self.choose),
            ("POST", "/sandbox/open/{channel}", self.open),
        ]
        return [
            *(
                Route(path, self._admitting(admission, handler), methods=[method])
                for method, path, handler in table
            ),
            Mount("/sandbox/static", static_files(STATIC)),
        ]

    async def people(self, request: Request) -> Response:
        people = await self._people()
        return self._page(request, "people.html", people=people, error="", form=PersonForm())

    async def add_person(self, request: Request) -> Response:
        form = await read_form(request)
        try:
            person = await self._messenger.add_person(form.person(self._texts.languages))
        except ValidationError:
            people = await self._people()
            return self._page(request, "people.html", 400, people=people, error="person", form=form)
        return _redirect(request, f"/p/{person.person_id}", person)

    async def person(self, request: Request) -> Response:
        person = await self._messenger.person(request.path_params["person_id"])
        people = await self._people()
        return self._page(
            request,
            "person.html",
            lang=person.lang,
            person=person,
            people=people,
            commands=self._messenger.commands(person.lang),
        )

    async def choose(self, request: Request) -> Response:
        """The page of a start link: select who opens it."""
        payload = request.query_params.get("start", "")
        return await self._chooser(request, payload, PersonForm())

    async def open(self, request: Request) -> Response:
        form = await read_form(request)
        try:
            person = await self._opener(form)
        except ValidationError:
            return await self._chooser(request, form.start, form, status=400)
        channel = request.path_params["channel"]
        link = OpenLink.model_construct(channel=channel, payload=form.start)
        await self._messenger.open(person.person_id, link)
        return _redirect(request, f"/p/{person.person_id}#{quote(channel)}", person)

    async def _people(self) -> list[Person]:
        """The newest first: whoever has just been made is the one to play with."""
        return [*reversed(await self._messenger.people())]

    async def _opener(self, form: PersonForm) -> Person:
        if form.person_id:
            return await self._messenger.person(form.person_id)
        return await self._messenger.add_person(form.person(self._texts.languages))

    async def _chooser(
        self, request: Request, payload: str, form: PersonForm, status: int = 200
    ) -> Response:
        bots = {bot.channel: bot for bot in await self._messenger.bots()}
        bot = bots.get(request.path_params["channel"])
        if bot is None or not valid_payload(payload):
            raise NotFound("this link leads to no bot here")
        people = await self._people()
        last = request.cookies.get(COOKIE)
        # Whoever was here last comes first.
        people.sort(key=lambda person: person.person_id != last)
        return self._page(
            request,
            "open.html",
            status,
            bot=bot,
            payload=payload,
            people=people,
            form=form,
            error="person" if status != HTTPStatus.OK else "",
        )

    def _admitting(self, admission: Admission, handler: Handler) -> Handler:
        """Wraps `handler` with the access check; others get a refusal page."""

        async def admitted(request: Request) -> Response:
            try:
                client_ip = request.client.host if request.client else ""
                admission.check(request.method, client_ip, request.headers)
                return await handler(request)
            except ApiError as error:
                return self._page(request, "problem.html", error.status)

        return admitted

    def _page(
        self, request: Request, template: str, status: int = 200, lang: str = "", **values: object
    ) -> Response:
        lang = self._texts.choose(lang or _preferred(request))
        html = self._templates.get_template(template).render(
            root=_root(request),
            lang=lang,
            _=self._texts.into(lang, __name__),
            status=status,
            **values,
        )
        return HTMLResponse(html, status, HEADERS)


def _root(request: Request) -> str:
    """Where the messenger lives, also when the service is mounted below another application."""
    return f"{request.scope.get('root_path', '')}/sandbox"


def _preferred(request: Request) -> str:
    """The first language that the browser asks for."""
    return request.headers.get("accept-language", "").partition(",")[0].partition(";")[0].strip()


def _redirect(request: Request, path: str, person: Person) -> Response:
    response = RedirectResponse(_root(request) + path, HTTPStatus.SEE_OTHER, HEADERS)
    response.set_cookie(
        COOKIE,
        person.person_id,
        max_age=365 * 24 * 3600,
        path=_root(request),
        httponly=True,
        samesite="lax",
    )
    return response
