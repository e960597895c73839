"""The provider's metadata (OpenID Connect Discovery 1.0, section 3; RFC 8414, section 2)."""

from collections.abc import Collection
from typing import Any

from msgsvc_oidc.protocol.authentication import ACR_VALUES
from msgsvc_oidc.protocol.client_authentication import ASSERTION_ALGORITHMS
from msgsvc_oidc.protocol.clients import CIBA, DEVICE_CODE
from msgsvc_oidc.protocol.scopes import CLAIMS, SCOPES

#: Paths of the endpoints below the issuer.
AUTHORIZATION, TOKEN, USERINFO, JWKS = "/authorize", "/token", "/userinfo", "/jwks"
REVOCATION, INTROSPECTION, PUSHED = "/revoke", "/introspect", "/par"
DEVICE_AUTHORIZATION, BACKCHANNEL = "/device_authorization", "/bc-authorize"
END_SESSION, REGISTRATION = "/logout", "/register"

#: The page on which people enter the codes of devices.
DEVICE = "/device"

_METHODS = ["client_secret_basic", "client_secret_post", "private_key_jwt", "none"]

#: Of endpoints that a public client can't use.
_CONFIDENTIAL = _METHODS[:-1]


def metadata(issuer: str, *, languages: Collection[str], registers: bool) -> dict[str, Any]:
    """The document at `/.well-known/openid-configuration`, for one issuer."""
    found: dict[str, Any] = {
        "issuer": issuer,
        "authorization_endpoint": issuer + AUTHORIZATION,
        "token_endpoint": issuer + TOKEN,
        "userinfo_endpoint": issuer + USERINFO,
        "jwks_uri": issuer + JWKS,
        "scopes_supported": list(SCOPES),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query", "form_post"],
        "grant_types_supported": ["authorization_code", "refresh_token", DEVICE_CODE, CIBA],
        "subject_types_supported": ["public", "pairwise"],
        "id_token_signing_alg_values_supported": ["RS256", "ES256", "EdDSA"],
        "acr_values_supported": list(ACR_VALUES),
        "prompt_values_supported": ["none", "login", "consent", "select_account"],
        "ui_locales_supported": list(languages),
        "claim_types_supported": ["normal"],
        "claims_supported": _claims(),
        "claims_parameter_supported": False,
        "request_parameter_supported": False,
        "request_uri_parameter_supported": False,
        "authorization_response_iss_parameter_supported": True,
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": _METHODS,
        "token_endpoint_auth_signing_alg_values_supported": list(ASSERTION_ALGORITHMS),
        "revocation_endpoint": issuer + REVOCATION,
        "revocation_endpoint_auth_methods_supported": _METHODS,
        "introspection_endpoint": issuer + INTROSPECTION,
        "introspection_endpoint_auth_methods_supported": _CONFIDENTIAL,
        "pushed_authorization_request_endpoint": issuer + PUSHED,
        "require_pushed_authorization_requests": False,
        "device_authorization_endpoint": issuer + DEVICE_AUTHORIZATION,
        "backchannel_authentication_endpoint": issuer + BACKCHANNEL,
        "backchannel_token_delivery_modes_supported": ["poll"],
        "backchannel_user_code_parameter_supported": False,
        "end_session_endpoint": issuer + END_SESSION,
        "backchannel_logout_supported": True,
        "backchannel_logout_session_supported": True,
        "frontchannel_logout_supported": False,
    }
    if registers:
        found["registration_endpoint"] = issuer + REGISTRATION
    return found


def _claims() -> list[str]:
    of_tokens = ["iss", "aud", "exp", "iat", "auth_time", "nonce", "acr", "amr", "sid", "at_hash"]
    return [*of_tokens, *(claim for claims in CLAIMS.values() for claim in claims)]
