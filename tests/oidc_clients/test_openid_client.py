"""npm `openid-client`: code with PKCE, refresh, device, CIBA, pushed requests, and what goes with them."""

from pathlib import Path

import pytest

from tests.oidc_clients.playing import AFTER_LOGOUT, Player
from tests.oidc_clients.programs import node
from tests.oidc_clients.provider import CIBA, DEVICE, REFRESH, AuthMethod, Provider

SCRIPT = Path(__file__).with_name("openid_client.mjs")


@pytest.fixture
def player(provider: Provider) -> Player:
    return Player(provider, [node(), SCRIPT])


@pytest.mark.parametrize(
    "auth_method", ["client_secret_basic", "client_secret_post", "private_key_jwt", "none"]
)
async def test_a_code_becomes_tokens_and_claims(player: Player, auth_method: AuthMethod) -> None:
    result = await player.play("code", auth_method=auth_method)

    assert result["claims"]["sub"] == result["user_info"]["sub"]
    assert result["user_info"]["name"]
    assert result["tokens"]["refresh_token"]
    assert result["tokens"]["expires_in"] > 0


async def test_the_metadata_is_found_as_that_of_an_oauth_server_too(player: Player) -> None:
    result = await player.play("code", algorithm="oauth2")

    assert result["claims"]["sub"] == result["user_info"]["sub"]


async def test_max_age_is_answered_with_the_time_of_the_sign_in(player: Player) -> None:
    result = await player.play("code", extra={"max_age": "600"})

    assert result["claims"]["iat"] - result["claims"]["auth_time"] < 600


async def test_a_cancelled_sign_in_is_access_denied(player: Player) -> None:
    assert await player.play("cancelled", yes=False) == "access_denied"


async def test_refresh_tokens_rotate(player: Player) -> None:
    result = await player.play("refresh")

    tokens = [each["refresh_token"] for each in result["tokens"]]
    assert len(set(tokens)) == 3
    assert result["user_info"]["name"]


async def test_a_revoked_token_is_inactive_and_refreshes_nothing(player: Player) -> None:
    result = await player.play("revocation")

    assert (result["before"]["active"], result["access"]["active"]) == (True, True)
    assert result["after"] == {"active": False}
    assert result["refused"] == "invalid_grant"


async def test_a_request_is_pushed(player: Player) -> None:
    result = await player.play("pushed")

    assert "request_uri=urn" in result["url"]
    assert result["claims"]["sub"]


@pytest.mark.parametrize("auth_method", ["client_secret_basic", "none"])
async def test_a_device_is_signed_in(player: Player, auth_method: AuthMethod) -> None:
    result = await player.play("device", auth_method=auth_method, grant_types=(DEVICE, REFRESH))

    assert result["started"]["verification_uri"]
    assert result["claims"]["sub"] == result["user_info"]["sub"]


async def test_a_refused_device_is_access_denied(player: Player) -> None:
    refused = await player.play("device_refused", grant_types=(DEVICE, REFRESH), yes=False)

    assert refused == "access_denied"


async def test_a_person_approves_in_another_channel(player: Player) -> None:
    result = await player.play("ciba", grant_types=(CIBA, REFRESH))

    assert result["started"]["auth_req_id"]
    assert result["claims"]["sub"] == result["user_info"]["sub"]


@pytest.mark.parametrize("provider", ["msgsvc"], indirect=True)
async def test_a_person_chooses_the_number_that_the_client_shows(player: Player) -> None:
    number = "urn:msgsvc:acr:number"
    result = await player.play("ciba", grant_types=(CIBA, REFRESH), extra={"acr_values": number})

    assert result["started"]["match_number"]
    assert result["claims"]["acr"] == number


async def test_a_refusal_in_another_channel_is_access_denied(player: Player) -> None:
    refused = await player.play("ciba_refused", grant_types=(CIBA, REFRESH), yes=False)

    assert refused == "access_denied"


async def test_a_logout_leads_back_to_the_client_and_ends_the_session(
    provider: Provider, player: Player
) -> None:
    url = (await player.play("logout"))["url"]

    answer = await provider.log_out(url, player.cookies)
    silent = await player.play("silent")

    assert answer.url == f"{AFTER_LOGOUT}?state=bye"
    assert silent == "login_required"


async def test_a_session_answers_without_a_page(player: Player) -> None:
    result = await player.play("code")
    again = await player.play("code", scope="openid", extra={"prompt": "none"})

    assert again["claims"]["sub"] == result["claims"]["sub"]
