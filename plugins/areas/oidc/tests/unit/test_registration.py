"""Dynamic client registration."""

from dataclasses import replace
from typing import Any

import pytest

from msgsvc_core.db import Tx
from msgsvc_core.kernel.errors import Conflict
from msgsvc_devkit.core import PROJECT, MemoryCore
from msgsvc_oidc.protocol.errors import OAuthError
from msgsvc_oidc.protocol.registration import (
    check_unchanged,
    check_update,
    read_metadata,
    registration_body,
    wire_name,
)
from msgsvc_oidc.registration.models import CreateRegistrationTokenBody
from msgsvc_oidc.registration.tokens import MAX_TOKENS, RegistrationTokens
from plugins.areas.oidc.tests.unit.provider import CALLBACK
from plugins.areas.oidc.tests.unit.provider import CLIENT as ANY_CLIENT

CLIENT = replace(ANY_CLIENT, dynamic=True, created_at_ms=5000)

MATRIX = CreateRegistrationTokenBody(name="Matrix")

with_registration = pytest.mark.parametrize("core", [{"registration": True}], indirect=True)


def test_metadata_has_the_defaults_of_the_standard() -> None:
    assert read_metadata({"redirect_uris": [CALLBACK]}) == {
        "redirect_uris": [CALLBACK],
        "grant_types": ["authorization_code"],
        "scopes": ["openid", "profile"],
        "name": "app.example",
    }


def test_unknown_metadata_and_null_are_ignored() -> None:
    given = {"redirect_uris": [CALLBACK], "first_party": True, "logo_uri": "x", "jwks": None}

    assert read_metadata(given) == read_metadata({"redirect_uris": [CALLBACK]})


def test_scopes_that_do_not_exist_are_left_out_and_openid_is_there_anyway() -> None:
    assert read_metadata({"scope": "admin phone"})["scopes"] == ["openid", "phone"]


@pytest.mark.parametrize(
    "redirect_uris", [[], ["https://evil.example/"], [CALLBACK, "https://evil.example/"]]
)
def test_a_home_page_where_no_code_goes_is_ignored(redirect_uris: list[str]) -> None:
    """People decide by its host."""
    own = read_metadata({"client_uri": "https://app.example/", "redirect_uris": [CALLBACK]})
    found = read_metadata({"client_uri": "https://app.example/", "redirect_uris": redirect_uris})

    assert own["home_url"] == "https://app.example/"
    assert "home_url" not in found


def test_a_name_is_not_taken_from_a_home_page_that_is_ignored() -> None:
    given = {"client_uri": "https://bank.example/", "redirect_uris": ["https://evil.example/"]}

    assert read_metadata(given)["name"] == "evil.example"


def test_a_client_without_any_url_has_a_name_too() -> None:
    assert read_metadata({})["name"] == "App"
    assert read_metadata({"redirect_uris": ["https://["]})["name"] == "App"


def test_the_hosts_of_a_pairwise_client_are_not_fetched() -> None:
    with pytest.raises(OAuthError, match="sector_identifier_uri"):
        read_metadata({"sector_identifier_uri": "https://app.example/x"})


@pytest.mark.parametrize("value", ["", "a\0b", 1, [], {}, True])
def test_a_text_is_a_text(value: Any) -> None:
    with pytest.raises(OAuthError, match="client_uri must be a text"):
        read_metadata({"client_uri": value})


def test_an_update_names_its_client_and_nothing_of_the_providers() -> None:
    check_update({"client_id": "app_1"}, CLIENT)
    for body in ({}, {"client_id": "app_2"}, {"client_id": "app_1", "client_id_issued_at": 5}):
        with pytest.raises(OAuthError, match="invalid_request"):
            check_update(body, CLIENT)


def test_how_a_client_authenticates_stays() -> None:
    check_unchanged({"token_endpoint_auth_method": "client_secret_basic"}, CLIENT)
    with pytest.raises(OAuthError, match="can't be changed"):
        check_unchanged({"token_endpoint_auth_method": "none"}, CLIENT)


def test_a_secret_is_shown_once_and_does_not_expire() -> None:
    first = registration_body(CLIENT, url="u", access_token="t", secret="s")
    later = registration_body(CLIENT, url="u", access_token="t")

    assert (first["client_secret"], first["client_secret_expires_at"]) == ("s", 0)
    assert later.keys().isdisjoint({"client_secret", "client_secret_expires_at"})
    assert later["client_id_issued_at"] == 5


def test_errors_have_the_names_that_clients_know() -> None:
    assert wire_name("home_url") == "client_uri"
    assert wire_name("redirect_uris") == "redirect_uris"


def test_a_client_that_registers_itself_asks_nobody_by_itself() -> None:
    body = {"client_name": "App", "grant_types": ["urn:openid:params:grant-type:ciba"]}

    with pytest.raises(OAuthError, match="invalid_client_metadata"):
        read_metadata(body)


@with_registration
async def test_only_the_digest_of_a_token_is_stored(core: MemoryCore, tx: Tx) -> None:
    tokens = core.get(RegistrationTokens)
    token, text = await tokens.create(tx, PROJECT, MATRIX)

    [row] = await tx.fetch_all("SELECT * FROM oidc_registration_tokens")
    assert text not in str(dict(row))
    assert text not in repr(token)
    assert token.uses_left == 1
    await tokens.use(tx, PROJECT, text)


@with_registration
async def test_a_project_has_no_more_tokens_than_it_may(core: MemoryCore, tx: Tx) -> None:
    tokens = core.get(RegistrationTokens)
    for _ in range(MAX_TOKENS):
        await tokens.create(tx, PROJECT, MATRIX)

    with pytest.raises(Conflict, match="at most 100"):
        await tokens.create(tx, PROJECT, MATRIX)
