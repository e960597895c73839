"""Every page and endpoint that needs no account, and what strangers can put into it.

The application says which there are, and `missing` names one that is missing here. Endpoints describe their
bodies themselves: see `test_operations.py`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.routing import Mount, Route

from msgsvc_core.service import Service
from msgsvc_oidc.protocol.client_authentication import ASSERTION_TYPE


@dataclass(frozen=True, slots=True)
class Fed:
    """What somebody can put into a page. `fixed` are values of its form that lead further in; `opens` is a
    page that gives the cookies and the hidden values."""

    query: tuple[str, ...] = ()
    form: tuple[str, ...] = ()
    json: Mapping[str, Any] | None = None
    headers: tuple[str, ...] = ()
    fixed: Mapping[str, str] = field(default_factory=dict)
    opens: str = ""


#: Nothing but what every page has: its path, headers and cookies, and a body that it does not ask for.
NOTHING = (Fed(),)

_OIDC_CLIENT = ("client_id", "client_secret", "client_assertion")
_AUTHORIZE = (
    "client_id",
    "redirect_uri",
    "response_type",
    "response_mode",
    "scope",
    "state",
    "nonce",
    "prompt",
    "max_age",
    "ui_locales",
    "login_hint",
    "id_token_hint",
    "acr_values",
    "claims",
    "code_challenge",
    "code_challenge_method",
    "request",
    "request_uri",
)
_ASSERTED = {"client_assertion_type": ASSERTION_TYPE}
_REGISTRATION: dict[str, Any] = {
    "client_name": "App",
    "client_name#ru": "App",
    "redirect_uris": ["https://app.example/back"],
    "post_logout_redirect_uris": ["https://app.example/bye"],
    "logo_uri": "https://app.example/logo.png",
    "scope": "openid profile",
    "contacts": ["ann@app.example"],
    "grant_types": ["authorization_code"],
    "jwks": {"keys": [{"kty": "RSA", "n": "AQAB", "e": "AQAB", "kid": "1"}]},
}

#: By path: what can be put into a GET or POST of it.
FED: dict[str, Sequence[Fed]] = {
    **dict.fromkeys(
        (
            "/healthz",
            "/readyz",
            "/metrics",
            "/",
            "/favicon.ico",
            "/openapi.json",
            "/docs",
            "/docs/types",
            "/docs/errors",
            "/docs/{page}.md",
            "/llms.txt",
            "/docs/docs.css",
            "/docs/docs.js",
            "/docs/tokens.css",
            "/docs/frame.css",
            "/qr/{channel}/{payload}.svg",
            "/files/{file_id}/{signature}",
            "/brand/preview/{colour}.css",
            "/brand/{colour}.css",
            "/brand/{logo_id}",
            "/login/button.js",
            "/login/{slug}/platform/{channel}",
            "/oidc/{project_id}/.well-known/openid-configuration",
            "/oidc/{project_id}/.well-known/oauth-authorization-server",
            "/.well-known/oauth-authorization-server/oidc/{project_id}",
            "/.well-known/openid-configuration/oidc/{project_id}",
            "/oidc/{project_id}/jwks",
            "/sandbox/p/{person_id}",
            "/dashboard/_looks/{look}.css",
            "/dashboard",
            "/dashboard/",
            "/dashboard/sign-out",
            "/dashboard/{rest:path}",
        ),
        NOTHING,
    ),
    # What platforms send is in `test_inbound.py`: others don't know the secret.
    "/hooks/{channel}": (Fed(query=("hub.mode", "hub.challenge", "signature"), json={}),),
    "/hooks/{channel}/{path:path}": (Fed(query=("signature", "text"), form=("signature", "text")),),
    "/preferences/{token}": (
        Fed(query=("done", "lang"), form=("do", "shown", "granted", "lang", "List-Unsubscribe")),
    ),
    "/b/{token}/{number}": (Fed(form=("attempt",)),),
    "/sandbox": (Fed(form=("name", "username", "lang", "timezone", "avatar")),),
    "/sandbox/open/{channel}": (Fed(query=("start",), form=("start", "person_id", "name")),),
    "/login/_return/{channel}": (Fed(query=("code", "state", "error", "id_token")),),
    "/login/{slug}/address/{channel}": (
        Fed(query=("lang", "state", "key"), form=("address",), opens="/login/{slug}"),
    ),
    "/login/{slug}/status": (Fed(query=("key", "page", "wait", "checking")),),
    "/login/{slug}": (
        Fed(
            query=("state", "callback_url", "lang", "key", "sent", "resume"),
            headers=("sec-purpose", "sec-fetch-dest"),
            form=("again", "lang"),
        ),
    ),
    "/oidc/{project_id}/token": (
        Fed(
            form=(*_OIDC_CLIENT, "grant_type", "code", "redirect_uri", "code_verifier", "scope"),
            headers=("authorization",),
        ),
        Fed(form=(*_OIDC_CLIENT, "refresh_token", "scope"), fixed={"grant_type": "refresh_token"}),
        Fed(form=("client_assertion", "client_id"), fixed=_ASSERTED),
    ),
    "/oidc/{project_id}/revoke": (Fed(form=(*_OIDC_CLIENT, "token", "token_type_hint")),),
    "/oidc/{project_id}/introspect": (Fed(form=(*_OIDC_CLIENT, "token", "token_type_hint")),),
    "/oidc/{project_id}/userinfo": (Fed(form=("access_token",), headers=("authorization",)),),
    "/oidc/{project_id}/device_authorization": (Fed(form=(*_OIDC_CLIENT, "scope")),),
    "/oidc/{project_id}/bc-authorize": (
        Fed(form=(*_OIDC_CLIENT, "login_hint", "id_token_hint", "binding_message", "scope")),
    ),
    "/oidc/{project_id}/par": (Fed(form=(*_OIDC_CLIENT, *_AUTHORIZE)),),
    "/oidc/{project_id}/authorize": (
        Fed(query=_AUTHORIZE, form=_AUTHORIZE),
        Fed(query=_AUTHORIZE, fixed={"client_id": "{client_id}", "scope": "openid"}),
    ),
    "/oidc/{project_id}/return": (Fed(query=("code", "state", "error")),),
    "/oidc/{project_id}/consent/{request_id}": (Fed(form=("answer",)),),
    "/oidc/{project_id}/device": (Fed(query=("user_code", "lang"), form=("user_code", "answer")),),
    "/oidc/{project_id}/logout": (
        Fed(
            query=("id_token_hint", "post_logout_redirect_uri", "state", "client_id", "ui_locales"),
            form=("id_token_hint", "post_logout_redirect_uri", "state", "client_id", "logout_hint"),
        ),
    ),
    "/oidc/{project_id}/logout/confirm": (Fed(form=("confirmation",)),),
    "/oidc/{project_id}/register": (Fed(json=_REGISTRATION, headers=("authorization",)),),
    "/oidc/{project_id}/register/{client_id}": (
        Fed(json=_REGISTRATION, headers=("authorization",)),
    ),
    "/code/{token}/again": (Fed(form=("lang",)),),
    "/code/{token}": (Fed(query=("lang",), form=("code",)),),
    "/compat/{sender}/{secret}": (
        Fed(
            json={
                "to": "+12025550123",
                "content": "Your code is 123456",
                "id": "1",
            },
            headers=("zitadel-signature",),
        ),
    ),
    "/l/{token}": (Fed(headers=("user-agent", "sec-purpose")),),
    "/f/{form_id}/thanks": (Fed(query=("lang",)),),
    "/f/{form_id}/token": (Fed(headers=("origin",)),),
    "/f/{form_id}": (
        Fed(
            query=("lang",),
            form=("name", "token", "lang"),
            headers=("origin",),
            json={"name": "Ann"},
        ),
        Fed(form=("name", "lang"), headers=("accept",), opens="/f/{form_id}"),
    ),
    "/dashboard/sign-in": (
        Fed(
            query=("next", "lang"),
            form=("email", "password", "next", "timezone"),
            opens="/dashboard/sign-in",
        ),
    ),
    "/dashboard/sign-in/code": (
        Fed(query=("next",), form=("code", "next", "timezone"), opens="/dashboard/sign-in"),
    ),
    "/dashboard/sign-in/messenger": (Fed(query=("next",), form=("next", "timezone")),),
    "/dashboard/sign-in/messenger/status": (Fed(query=("next", "key")),),
    "/dashboard/link/{token}": (
        Fed(form=("password", "name", "timezone"), opens="/dashboard/link/{token}"),
    ),
}

#: Pages of the dashboard, which need an account.
_WITH_ACCOUNT = ("/dashboard/projects/", "/dashboard/account", "/dashboard/operator/")


@dataclass(frozen=True, slots=True)
class PublicPage:
    """A path that anybody can ask for, and its methods."""

    path: str
    methods: frozenset[str]

    def __str__(self) -> str:
        return self.path


def public_pages(service: Service) -> list[PublicPage]:
    """All paths of the application but those of endpoints, and of pages with an account. Static files are
    there by their folder."""
    app: Any = service.app
    others = app._others
    while not isinstance(others, Starlette):
        others = others.app
    methods: dict[str, set[str]] = {}
    for route in others.routes:
        assert isinstance(route, Route | Mount), f"{route} is another kind of route"
        if isinstance(route, Mount):
            methods.setdefault(f"{route.path}/{{file}}", set()).add("GET")
        elif not route.path.startswith(_WITH_ACCOUNT):
            methods.setdefault(route.path, set()).update(route.methods or ())
    known = {"GET", "POST", "PUT"}
    return [PublicPage(path, frozenset(found & known)) for path, found in methods.items()]


def fed(page: PublicPage) -> Sequence[Fed] | None:
    """What can be put into a page; None if nobody has said so."""
    return NOTHING if page.path.endswith("/{file}") else FED.get(page.path)


def missing(pages: Sequence[PublicPage]) -> Iterator[str]:
    """Paths that nobody has said anything about, and those that there are no more."""
    paths = {page.path for page in pages}
    yield from (
        f"say in {__name__} what strangers can put into {page}"
        for page in pages
        if fed(page) is None
    )
    yield from (f"{path} is no page any more" for path in FED if path not in paths)
