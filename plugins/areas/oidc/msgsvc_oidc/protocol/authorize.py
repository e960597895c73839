"""The authorization endpoint: what a request asks for, and what comes next (OpenID Connect Core 1.0, section
3.1.2; RFC 6749, section 4.1; RFC 7636; RFC 9207; RFC 9700)."""

import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

from msgsvc_core.channels import Identity
from msgsvc_core.plugins.sign_ins import SignInMethod
from msgsvc_oidc.protocol import redirects
from msgsvc_oidc.protocol.authentication import requires_number, satisfies
from msgsvc_oidc.protocol.clients import Client
from msgsvc_oidc.protocol.errors import RedirectError, UnusableRequest
from msgsvc_oidc.protocol.parameters import Parameters
from msgsvc_oidc.protocol.scopes import known_scopes

ResponseMode = Literal["query", "form_post"]

PROMPTS = ("none", "login", "consent", "select_account")

#: Characters of a parameter that is kept as it came: anybody can start a request, and each is a row.
MAX_TEXT_LENGTH = 2048

#: Characters of `state`, in which software keeps all that it needs to know again, encrypted.
MAX_STATE_LENGTH = 8192

_KEPT = ("state", "nonce", "login_hint", "ui_locales", "acr_values")

#: BASE64URL of a SHA-256 digest (RFC 7636, section 4.2).
_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")

_SECONDS = re.compile(r"[0-9]{1,9}")

#: Parameters for features that the provider does not have, with the registered errors (OpenID Connect Core
#: 1.0, section 3.1.2.6).
_UNSUPPORTED = {
    "request": "request_not_supported",
    "request_uri": "request_uri_not_supported",
    "registration": "registration_not_supported",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationRequest:
    """A valid authorization request of a known client."""

    client_id: str
    redirect_uri: str
    response_mode: ResponseMode
    scopes: tuple[str, ...]
    state: str | None = None
    nonce: str | None = None
    code_challenge: str | None = None
    prompts: tuple[str, ...] = ()
    max_age_s: int | None = None
    #: The name of a messenger is taken, see `SignInPages`; other hints are ignored.
    login_hint: str | None = None
    #: Whom the client expects, by `id_token_hint`; None for anybody.
    expected_subscriber_id: str | None = None
    ui_locales: tuple[str, ...] = ()
    acr_values: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """For storage as JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> "AuthorizationRequest":
        """From storage."""
        lists = ("scopes", "prompts", "ui_locales", "acr_values")
        return cls(**{**stored, **{name: tuple(stored[name]) for name in lists}})


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A browser's session with the provider: who signed in there, when and how."""

    session_id: str
    subscriber_id: str
    auth_time_ms: int
    method: SignInMethod
    proves: Identity | None = None


#: What comes next: the person signs in, is asked for consent, or goes back to the client with a code.
Step = Literal["sign_in", "consent", "issue"]


def read_redirect_uri(parameters: Parameters, client: Client) -> str:
    """The redirect URI of a request. Raises `UnusableRequest` unless it equals a registered one: an error
    that went to any other address would make the provider an open redirector (RFC 9700, section 4.11)."""
    requested = parameters.get("redirect_uri")
    if requested is None:
        raise UnusableRequest("redirect_uri is missing")
    if parameters.is_repeated("client_id", "redirect_uri"):
        raise UnusableRequest("client_id or redirect_uri came twice")
    for each in client.redirect_uris:
        if redirects.matches(each, requested, any_port=client.is_public):
            return requested
    raise UnusableRequest("redirect_uri is not one that is registered for this client")


def read_request(
    parameters: Parameters, client: Client, redirect_uri: str, *, pushed: bool = False
) -> AuthorizationRequest:
    """The request; `pushed` says that the client sent it itself, without a browser. Raises `RedirectError`
    with the registered error code for what is wrong with it."""
    try:
        parameters.check_single()
    except Exception as error:
        raise RedirectError("invalid_request", "a parameter came twice") from error
    for name, error_code in _UNSUPPORTED.items():
        if name in parameters:
            raise RedirectError(error_code, f"{name} is not supported")
    if "authorization_code" not in client.grant_types:
        raise RedirectError("unauthorized_client", "the client may not use this flow")
    if client.require_pushed and not pushed:
        raise RedirectError("invalid_request", "the client must push its authorization requests")
    _check_response_type(parameters)
    for name in _KEPT:
        limit = MAX_STATE_LENGTH if name == "state" else MAX_TEXT_LENGTH
        if len(parameters.get(name, "")) > limit:
            raise RedirectError("invalid_request", f"{name} is too long")
    return AuthorizationRequest(
        client_id=client.client_id,
        redirect_uri=redirect_uri,
        response_mode=response_mode_of(parameters),
        scopes=_scopes(parameters, client),
        state=parameters.get("state"),
        nonce=parameters.get("nonce"),
        code_challenge=_challenge(parameters, client),
        prompts=_prompts(parameters),
        max_age_s=_max_age(parameters),
        login_hint=parameters.get("login_hint"),
        ui_locales=parameters.words("ui_locales"),
        acr_values=parameters.words("acr_values"),
    )


def response_mode_of(parameters: Parameters) -> ResponseMode:
    """How the answer goes to the client: in the query, or posted by a form (OAuth 2.0 Form Post Response
    Mode). Another mode is an error, which is answered in the query."""
    mode = parameters.get("response_mode", "query")
    if mode == "form_post":
        return "form_post"
    if mode != "query":
        raise RedirectError("invalid_request", "response_mode must be query or form_post")
    return "query"


def next_step(
    request: AuthorizationRequest,
    client: Client,
    session: Session | None,
    consented: Collection[str],
    *,
    now_ms: int,
    signed_in: bool = False,
    agreed: bool = False,
    device: bool = False,
) -> Step:
    """What comes next. `signed_in` and `agreed` say what the person did for this very request.

    For a device the person is always asked, whatever they agreed to before: somebody else may have sent them
    the code (RFC 8628, section 5.4).

    Raises `RedirectError` where `prompt=none` allows no page (OpenID Connect Core 1.0, section 3.1.2.6), and
    if another person signed in than the client expects.
    """
    silent = "none" in request.prompts
    if session is None or (not signed_in and _must_sign_in(request, client, session, now_ms)):
        if silent:
            raise RedirectError("login_required", "the person has to sign in")
        return "sign_in"
    if not _is_expected(request, session):
        # OpenID Connect Core 1.0, section 3.1.2.1, `id_token_hint`.
        raise RedirectError("login_required", "another person signed in than id_token_hint names")
    if not agreed and (device or _must_consent(request, client, consented)):
        if silent:
            raise RedirectError("consent_required", "the person has to agree")
        return "consent"
    return "issue"


def asks_for_number(request: AuthorizationRequest, client: Client) -> bool:
    """Whether the person has to choose the number that the page shows."""
    return client.number_matching or requires_number(request.acr_values)


def answer_parameters(
    request_state: str | None, issuer: str, values: Mapping[str, str]
) -> dict[str, str]:
    """What goes to the redirect URI: `code` or an error, with `state` and `iss` (RFC 9207, section 2)."""
    state = {} if request_state is None else {"state": request_state}
    return {**values, **state, "iss": issuer}


def _must_sign_in(
    request: AuthorizationRequest, client: Client, session: Session, now_ms: int
) -> bool:
    if "login" in request.prompts or "select_account" in request.prompts:
        return True
    if not _is_expected(request, session):
        return True
    if request.max_age_s is not None and _is_older(session, request.max_age_s, now_ms):
        return True
    if client.must_prove and session.proves not in client.must_prove:
        return True
    if client.number_matching and session.method == "button":
        return True
    return not satisfies(session.method, request.acr_values)


def _is_expected(request: AuthorizationRequest, session: Session) -> bool:
    return request.expected_subscriber_id in {None, session.subscriber_id}


def _is_older(session: Session, max_age_s: int, now_ms: int) -> bool:
    """0 always asks, as `prompt=login` does (OpenID Connect Core 1.0, section 3.1.2.1)."""
    return max_age_s == 0 or now_ms - session.auth_time_ms > max_age_s * 1000


def _must_consent(
    request: AuthorizationRequest, client: Client, consented: Collection[str]
) -> bool:
    if client.is_public and urlsplit(request.redirect_uri).scheme not in {"http", "https"}:
        # Another app can take its scheme, and with it a code that nobody asked about (RFC 8252, section 8.6).
        return True
    if client.first_party:
        return False
    return "consent" in request.prompts or not set(request.scopes) <= set(consented)


def _check_response_type(parameters: Parameters) -> None:
    response_type = parameters.get("response_type")
    if response_type is None:
        raise RedirectError("invalid_request", "response_type is missing")
    if response_type != "code":
        raise RedirectError("unsupported_response_type", "response_type must be code")


def _scopes(parameters: Parameters, client: Client) -> tuple[str, ...]:
    """Raises `RedirectError` without `openid`: nothing here is done without a sign-in."""
    scopes = known_scopes(parameters.words("scope"), client.scopes)
    if "openid" not in scopes:
        raise RedirectError("invalid_scope", "scope must hold openid")
    if "refresh_token" not in client.grant_types:
        return tuple(scope for scope in scopes if scope != "offline_access")
    return scopes


def _challenge(parameters: Parameters, client: Client) -> str | None:
    """The PKCE challenge (RFC 7636, section 4.3). `plain` protects from nobody who sees the request."""
    challenge = parameters.get("code_challenge")
    method = parameters.get("code_challenge_method")
    if challenge is None:
        if client.is_public:
            raise RedirectError("invalid_request", "code_challenge is missing")
        if method is not None:
            raise RedirectError("invalid_request", "code_challenge_method without code_challenge")
        return None
    if method != "S256":
        raise RedirectError("invalid_request", "code_challenge_method must be S256")
    if not _CHALLENGE.fullmatch(challenge):
        raise RedirectError("invalid_request", "code_challenge is not a SHA-256 digest")
    return challenge


def _prompts(parameters: Parameters) -> tuple[str, ...]:
    prompts = parameters.words("prompt")
    if any(prompt not in PROMPTS for prompt in prompts):
        raise RedirectError("invalid_request", "prompt has an unknown value")
    if "none" in prompts and len(prompts) > 1:
        raise RedirectError("invalid_request", "prompt=none must stand alone")
    return prompts


def _max_age(parameters: Parameters) -> int | None:
    text = parameters.get("max_age")
    if text is None:
        return None
    if not _SECONDS.fullmatch(text):
        raise RedirectError("invalid_request", "max_age must be seconds")
    return int(text)
