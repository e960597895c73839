"""The form of a client: what was typed, for the API's models."""

from typing import Any

from msgsvc_core.dashboard import PageContext
from msgsvc_core.kernel.errors import ValidationFailed
from msgsvc_core.kernel.json import from_json
from msgsvc_oidc.protocol.clients import Client

#: Fields with one URI a line.
_URI_LISTS = ("redirect_uris", "post_logout_redirect_uris")

#: Fields with one URL, or none.
_URLS = ("backchannel_logout_uri", "home_url")

_FLAGS = ("first_party", "number_matching", "require_pushed")


def changes(page: PageContext) -> dict[str, Any]:
    """What can be changed of a client."""
    form = page.form
    return {
        "name": form.text("name").strip(),
        **{name: _lines(form.text(name)) for name in _URI_LISTS},
        **{name: form.text(name).strip() or None for name in _URLS},
        **{name: form.checked(name) for name in _FLAGS},
        "scopes": ["openid", *form.texts("scopes")],
        "grant_types": form.texts("grant_types"),
        "must_prove": form.texts("must_prove"),
        **({"jwks": _jwks(page)} if form.text("jwks").strip() else {}),
    }


def new_client(page: PageContext) -> dict[str, Any]:
    """All of a new client, with what can't be changed later."""
    form = page.form
    return {
        **changes(page),
        "token_endpoint_auth_method": form.text("auth_method"),
        "subject_type": "pairwise" if form.checked("pairwise") else "public",
        "id_token_signed_response_alg": form.text("signing_alg"),
    }


def chosen(page: PageContext, client: Client | None) -> dict[str, Any]:
    """What is ticked: as it was typed, as it is, or as most clients need it."""
    form = page.form
    flags = (*_FLAGS, "pairwise")
    if page.error is not None:
        ticked = {name: form.checked(name) for name in flags}
        lists = {name: form.texts(name) for name in ("scopes", "grant_types", "must_prove")}
    elif client is not None:
        ticked = {name: getattr(client, name, False) for name in flags}
        lists = {
            "scopes": list(client.scopes),
            "grant_types": list(client.grant_types),
            "must_prove": list(client.must_prove),
        }
    else:
        ticked = dict.fromkeys(flags, False)
        lists = {
            "scopes": ["profile"],
            "grant_types": ["authorization_code", "refresh_token"],
            "must_prove": [],
        }
    return {**ticked, **lists}


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.split("\n") if line.strip()]


def _jwks(page: PageContext) -> Any:
    try:
        return from_json(page.form.text("jwks"))
    except ValueError:
        raise ValidationFailed("must be a JWK Set", field="jwks") from None
