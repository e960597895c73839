"""PyPI `authlib`: a Starlette site, and its client of httpx2."""

from pathlib import Path

import pytest

from tests.oidc_clients.playing import Player
from tests.oidc_clients.programs import python
from tests.oidc_clients.provider import AuthMethod, Provider

SCRIPT = Path(__file__).with_name("authlib_client.py")


@pytest.fixture
def player(provider: Provider) -> Player:
    return Player(provider, [python("python"), SCRIPT])


@pytest.mark.parametrize("auth_method", ["client_secret_basic", "client_secret_post", "none"])
async def test_a_person_signs_in_at_a_site(player: Player, auth_method: AuthMethod) -> None:
    result = await player.play("code", auth_method=auth_method, scope="openid profile phone")

    assert result["claims"]["sub"] == result["user_info"]["sub"]
    assert result["claims"]["nonce"]
    assert result["user_info"]["name"]


@pytest.mark.parametrize("auth_method", ["client_secret_basic", "private_key_jwt", "none"])
async def test_a_back_end_refreshes_introspects_and_revokes(
    player: Player, auth_method: AuthMethod
) -> None:
    result = await player.play("back_end", auth_method=auth_method)

    assert result["fresh"]["refresh_token"] != result["token"]["refresh_token"]
    assert result["user_info"]["name"]
    assert auth_method == "none" or result["introspection"]["active"]
    assert result["revoked"] == 200
