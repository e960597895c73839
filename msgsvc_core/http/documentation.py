"""GET /openapi.json, and the same for people: /docs, /docs/types and /docs/errors, with nothing from
elsewhere. For programs that read text: /llms.txt, and each area as /docs/{area}.md."""

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.routing import BaseRoute, Route

from msgsvc_core.api.conventions import CONVENTIONS
from msgsvc_core.api.endpoint import Endpoint
from msgsvc_core.api.markdown import ApiPages, MarkdownPage
from msgsvc_core.api.samples import read_samples, samples_of
from msgsvc_core.http.base_path import path_within
from msgsvc_core.http.openapi import errors_of, shared
from msgsvc_core.http.prepared import PreparedText
from msgsvc_core.kernel.errors import ErrorCatalogue
from msgsvc_core.kernel.i18n import Texts
from msgsvc_core.kernel.json import to_json
from msgsvc_core.pages.headers import NO_DEVICES
from msgsvc_core.pages.languages import read_language
from msgsvc_core.pages.rendering import SHARED

if TYPE_CHECKING:
    from jinja2 import Environment

_FOLDER = Path(__file__).parent

#: Pages load only from us. The reference has a script of ours, which calls the API it describes.
_POLICY = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self'; script-src 'self';"
    " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Permissions-Policy": NO_DEVICES,
}


#: What a block of code in each language begins with.
_FENCES = {"curl": "sh", "Python": "python", "TypeScript": "ts"}


def documentation_routes(
    endpoints: Sequence[Endpoint],
    errors: ErrorCatalogue,
    make_document: Callable[[], dict[str, Any]],
    home: str | None = None,
    *,
    is_open: bool = True,
) -> list[BaseRoute]:
    """The routes that describe the API. `make_document` is called once, when it is first asked for; `home` is
    the page that `/` leads to, else the description. Unless `is_open`, only error codes are described."""
    environment = cache(_templates)
    # It takes a second to make, so a thread does, and only once.
    document = cache(make_document)

    docs = _reference(
        "docs.html",
        environment,
        document,
        lambda: {
            "types": "docs/types",
            "areas": _areas(endpoints),
            "conventions": CONVENTIONS,
            "samples": read_samples(),
        },
    )
    # Apart: half of all there is to read, and few read it from beginning to end.
    types = _reference("types.html", environment, document, lambda: {"types": "types"})

    async def error_codes(_request: Request) -> Response:
        return _page(environment(), "errors.html", errors=list(errors), is_open=is_open)

    async def front_door(request: Request) -> Response:
        target = home or ("/docs" if is_open else "/docs/errors")
        return Response(
            status_code=307, headers={"Location": request.scope.get("root_path", "") + target}
        )

    described = [
        Route("/openapi.json", _openapi_json(document).answer),
        Route("/docs", docs.answer),
        Route("/docs/types", types.answer),
        *_markdown(
            document, {*(each.area for each in endpoints), "index", "webhook-events"}, errors
        ),
    ]
    return [
        Route("/", front_door),
        *(described if is_open else ()),
        Route("/docs/errors", error_codes),
        *_files(),
    ]


def _files() -> list[BaseRoute]:
    def file(path: Path) -> Callable[[Request], Awaitable[Response]]:
        async def answer(_request: Request) -> Response:
            return FileResponse(path, headers={"Cache-Control": "max-age=3600"})

        return answer

    static = _FOLDER / "static"
    return [
        # Browsers ask for this name by themselves, and take an SVG under it.
        Route("/favicon.ico", file(SHARED / "icon.svg")),
        Route("/docs/docs.css", file(static / "docs.css")),
        Route("/docs/docs.js", file(static / "docs.js")),
        Route("/docs/tokens.css", file(SHARED / "tokens.css")),
        Route("/docs/frame.css", file(SHARED / "frame.css")),
    ]


def _reference(
    template: str,
    environment: Callable[[], "Environment"],
    document: Callable[[], dict[str, Any]],
    values: Callable[[], dict[str, Any]],
) -> PreparedText:
    """A part of the reference, as a page."""

    def page() -> str:
        return environment().get_template(template).render(document=document(), **values())

    return PreparedText(page, "text/html", _POLICY)


def _openapi_json(document: Callable[[], dict[str, Any]]) -> PreparedText:
    return PreparedText(lambda: to_json(shared(document())), "application/json")


def _markdown(
    document: Callable[[], dict[str, Any]], names: Iterable[str], errors: ErrorCatalogue
) -> list[BaseRoute]:
    """The reference as text, one file for each of these areas; /llms.txt lists the files."""

    @cache
    def pages() -> dict[str, MarkdownPage]:
        described = document()
        base_url = described["servers"][0]["url"]

        def samples(
            _method: str, _path: str, operation: Mapping[str, Any]
        ) -> list[tuple[str, str]]:
            found = samples_of(operation["operationId"], base_url)
            return [(_FENCES[title], code) for title, code in found]

        made = ApiPages(described, samples, errors_page="errors.md")
        return {page.name: page for page in made}

    def text_of(name: str) -> Callable[[], str]:
        return lambda: pages()[name].text

    def errors_text() -> str:
        rows = [
            f"| {each.status} | `{each.code}` | {' '.join(str(each.__doc__).split())} |\n"
            for each in errors
        ]
        return "# Error codes\n\n| status | code | meaning |\n| --- | --- | --- |\n" + "".join(rows)

    def llms_text() -> str:
        info, base_url = document()["info"], document()["servers"][0]["url"]
        listed = [
            f"- [{each.title}]({base_url}/docs/{each.name}.md)\n" for each in pages().values()
        ]
        return (
            f"# {info['title']}\n\n> {info['summary']}\n\n{info['description']}\n\n## API\n\n"
            f"{''.join(listed)}- [Error codes]({base_url}/docs/errors.md)\n"
            f"- [OpenAPI document]({base_url}/openapi.json)\n"
        )

    made = {**{name: text_of(name) for name in names}, "errors": errors_text}
    files = {name: PreparedText(make, "text/markdown") for name, make in made.items()}

    def file(request: Request) -> Response:
        found = files.get(request.path_params["page"])
        if found is None:
            raise HTTPException(404)
        return found.answer(request)

    return [
        Route("/docs/{page}.md", file),
        Route("/llms.txt", PreparedText(llms_text, "text/plain").answer),
    ]


class NotFoundPage:
    """What people read in a browser at an address where nothing is, or that only takes forms; programs get
    the error envelope."""

    def __init__(self, texts: Texts, default_lang: str) -> None:
        self._texts = texts
        self._default_lang = default_lang
        self._environment = cache(_templates)

    def is_for(self, request: Request) -> bool:
        path = path_within(request.scope)
        return "text/html" in request.headers.get("accept", "") and not path.startswith("/v1/")

    def answer(self, request: Request, error: HTTPException) -> Response:
        liked = request.headers.get("accept-language", "")
        lang = read_language("", liked, self._default_lang)
        page = _page(
            self._environment(),
            "not_found.html",
            lang=lang,
            _=self._texts.into(lang),
            root=request.scope.get("root_path", ""),
            status=error.status_code,
        )
        page.status_code = error.status_code
        page.headers.update(error.headers or {})
        page.headers["Vary"] = "Accept, Accept-Language"
        return page


def _templates() -> "Environment":
    from jinja2 import Environment, FileSystemLoader  # noqa: PLC0415 - 2 MiB, only for pages

    environment = Environment(
        loader=FileSystemLoader(_FOLDER / "templates"), autoescape=True, trim_blocks=True
    )
    environment.filters["pretty_json"] = partial(json.dumps, indent=2, ensure_ascii=False)
    return environment


def _page(environment: "Environment", template: str, **values: Any) -> Response:
    return HTMLResponse(environment.get_template(template).render(**values), headers=_POLICY)


def _areas(declared: Sequence[Endpoint]) -> list[tuple[str, list[tuple[Endpoint, list[Any]]]]]:
    return [
        (area, [(endpoint, errors_of(endpoint)) for endpoint in group])
        for area, group in groupby(
            sorted(declared, key=lambda endpoint: endpoint.place),
            key=lambda endpoint: endpoint.area,
        )
    ]
