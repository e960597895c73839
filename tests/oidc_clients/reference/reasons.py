"""Why our provider answers otherwise than the reference.

Cases and facts are named one by one: a new difference has no reason until somebody has thought of one.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reason:
    """Why each of these facts differs in each of these cases."""

    why: str
    cases: Sequence[str]
    facts: Sequence[str]


def _of(prefix: str, *names: str) -> list[str]:
    return [f"{prefix}: {name}" for name in names]


def _both_methods(*names: str) -> list[str]:
    return [f"logout: {name}, {method}" for name in names for method in ("GET", "POST")]


_ERROR = ("status", "members", "error")

METADATA = (
    Reason(
        "clients may keep the document; the standards leave it open",
        _of("metadata", "openid-configuration", "oauth-authorization-server"),
        ["cached"],
    ),
    Reason(
        "each provider has its own values (OpenID Connect Core 1.0, section 2, `acr`)",
        ["metadata: acr_values_supported"],
        ["is"],
    ),
    Reason(
        "OpenID CIBA Core 1.0, section 4: optional; a Yes in the messenger is the proof",
        ["metadata: backchannel_user_code_parameter_supported"],
        ["is"],
    ),
    Reason(
        "OpenID Connect Discovery 1.0, section 3: a list that need not be complete; ours has the claims of "
        "ID tokens too",
        ["metadata: claims_supported"],
        ["is"],
    ),
    Reason(
        "DPoP (RFC 9449) is not offered", ["metadata: dpop_signing_alg_values_supported"], ["is"]
    ),
    Reason(
        "a choice of each provider; the reference runs with its defaults",
        _of("metadata", "id_token_signing_alg_values_supported", "subject_types_supported"),
        ["is"],
    ),
    Reason(
        "registration (RFC 7591) is a setting, off by default; the reference registers the test's clients",
        ["metadata: registration_endpoint"],
        ["is"],
    ),
    Reason(
        "none of the flows that need a fragment is offered (OAuth 2.0 Multiple Response Type Encoding "
        "Practices, section 2.1)",
        ["metadata: response_modes_supported"],
        ["is"],
    ),
    Reason(
        "ours says what the reference leaves to defaults, or to be tried (RFC 8414, section 2; RFC 9126, "
        "section 5; OpenID Connect Discovery 1.0, section 3; Initiating User Registration 1.0)",
        _of(
            "metadata",
            "frontchannel_logout_supported",
            "introspection_endpoint_auth_methods_supported",
            "prompt_values_supported",
            "request_parameter_supported",
            "require_pushed_authorization_requests",
            "revocation_endpoint_auth_methods_supported",
            "ui_locales_supported",
        ),
        ["is"],
    ),
    Reason(
        "a key set is JSON; OpenID Connect does not ask for the narrower media type of RFC 7517, section "
        "8.5.2, which some clients do not accept",
        ["keys: document"],
        ["type"],
    ),
    Reason(
        "clients may keep the keys for as long as they are published ahead (OpenID Connect Core 1.0, "
        "section 10.1.1)",
        ["keys: document"],
        ["cached"],
    ),
)

AUTHORIZATION = (
    Reason(
        "OpenID Connect Core 1.0, section 3.1.2.1: required; the reference takes the only one",
        ["authorize: no redirect_uri"],
        ["goes", "status"],
    ),
    Reason(
        "response types that ours does not know have no mode of their own (RFC 6749, section 4.1.2.1)",
        _of("authorize", "response_type token", "response_type code id_token"),
        ["fragment"],
    ),
    Reason(
        "RFC 6749, sections 3.3 and 5.2: a scope that is missing, or not enough, is invalid_scope, at each "
        "endpoint",
        [
            *_of("authorize", "no scope", "scope without openid"),
            "pushed: scope without openid",
            *_of("ciba", "no scope", "scope without openid"),
        ],
        ["error"],
    ),
    Reason(
        "RFC 6749, section 4.1.2.1: an invalid parameter value is invalid_request",
        ["authorize: response_mode unknown"],
        ["error"],
    ),
    Reason(
        "ours has `query` and `form_post` alone: an invalid parameter value (RFC 6749, section 4.1.2.1)",
        ["authorize: response_mode fragment"],
        ["goes", "status", "error", "parameters", "state"],
    ),
    Reason(
        "OAuth 2.0 Form Post Response Mode, section 2: the page that posts an error is a page as any other",
        ["authorize: response_mode form_post, prompt none"],
        ["status"],
    ),
    Reason(
        "ours describes the error (RFC 6749, section 4.1.2.1: optional)",
        _of("authorize", "request", "request_uri of elsewhere", "registration"),
        ["parameters"],
    ),
    Reason(
        "OpenID Connect Core 1.0, section 3.1.2.1: ours asks again; the reference has no such prompt",
        ["session: prompt select_account"],
        ["goes", "status", "error", "parameters", "state"],
    ),
    Reason(
        "RFC 9126, section 2.1: the parameter must not be there, which is an invalid request (section 2.3)",
        ["pushed: with request_uri"],
        ["members", "error"],
    ),
    Reason(
        "without a valid pushed request there is no redirect URI, so the person sees an error page (RFC "
        "6749, section 4.1.2.1)",
        [
            *_of("pushed", "request_uri of another client", "request_uri again"),
            "expired: pushed request",
        ],
        ["goes", "status", "error", "parameters"],
    ),
    Reason(
        "the reference answers the client with it, ours the person",
        ["pushed: request_uri of another client"],
        ["state"],
    ),
)

POLLING = (
    Reason(
        "ours says the interval, which is optional (RFC 8628, section 3.2; OpenID CIBA Core 1.0, section "
        "7.3)",
        ["device: start", "device: start, unknown scope", "ciba: start"],
        ["members"],
    ),
    Reason(
        "RFC 6749, section 5.2 (by RFC 8628, section 3.2, and OpenID CIBA Core 1.0, section 13): a client "
        "that may not use this grant is unauthorized_client",
        [
            *_of("device", "start, client without this grant", "code of another client"),
            *_of("ciba", "client without this grant", "request of another client"),
            "request: grant of other clients",
        ],
        ["error"],
    ),
    Reason(
        "RFC 6749, section 3.3: without a default scope a request without one fails; nothing here is done "
        "without a sign-in",
        ["device: start, no scope"],
        _ERROR,
    ),
    Reason(
        "RFC 8628, section 3.5, and OpenID CIBA Core 1.0, section 11; the reference lets clients poll",
        ["device: poll again at once", "ciba: poll again at once"],
        ["error"],
    ),
    Reason(
        "RFC 8628, section 3.5, and OpenID CIBA Core 1.0, section 11; the reference has forgotten them",
        ["expired: device code", "expired: backchannel request"],
        ["error"],
    ),
    Reason(
        "OpenID CIBA Core 1.0, section 7.1: a message has to be short; one that is not is "
        "invalid_binding_message (section 13)",
        ["ciba: long binding_message"],
        _ERROR,
    ),
    Reason(
        "ours describes the error (RFC 6749, section 5.2: optional)", ["ciba: refused"], ["members"]
    ),
)

LOGOUT = (
    Reason(
        "no session in this browser: there is nothing to ask (RP-Initiated Logout 1.0, sections 2 and 3)",
        _both_methods("hint and URI", "client_id and URI"),
        ["goes"],
    ),
    Reason(
        "RP-Initiated Logout 1.0, section 4: what can't be validated is not used; the person signs out all "
        "the same, and stays on our page",
        _both_methods(
            "URI of elsewhere", "hint no token", "unknown client", "hint of another client"
        ),
        ["goes", "status"],
    ),
)

TOKENS = (
    Reason(
        "`typ` may be there (RFC 7519, section 5.1)",
        [
            *(f"code: ID token, {kind} client" for kind in ("basic", "post", "public")),
            "refresh: ID token",
        ],
        ["header"],
    ),
    Reason(
        "ours always says how and when the person signed in, and in which session, all of them optional "
        "(OpenID Connect Core 1.0, section 2), and has the claims of the granted scopes unless the client's "
        "setting says otherwise: most software looks for them there",
        [
            *(f"code: ID token, {kind} client" for kind in ("basic", "post", "public")),
            *_of("refresh", "ID token"),
            *_of("device", "ID token"),
            *_of("ciba", "ID token"),
        ],
        ["claims"],
    ),
    Reason(
        "RFC 6749, section 4.1.3: required, as the authorization request had it",
        ["code: no redirect_uri"],
        _ERROR,
    ),
    Reason(
        "RFC 6749, section 5.2: no client authentication is invalid_client",
        [
            "client: none",
            "device: start, not authenticated",
            "ciba: not authenticated",
            "introspection: not authenticated",
            "revocation: not authenticated",
        ],
        ["status", "error"],
    ),
    Reason(
        "RFC 6749, section 2.3.1: a secret in the form is for clients that can't use the header; the "
        "reference takes it from any, and goes on to the code",
        ["client: the other way than registered"],
        ["status", "error"],
    ),
    Reason(
        "RFC 6749, section 5.2: an unsupported authentication method is invalid_client, and a header is "
        "answered with the scheme that is supported",
        _of("client", "header that is no base64", "header of another scheme"),
        ["status", "error", "challenge"],
    ),
    Reason(
        "RFC 9110, section 15.5.6: a path that exists does not take GET; the reference has no route for it",
        ["request: GET", "revocation: GET"],
        ["status", "type", "members", "error"],
    ),
    Reason(
        "the reference repeats the scope (RFC 6749, section 5.2, does not name it)",
        ["refresh: more scopes"],
        ["members"],
    ),
    Reason(
        "RFC 9700, section 4.14.2, leaves how reuse is told to the server: for `oidc.refresh_reuse_s` a "
        "client that lost the answer gets the same successor, and the family goes on",
        _of("refresh", "again at once", "successor after that"),
        _ERROR,
    ),
)

RESOURCES = (
    Reason(
        "the person of the sandbox has shared no phone number (OpenID Connect Core 1.0, section 5.3.2)",
        _of("userinfo", "by GET", "by POST", "in the form"),
        ["members"],
    ),
    Reason(
        "RFC 9700, section 4.3.2: tokens in a query are not looked at, so there is none (RFC 6750, section "
        "3.1)",
        ["userinfo: in the query"],
        ["status", "error", "challenge"],
    ),
    Reason(
        "RFC 6750, section 3.1: another scheme is no authentication, which is 401",
        ["userinfo: another scheme"],
        ["status", "error", "challenge"],
    ),
    Reason(
        "RFC 7662, section 2.2: all but `active` are optional",
        _of("introspection", "access token", "refresh token", "wrong hint", "unknown hint"),
        ["members"],
    ),
    Reason(
        "ours has no response to be stored, with or without tokens",
        _of(
            "revocation",
            "of another client",
            "unknown token",
            "no token",
            "not authenticated",
            "unknown hint",
            "refresh token",
            "access token",
        ),
        ["not stored"],
    ),
    Reason(
        "RFC 7009, section 2.2: the body is ignored; an empty object, for clients that read JSON alone",
        _of(
            "revocation",
            "of another client",
            "unknown token",
            "unknown hint",
            "refresh token",
            "access token",
        ),
        ["type", "members"],
    ),
)

REASONS = (*METADATA, *AUTHORIZATION, *POLLING, *LOGOUT, *TOKENS, *RESOURCES)
