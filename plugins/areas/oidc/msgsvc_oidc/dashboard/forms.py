"""The form of a client: what was typed, for the API's models."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgsvc_core.dashboard import PageContext
from msgsvc_core.kernel.errors import ValidationFailed
from msgsvc_core.kernel.json import from_json
from msgsvc_oidc.protocol.clients import Client

#: Fields with one URI a line.
_URI_LISTS = ("redirect_uris", "post_logout_redirect_uris")

#: Fields with one URL, or none.
_URLS = ("backchannel_logout_uri", "home_url")

_FLAGS = ("first_party", "number_matching", "require_pushed", "claims_in_id_token")

#: Fields with any number of values, and those that most clients have.
_CHOICES: Mapping[str, Sequence[str]] = {
    "scopes": ("profile",),
    "grant_types": ("authorization_code", "refresh_token"),
    "must_prove": (),
    "introspects": (),
}


def changes(page: PageContext) -> dict[str, Any]:
    """What can be changed of a client."""
    form = page.form
    method = form.text("auth_method")
    return {
        "name": form.text("name").strip(),
        **{name: _lines(form.text(name)) for name in _URI_LISTS},
        **{name: form.text(name).strip() or None for name in _URLS},
        **{name: form.checked(name) for name in _FLAGS},
        "scopes": ["openid", *form.texts("scopes")],
        "grant_types": form.texts("grant_types"),
        "must_prove": form.texts("must_prove"),
        "introspects": form.texts("introspects"),
        **({"token_endpoint_auth_method": method} if method else {}),
        **({"jwks": _jwks(page)} if form.text("jwks").strip() else {}),
    }


def new_client(page: PageContext) -> dict[str, Any]:
    """All of a new client, with what can't be changed later."""
    form = page.form
    return {
        **changes(page),
        "subject_type": "pairwise" if form.checked("pairwise") else "public",
        "id_token_signed_response_alg": form.text("signing_alg"),
    }


def chosen(page: PageContext, client: Client | None) -> dict[str, Any]:
    """What is ticked: as it was typed, as it is, or as most clients need it."""
    form = page.form
    flags = (*_FLAGS, "pairwise")
    if page.error is not None:
        ticked = {name: form.checked(name) for name in flags}
        lists = {name: form.texts(name) for name in _CHOICES}
    elif client is not None:
        ticked = {name: getattr(client, name, False) for name in flags}
        lists = {name: list(getattr(client, name)) for name in _CHOICES}
    else:
        ticked = {**dict.fromkeys(flags, False), "claims_in_id_token": True}
        lists = {name: list(usual) for name, usual in _CHOICES.items()}
    return {**ticked, **lists}


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.split("\n") if line.strip()]


def _jwks(page: PageContext) -> Any:
    try:
        return from_json(page.form.text("jwks"))
    except ValueError:
        raise ValidationFailed("must be a JWK Set", field="jwks") from None
