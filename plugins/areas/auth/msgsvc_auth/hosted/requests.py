"""Parses requests for the hosted page: the sign-in's parameters and the client."""

from urllib.parse import urlencode

from starlette.requests import Request

from msgsvc_auth.clients import Client
from msgsvc_auth.hosted.models import Site, Visit
from msgsvc_auth.models import MAX_STATE_LENGTH
from msgsvc_core.kernel.errors import BadRequest
from msgsvc_core.kernel.i18n import Language, Texts
from msgsvc_core.pages import read_language

#: Marks a reload by the page itself. No sign-in is opened there, so a browser without cookies does not
#: start one after another.
RESUME = "resume"


def read_visit(request: Request, texts: Texts, site: Site) -> Visit:
    """Raises `BadRequest` for a state that can't be returned to the site."""
    asked = site.request
    if asked is not None:
        # Nothing in the address changes what the other plugin asked for, but the language.
        return Visit(asked.state, language(request, texts, asked.lang or ""), asked.channel)
    fields = request.query_params
    state = fields.get("state", "")
    # PostgreSQL can't store a NUL.
    if len(state) > MAX_STATE_LENGTH or "\0" in state:
        raise BadRequest(
            "must be at most {limit} characters", field="state", limit=MAX_STATE_LENGTH
        )
    return Visit(state, language(request, texts), fields.get("channel") or None)


def language(request: Request, texts: Texts, requested: str = "") -> Language:
    """The language in the URL, else the `requested` one, else the browser's preferred one, else the
    service's default."""
    return read_language(
        request.query_params.get("lang") or requested,
        request.headers.get("accept-language", ""),
        texts.default_lang,
        texts.spoken,
    )


def client_of(request: Request) -> Client:
    """The browser, for the bot's question."""
    address = request.client.host if request.client else ""
    return Client.from_request(address, request.headers.get("user-agent", ""))


def is_prefetch(request: Request) -> bool:
    """Whether the browser only prefetches the page."""
    purposes = (request.headers.get(name, "") for name in ("sec-purpose", "purpose", "x-moz"))
    return any("prefetch" in purpose for purpose in purposes)


def is_embedded(request: Request) -> bool:
    """Whether the page is embedded in another one: a frame, an image, a script's request."""
    return request.headers.get("sec-fetch-dest", "document") != "document"


def root_of(request: Request) -> str:
    """The root path of the pages, also if the service is mounted below another application."""
    return f"{request.scope.get('root_path', '')}/login"


def address(request: Request, site: Site, visit: Visit, **added: str) -> str:
    """The page's own URL, in its language."""
    own = {"state": visit.state, "channel": visit.channel or ""} if site.request is None else {}
    query = {**own, "lang": visit.lang, **added}
    given = {name: value for name, value in query.items() if value}
    return f"{root_of(request)}/{site.path}?{urlencode(given)}"
