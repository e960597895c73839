"""npm `oauth4webapi`: what it refuses, from a media type to a claim, other clients may come to refuse."""

from pathlib import Path

import pytest

from tests.oidc_clients.playing import Player
from tests.oidc_clients.programs import node
from tests.oidc_clients.provider import CIBA, DEVICE, REFRESH, AuthMethod, Provider

SCRIPT = Path(__file__).with_name("oauth4webapi.mjs")


@pytest.fixture
def player(provider: Provider) -> Player:
    return Player(provider, [node(), SCRIPT])


@pytest.mark.parametrize("auth_method", ["client_secret_basic", "client_secret_post", "none"])
async def test_a_code_becomes_tokens_and_claims(player: Player, auth_method: AuthMethod) -> None:
    result = await player.play("code", auth_method=auth_method)

    assert result["claims"]["sub"] == result["user_info"]["sub"]
    # RFC 6749, section 5.1.
    assert "no-store" in result["headers"]["cache-control"]
    assert set(result["tokens"]["scope"].split()) >= {"openid", "profile"}


async def test_both_documents_of_metadata_say_the_same(player: Player) -> None:
    openid, oauth = await player.play("metadata")

    common = openid.keys() & oauth.keys()
    assert {name: openid[name] for name in common} == {name: oauth[name] for name in common}
    assert {"token_endpoint", "jwks_uri", "issuer", "grant_types_supported"} <= common


async def test_a_pushed_request_is_answered_with_the_time_of_the_sign_in(player: Player) -> None:
    claims = await player.play("pushed")

    assert claims["auth_time"] <= claims["iat"]


async def test_a_cancelled_sign_in_is_told_with_state_and_issuer(player: Player) -> None:
    failure = await player.play("cancelled", yes=False)

    assert failure["name"] == "AuthorizationResponseError"
    assert failure["error"] == "access_denied"


async def test_a_refresh_gives_new_tokens(player: Player) -> None:
    result = await player.play("refresh")

    for token in ("access_token", "refresh_token"):
        assert result["old"][token] != result["fresh"][token]
    assert result["user_info"]["name"]


async def test_a_revoked_access_token_is_inactive(player: Player) -> None:
    result = await player.play("ends")

    assert result["before"]["active"]
    assert result["before"]["client_id"]
    assert result["after"] == {"active": False}


async def test_a_device_is_told_to_wait(player: Player) -> None:
    result = await player.play("device", grant_types=(DEVICE, REFRESH))

    assert result["started"]["user_code"]
    assert result["pending"]["error"] == "authorization_pending"
    assert result["pending"]["status"] == 400


async def test_a_backend_is_told_to_wait(player: Player) -> None:
    result = await player.play("ciba", grant_types=(CIBA, REFRESH))

    assert result["started"]["expires_in"] > 0
    assert result["pending"]["error"] == "authorization_pending"
    assert result["pending"]["status"] == 400


async def test_failures_have_the_form_that_the_standards_give_them(player: Player) -> None:
    failures = await player.play("failures")

    grant, secret, user_info = (failures[name] for name in ("grant", "secret", "user_info"))
    assert (grant["error"], grant["status"]) == ("invalid_grant", 400)
    # RFC 6749, section 5.2, and RFC 6750, section 3.
    assert secret["status"] == 401
    assert user_info["status"] == 401
    assert user_info["challenges"][0]["scheme"] == "bearer"
    assert user_info["challenges"][0]["parameters"]["error"] == "invalid_token"
