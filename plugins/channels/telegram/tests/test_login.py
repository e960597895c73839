"""Sign-in on Telegram's page: the client against a fake provider, over HTTP, with its attacks."""

import asyncio
import base64
import hashlib
import hmac
import json
import time
from collections.abc import AsyncIterator, Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from joserfc import jwt
from joserfc.jwk import RSAKey
from joserfc.jws import JWSRegistry
from pydantic import ValidationError

from msgsvc_core.channels import (
    ChannelUser,
    DeliveryError,
    PlatformAttempt,
    PlatformPerson,
    PlatformSignInRefused,
    Reason,
)
from msgsvc_core.channels.http import PlatformHttp
from msgsvc_devkit import FakeClock
from msgsvc_devkit.platforms.telegram import FakeTelegram, Person
from msgsvc_devkit.platforms.telegram.login import FakeTelegramLogin, Forge
from msgsvc_telegram.channel import TelegramChannel
from msgsvc_telegram.login import TelegramLogin
from msgsvc_telegram.login.key_sets import MAX_AGE_S, REFETCH_S
from msgsvc_telegram.settings import TelegramSettings

REDIRECT = "https://msgs.example/login/_return/messenger_a"
PHONE = "+12025550123"
ATTEMPT = PlatformAttempt(
    redirect_uri=REDIRECT, state="s" * 43, nonce="n" * 43, code_verifier="v" * 43
)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def provider(clock: FakeClock) -> AsyncIterator[FakeTelegramLogin]:
    async with FakeTelegramLogin(redirect_uris=[REDIRECT], clock=clock.time) as provider:
        yield provider


LoginFactory = Callable[..., TelegramLogin]


@pytest.fixture
async def new_login(provider: FakeTelegramLogin, clock: FakeClock) -> AsyncIterator[LoginFactory]:
    made = []

    def make(**changed: Any) -> TelegramLogin:
        http = PlatformHttp(provider.url, timeout_s=10)
        values = {
            "clock": clock,
            "issuer": provider.url,
            "client_id": provider.client_id,
            "client_secret": provider.client_secret,
            "asks_phone": True,
            "http": http,
        }
        made.append(TelegramLogin(**{**values, **changed}))
        return made[-1]

    yield make
    for login in made:
        await login.close()


@pytest.fixture
def login(new_login: LoginFactory) -> TelegramLogin:
    return new_login()


@pytest.fixture
def person(telegram: FakeTelegram) -> Person:
    """Somebody who has never talked to the bot."""
    return telegram.person("Anna", username="anna_k")


async def code_of(
    provider: FakeTelegramLogin,
    login: TelegramLogin,
    person: Person,
    phone: str | None = PHONE,
    attempt: PlatformAttempt = ATTEMPT,
) -> str:
    """The code with which the browser comes back."""
    location = await provider.allow(login.authorization_url(attempt), person, phone=phone)
    (code,) = parse_qs(urlsplit(location).query)["code"]
    return code


async def sign_in(
    provider: FakeTelegramLogin, login: TelegramLogin, person: Person
) -> PlatformPerson:
    return await login.exchange(await code_of(provider, login, person), ATTEMPT)


# ---- as it should be ----------------------------------------------------------------------------


def test_the_page_is_asked_for_a_code_with_a_challenge(
    provider: FakeTelegramLogin, login: TelegramLogin
) -> None:
    parts = urlsplit(login.authorization_url(ATTEMPT))
    query = {name: values[0] for name, values in parse_qs(parts.query).items()}

    assert f"{parts.scheme}://{parts.netloc}{parts.path}" == f"{provider.url}/auth"
    assert query == {
        "client_id": provider.client_id,
        "redirect_uri": REDIRECT,
        "response_type": "code",
        "scope": "openid profile telegram:bot_access phone",
        "state": ATTEMPT.state,
        "nonce": ATTEMPT.nonce,
        # Of RFC 7636, section 4.2, computed apart from the code.
        "code_challenge": base64.urlsafe_b64encode(hashlib.sha256(b"v" * 43).digest())
        .decode()
        .rstrip("="),
        "code_challenge_method": "S256",
    }


async def test_the_person_is_the_user_of_the_bot_api_with_a_verified_phone(
    provider: FakeTelegramLogin, login: TelegramLogin, person: Person
) -> None:
    found = await sign_in(provider, login, person)

    # Claim `id`: `sub` is another value.
    user_id = str(person.user_id)
    assert found == PlatformPerson(
        user=ChannelUser(user_id, "Anna", "anna_k"), chat_id=user_id, phone=PHONE
    )
    assert PHONE not in repr(found)


async def test_a_person_may_keep_their_phone_to_themselves(
    provider: FakeTelegramLogin, login: TelegramLogin, person: Person
) -> None:
    code = await code_of(provider, login, person, phone=None)

    assert (await login.exchange(code, ATTEMPT)).phone is None


async def test_the_phone_is_not_asked_for_if_the_operator_does_not_want_it(
    provider: FakeTelegramLogin, new_login: LoginFactory, person: Person
) -> None:
    login = new_login(asks_phone=False)

    assert (await sign_in(provider, login, person)).phone is None


async def test_a_number_that_telegram_has_not_verified_is_none(
    provider: FakeTelegramLogin, login: TelegramLogin, person: Person
) -> None:
    provider.claims = {"phone_number_verified": False}

    assert (await sign_in(provider, login, person)).phone is None


async def test_the_other_algorithm_that_a_bot_can_choose_is_taken(
    new_login: LoginFactory, clock: FakeClock, person: Person
) -> None:
    other = FakeTelegramLogin(redirect_uris=[REDIRECT], clock=clock.time, algorithm="ES256")
    async with other as provider:
        login = new_login(issuer=provider.url, http=PlatformHttp(provider.url, timeout_s=10))

        assert (await sign_in(provider, login, person)).user.username == "anna_k"


@pytest.mark.parametrize("user_id", ["1001", 1001])
async def test_an_id_is_taken_as_a_number_and_as_a_text(
    provider: FakeTelegramLogin, login: TelegramLogin, person: Person, user_id: object
) -> None:
    provider.claims = {"id": user_id}

    assert (await sign_in(provider, login, person)).user.user_id == "1001"


# ---- attacks ------------------------------------------------------------------------------------


def unsigned(_provider: FakeTelegramLogin, claims: dict[str, Any], alg: str = "none") -> str:
    return f"{_part({'alg': alg, 'kid': _provider.key.kid})}.{_part(claims)}."


def signed_with_the_public_key(provider: FakeTelegramLogin, claims: dict[str, Any]) -> str:
    """HS256, its secret the public key as everybody can download it."""
    signed = f"{_part({'alg': 'HS256', 'kid': provider.key.kid})}.{_part(claims)}"
    mac = hmac.new(provider.key.as_pem(private=False), signed.encode(), hashlib.sha256).digest()
    return f"{signed}.{base64.urlsafe_b64encode(mac).decode().rstrip('=')}"


def signed_by_another(provider: FakeTelegramLogin, claims: dict[str, Any]) -> str:
    """By a key of the attacker's, under the id of the published one."""
    header = {"alg": "RS256", "kid": provider.key.kid}
    return jwt.encode(header, claims, RSAKey.generate_key(2048))


def with_its_own_key(provider: FakeTelegramLogin, claims: dict[str, Any]) -> str:
    """The same, with that key in the header (RFC 7515, section 4.1.3)."""
    key = RSAKey.generate_key(2048)
    header = {"alg": "RS256", "kid": provider.key.kid, "jwk": key.as_dict(private=False)}
    registry = JWSRegistry()
    registry.max_header_length = 2000
    return jwt.encode(header, claims, key, registry=registry)


def changed_after_signing(provider: FakeTelegramLogin, claims: dict[str, Any]) -> str:
    head, _, signature = provider.sign(claims).split(".")
    return f"{head}.{_part({**claims, 'id': 1})}.{signature}"


def without_signature(provider: FakeTelegramLogin, claims: dict[str, Any]) -> str:
    return provider.sign(claims).rpartition(".")[0] + "."


def _part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


FORGED: dict[str, Forge] = {
    "alg none": unsigned,
    "alg None": lambda provider, claims: unsigned(provider, claims, "None"),
    "HS256 with the public key": signed_with_the_public_key,
    "another key": signed_by_another,
    "another key in the header": with_its_own_key,
    "changed": changed_after_signing,
    "no signature": without_signature,
    "no token": lambda provider, claims: "",
    "half a token": lambda provider, claims: provider.sign(claims)[:60],
    "no JSON": lambda provider, claims: "AAAA.AAAA.AAAA",
    "no key id": lambda provider, claims: f"{_part({'alg': 'RS256'})}.{_part(claims)}.AAAA",
    "deep": lambda provider, claims: f"{base64.urlsafe_b64encode(b'[' * 99_999).decode()}.e30.AA",
    "critical header": lambda provider, claims: (
        f"{_part({'alg': 'RS256', 'kid': provider.key.kid, 'crit': ['b64'], 'b64': False})}"
        f".{_part(claims)}.AAAA"
    ),
}


@pytest.mark.parametrize("name", FORGED)
async def test_a_forged_token_signs_nobody_in(
    provider: FakeTelegramLogin, login: TelegramLogin, person: Person, name: str
) -> None:
    provider.forge = FORGED[name]

    with pytest.raises(PlatformSignInRefused):
        await sign_in(provider, login, person)


async def test_a_token_of_an_unpublished_key_signs_nobody_in(
    provider: FakeTelegramLogin, login: TelegramLogin, person: Person
) -> None:
    provider.rotate(publish=False)

    with pytest.raises(PlatformSignInRefused, match="does not publish"):
        await sign_in(provider, login, person)


async def test_a_secret_among_the_published_keys_is_no_key(
    provider: FakeTelegramLogin, login: TelegramLogin, person: Person
) -> None:
    provider.published = [{"kty": "oct", "k": "c2VjcmV0", "kid": provider.key.kid}]

    with pytest.raises(PlatformSignInRefused, match="does not publish"):
        await sign_in(provider, login, person)


NOW = int(FakeClock().time())

CLAIMS: dict[str, dict[str, Any]] = {
    "other nonce": {"nonce": "m" * 43},
    "no nonce": {"nonce": None},
    "empty nonce": {"nonce": ""},
    "list of nonces": {"nonce": ["n" * 43, "m"]},
    "other audience": {"aud": "7000000002"},
    "others beside us": {"aud": ["7000000001", "7000000002"]},
    "no audience": {"aud": None},
    "other issuer": {"iss": "https://oauth.telegram.org.evil.example"},
    "no issuer": {"iss": None},
    "expired": {"exp": NOW - 61},
    "no expiry": {"exp": None},
    "expiry as text": {"exp": str(NOW + 99)},
    "of the future": {"iat": NOW + 61},
    "of long ago": {"iat": NOW - 601},
    "not yet": {"nbf": NOW + 61},
    "no id": {"id": None},
    "true for an id": {"id": True},
    "no number": {"id": "1001 "},
    "a group's id": {"id": -1001},
    "a fraction": {"id": 1001.5},
    "no subject": {"sub": None},
}


@pytest.mark.parametrize("name", CLAIMS)
async def test_a_token_with_a_wrong_claim_signs_nobody_in(
    provider: FakeTelegramLogin, login: TelegramLogin, person: Person, name: str
) -> None:
    provider.claims = CLAIMS[name]

    with pytest.raises(PlatformSignInRefused) as refused:
        await sign_in(provider, login, person)
    assert "Anna" not in str(refused.value)


async def test_clocks_may_differ_by_a_minute(
    provider: FakeTelegramLogin, login: TelegramLogin, person: Person
) -> None:
    provider.claims = {"iat": NOW + 59, "exp": NOW - 59}

    assert (await sign_in(provider, login, person)).user.first_name == "Anna"


async def test_a_code_is_taken_once(
    provider: FakeTelegramLogin, login: TelegramLogin, person: Person
) -> None:
    code = await code_of(provider, login, person)
    await login.exchange(code, ATTEMPT)

    with pytest.raises(PlatformSignInRefused, match="invalid_grant"):
        await login.exchange(code, ATTEMPT)


async def test_a_code_is_of_no_use_without_its_verifier(
    provider: FakeTelegramLogin, login: TelegramLogin, person: Person
) -> None:
    code = await code_of(provider, login, person)
    stolen = PlatformAttempt(
        redirect_uri=REDIRECT, state="x" * 43, nonce=ATTEMPT.nonce, code_verifier="w" * 43
    )

    with pytest.raises(PlatformSignInRefused, match="invalid_grant"):
        await login.exchange(code, stolen)


async def test_a_code_of_another_attempt_is_refused_by_its_nonce(
    provider: FakeTelegramLogin, login: TelegramLogin, person: Person
) -> None:
    other = PlatformAttempt(
        redirect_uri=REDIRECT, state="x" * 43, nonce="m" * 43, code_verifier=ATTEMPT.code_verifier
    )
    code = await code_of(provider, login, person, attempt=other)

    with pytest.raises(PlatformSignInRefused, match="nonce"):
        await login.exchange(code, ATTEMPT)


# ---- keys ---------------------------------------------------------------------------------------


async def test_keys_are_kept_for_an_hour(
    provider: FakeTelegramLogin, login: TelegramLogin, person: Person, clock: FakeClock
) -> None:
    for _ in range(3):
        await sign_in(provider, login, person)
    once = provider.count("/.well-known/jwks.json")
    clock.advance(MAX_AGE_S)
    await sign_in(provider, login, person)

    assert (once, provider.count("/.well-known/jwks.json")) == (1, 2)


async def test_a_new_key_is_fetched_when_it_signs(
    provider: FakeTelegramLogin, login: TelegramLogin, person: Person, clock: FakeClock
) -> None:
    await sign_in(provider, login, person)
    clock.advance(REFETCH_S)
    provider.rotate()

    assert (await sign_in(provider, login, person)).user.first_name == "Anna"
    assert provider.count("/.well-known/jwks.json") == 2


async def test_made_up_key_ids_cause_no_storm_of_requests(
    provider: FakeTelegramLogin, login: TelegramLogin, person: Person
) -> None:
    provider.forge = lambda _provider, claims: (
        f"{_part({'alg': 'RS256', 'kid': str(time.monotonic_ns())})}.{_part(claims)}.AAAA"
    )
    attempts = [await code_of(provider, login, person) for _ in range(20)]
    refused = await asyncio.gather(
        *(login.exchange(code, ATTEMPT) for code in attempts), return_exceptions=True
    )

    assert all(isinstance(each, PlatformSignInRefused) for each in refused)
    assert provider.count("/.well-known/jwks.json") == 1


@pytest.mark.parametrize(
    "published",
    [
        [{"kty": "RSA", "kid": "a"}],
        [{"kty": "EC", "crv": "secp256k1", "kid": "a", "x": "AA", "y": "AA"}],
        [{"kty": "?"}, None, 1, "key", []],
    ],
)
async def test_keys_that_cannot_be_read_are_passed_over(
    provider: FakeTelegramLogin, login: TelegramLogin, person: Person, published: list[Any]
) -> None:
    provider.published = [*published, *provider.published]

    assert (await sign_in(provider, login, person)).user.first_name == "Anna"


# ---- when Telegram is away ----------------------------------------------------------------------


async def test_a_code_outlives_keys_that_could_not_be_fetched(
    provider: FakeTelegramLogin, login: TelegramLogin, person: Person
) -> None:
    code = await code_of(provider, login, person)
    provider.failures["/.well-known/jwks.json"] = [503]
    with pytest.raises(DeliveryError) as away:
        await login.exchange(code, ATTEMPT)

    assert (away.value.reason, away.value.in_doubt) == (Reason.PLATFORM_UNAVAILABLE, False)
    assert (await login.exchange(code, ATTEMPT)).phone == PHONE


@pytest.mark.parametrize(("status", "in_doubt"), [(503, False), (429, False), (500, True)])
async def test_an_outage_is_no_refusal(
    provider: FakeTelegramLogin,
    login: TelegramLogin,
    person: Person,
    status: int,
    in_doubt: bool,
) -> None:
    code = await code_of(provider, login, person)
    provider.failures["/token"] = [status]
    with pytest.raises(DeliveryError) as away:
        await login.exchange(code, ATTEMPT)

    assert (away.value.reason, away.value.in_doubt) == (Reason.PLATFORM_UNAVAILABLE, in_doubt)


async def test_a_wrong_secret_is_refused_and_stands_in_no_error(
    new_login: LoginFactory, provider: FakeTelegramLogin, person: Person
) -> None:
    login = new_login(client_secret="an-older-secret")
    with pytest.raises(PlatformSignInRefused) as refused:
        await sign_in(provider, login, person)

    assert "401 'invalid_client'" in str(refused.value)
    assert "an-older-secret" not in str(refused.value)


# ---- settings -----------------------------------------------------------------------------------


async def test_the_page_is_off_by_default(
    make_channel: Callable[..., TelegramChannel], provider: FakeTelegramLogin
) -> None:
    client = {"login_client_id": provider.client_id, "login_client_secret": provider.client_secret}
    on = make_channel(**client, login_url=provider.url).platform_sign_in

    assert make_channel().platform_sign_in is None
    assert on is not None
    assert on.authorization_url(ATTEMPT).startswith(f"{provider.url}/auth?client_id=")
    by_default = make_channel(**client).platform_sign_in
    assert by_default is not None
    assert by_default.authorization_url(ATTEMPT).startswith("https://oauth.telegram.org/auth?")


def test_a_client_needs_its_secret() -> None:
    token = "123456:ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    with pytest.raises(ValidationError, match="or neither"):
        TelegramSettings.model_validate({"token": token, "login_client_id": "1"})
    with pytest.raises(ValidationError, match="or neither"):
        TelegramSettings.model_validate({"token": token, "login_client_secret": "s"})
