"""Client of Telegram's OpenID Connect, as documented at core.telegram.org/bots/telegram-login.

Authorization code with PKCE. There is no `userinfo`: all that is told stands in the ID token.
"""

import base64
import hashlib
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

import structlog

from msgsvc_core.channels import (
    ChannelUser,
    DeliveryError,
    PlatformAttempt,
    PlatformPerson,
    PlatformSignIn,
    PlatformSignInRefused,
    Reason,
)
from msgsvc_core.channels.http import PlatformAnswer, PlatformHttp
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.json import read_json
from msgsvc_telegram.login.id_tokens import IdToken, InvalidIdToken, key_id_of, read_id_token
from msgsvc_telegram.login.key_sets import KeySets
from msgsvc_telegram.settings import TelegramSettings

#: What is asked for: who it is, and that the bot may write to them. The phone number is a setting.
SCOPES = ("openid", "profile", "telegram:bot_access")
PHONE_SCOPE = "phone"

#: Characters of an error code that go into the log (RFC 6749, section 5.2: they are short and plain).
MAX_ERROR_LENGTH = 60

log = structlog.get_logger(__name__)


class TelegramLogin(PlatformSignIn):
    """Signs people in on Telegram's page, for one bot. `issuer` is the base of all addresses."""

    def __init__(
        self,
        *,
        clock: Clock,
        issuer: str,
        client_id: str,
        client_secret: str,
        asks_phone: bool,
        http: PlatformHttp,
    ) -> None:
        self._clock = clock
        self._issuer = issuer.rstrip("/")
        self._client_id = client_id
        self._client_secret = client_secret
        self._scopes = (*SCOPES, PHONE_SCOPE) if asks_phone else SCOPES
        self._http = http
        self._keys = KeySets(clock=clock, fetch=self._fetch_keys)

    @classmethod
    def from_settings(cls, settings: TelegramSettings, clock: Clock) -> "TelegramLogin | None":
        """None where the bot has no client of Telegram's."""
        if settings.login_client_id is None or settings.login_client_secret is None:
            return None
        return cls(
            clock=clock,
            issuer=settings.login_url,
            client_id=settings.login_client_id,
            client_secret=settings.login_client_secret.get_secret_value(),
            asks_phone=settings.login_phone,
            http=PlatformHttp(
                settings.login_url,
                proxy=settings.proxy.get_secret_value() if settings.proxy else None,
                timeout_s=settings.timeout_s,
            ),
        )

    def authorization_url(self, attempt: PlatformAttempt) -> str:
        query = {
            "client_id": self._client_id,
            "redirect_uri": attempt.redirect_uri,
            "response_type": "code",
            "scope": " ".join(self._scopes),
            "state": attempt.state,
            "nonce": attempt.nonce,
            "code_challenge": code_challenge(attempt.code_verifier),
            "code_challenge_method": "S256",
        }
        return f"{self._issuer}/auth?{urlencode(query, quote_via=quote)}"

    async def exchange(self, code: str, attempt: PlatformAttempt) -> PlatformPerson:
        # First, so that Telegram being away does not cost the code, which is taken once.
        await self._keys.current()
        token = await self._id_token(code, attempt)
        try:
            keys = await self._keys.holding(key_id_of(token))
            claims = read_id_token(
                token,
                keys,
                issuer=self._issuer,
                client_id=self._client_id,
                nonce=attempt.nonce,
                now_s=int(self._clock.time()),
            )
        except InvalidIdToken as error:
            raise PlatformSignInRefused(str(error)) from None
        return _person(claims)

    async def close(self) -> None:
        await self._http.close()

    async def _id_token(self, code: str, attempt: PlatformAttempt) -> str:
        answer = await self._http.call(
            "POST",
            "/token",
            fields={
                "grant_type": "authorization_code",
                "code": code,
                "redirect_uri": attempt.redirect_uri,
                "client_id": self._client_id,
                "code_verifier": attempt.code_verifier,
            },
            headers={"Authorization": _basic(self._client_id, self._client_secret)},
        )
        body = _json_of(answer)
        token = body.get("id_token")
        if answer.status == 200 and isinstance(token, str):
            return token
        if 400 <= answer.status < 500 and answer.status != 429:
            said = str(body.get("error") or "no error code")[:MAX_ERROR_LENGTH]
            raise PlatformSignInRefused(f"Telegram did not take the code: {answer.status} {said!r}")
        if answer.status == 200:
            raise PlatformSignInRefused("Telegram took the code and gave no ID token")
        raise DeliveryError(
            Reason.PLATFORM_UNAVAILABLE,
            f"Telegram's token endpoint: status {answer.status}",
            in_doubt=answer.status not in {429, 502, 503},
        )

    async def _fetch_keys(self) -> Mapping[str, Any]:
        answer = await self._http.call("GET", "/.well-known/jwks.json")
        body = _json_of(answer)
        if answer.status != 200 or not isinstance(body.get("keys"), list):
            raise DeliveryError(
                Reason.PLATFORM_UNAVAILABLE, f"Telegram's keys: status {answer.status}, or no keys"
            )
        return body


def code_challenge(verifier: str) -> str:
    """The challenge of a verifier, by S256 (RFC 7636, section 4.2)."""
    hashed = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(hashed).rstrip(b"=").decode()


def _basic(client_id: str, secret: str) -> str:
    """Client authentication; both parts are form-encoded before (RFC 6749, section 2.3.1)."""
    credentials = f"{quote(client_id, safe='')}:{quote(secret, safe='')}"
    return f"Basic {base64.b64encode(credentials.encode()).decode()}"


def _json_of(answer: PlatformAnswer) -> dict[str, Any]:
    """The object in the body; empty for anything else."""
    try:
        body = read_json(answer.body)
    except (ValueError, RecursionError):
        return {}
    return body if isinstance(body, dict) else {}


def _person(claims: IdToken) -> PlatformPerson:
    # In a private chat, the chat's id is the user's (Bot API, `Chat`).
    user = ChannelUser(claims.user_id, claims.name, claims.username)
    return PlatformPerson(user=user, chat_id=claims.user_id, phone=claims.phone)
