"""PyPI `social-auth-core`, in a Django site."""

from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.oidc_clients.playing import REDIRECT_URI, Player
from tests.oidc_clients.programs import python
from tests.oidc_clients.provider import AuthMethod, Provider

SCRIPT = Path(__file__).with_name("social_auth.py")

#: Where the library has its callback.
CALLBACK = "http://127.0.0.1:18080/complete/oidc/"


@pytest.fixture
def player(provider: Provider) -> Player:
    return Player(provider, [python("python"), SCRIPT], redirect_uri=CALLBACK)


@pytest.mark.parametrize("auth_method", ["client_secret_basic", "client_secret_post"])
async def test_a_person_gets_one_account_and_comes_back_to_it(
    player: Player, auth_method: AuthMethod
) -> None:
    first, second = await player.play(
        "code", auth_method=auth_method, site_host=urlsplit(REDIRECT_URI).netloc
    )

    assert first["provider"] == "oidc"
    assert first["uid"]
    assert first["first_name"]
    assert second == first
