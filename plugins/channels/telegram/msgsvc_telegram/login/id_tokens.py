"""Verifies ID tokens (OpenID Connect Core 1.0, section 3.1.3.7). Makes no calls."""

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from msgsvc_core.kernel.json import read_json

if TYPE_CHECKING:
    from msgsvc_telegram.login.key_sets import PublicKey

#: Algorithms that are accepted: RS256, Telegram's default, and one that a bot's owner can choose instead with
#: @BotFather. Neither works with a shared secret.
ALGORITHMS = ("RS256", "ES256")

#: Seconds by which the clocks may differ.
LEEWAY_S = 60

#: Seconds after its issue in which a token is accepted; it comes straight from the token endpoint.
MAX_AGE_S = 600

#: A user's id: a positive number of at most 52 significant bits (Bot API, `User`).
_USER_ID = re.compile(r"[1-9][0-9]{0,15}")


class InvalidIdToken(Exception):
    """Why a token is not accepted; the token and its claims are not in the text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IdToken:
    """What a verified token says of the person. `user_id` is the Bot API's: claim `id`, not `sub`."""

    user_id: str
    name: str
    username: str | None
    phone: str | None = field(repr=False)


def key_id_of(token: str) -> str:
    """The id of the key that the token's header names, not verified. Raises `InvalidIdToken`."""
    head = token.partition(".")[0]
    try:
        header = read_json(base64.urlsafe_b64decode(head + "=" * (-len(head) % 4)))
    except (ValueError, RecursionError):
        header = None
    key_id = header.get("kid") if isinstance(header, dict) else None
    if not isinstance(key_id, str):
        raise InvalidIdToken("the ID token names no key")
    return key_id


def read_id_token(
    token: str,
    keys: "Mapping[str, PublicKey]",
    *,
    issuer: str,
    client_id: str,
    nonce: str,
    now_s: int,
) -> IdToken:
    """Verifies signature, issuer, audience, times and nonce. Raises `InvalidIdToken`."""
    key = keys.get(key_id_of(token))
    if key is None:
        raise InvalidIdToken("the ID token names a key that Telegram does not publish")
    claims = _verified(token, key, issuer=issuer, client_id=client_id, nonce=nonce, now_s=now_s)
    # joserfc takes a list that holds the value too.
    if claims["aud"] not in (client_id, [client_id]):
        raise InvalidIdToken("claim aud: the ID token is for others too")
    if claims["nonce"] != nonce:
        raise InvalidIdToken("claim nonce: several")
    if claims["iat"] <= now_s - MAX_AGE_S:
        raise InvalidIdToken("the ID token was issued long ago")
    user_id = claims["id"]
    # `True` is a number to Python.
    if isinstance(user_id, bool) or not _USER_ID.fullmatch(str(user_id)):
        raise InvalidIdToken("claim id: no user's id")
    return IdToken(
        user_id=str(user_id),
        name=_text(claims, "given_name") or _text(claims, "name") or "",
        username=_text(claims, "preferred_username"),
        # Telegram shares verified numbers alone; if it says otherwise of one, it is none.
        phone=None
        if claims.get("phone_number_verified") is False
        else _text(claims, "phone_number"),
    )


def _verified(
    token: str, key: "PublicKey", *, issuer: str, client_id: str, nonce: str, now_s: int
) -> dict[str, Any]:
    # Loaded for the first sign-in: a bot that has no login does not need it.
    from joserfc import jwt  # noqa: PLC0415 - see above
    from joserfc.errors import ClaimError, JoseError  # noqa: PLC0415 - see above
    from joserfc.jws import JWSRegistry  # noqa: PLC0415 - see above

    registry = JWSRegistry(algorithms=ALGORITHMS, strict_check_header=False)
    rules = jwt.JWTClaimsRegistry(
        now=now_s,
        leeway=LEEWAY_S,
        iss={"essential": True, "value": issuer},
        aud={"essential": True, "value": client_id},
        nonce={"essential": True, "value": nonce},
        sub={"essential": True},
        exp={"essential": True},
        iat={"essential": True},
        id={"essential": True},
    )
    try:
        claims = jwt.decode(token, key, algorithms=ALGORITHMS, registry=registry).claims
        rules.validate(claims)
    except ClaimError as error:
        raise InvalidIdToken(f"claim {error.claim}: {error.error}") from None
    except (JoseError, ValueError, TypeError) as error:
        raise InvalidIdToken(
            f"the ID token is not signed by Telegram: {type(error).__name__}"
        ) from None
    return claims


def _text(claims: Mapping[str, Any], name: str) -> str | None:
    value = claims.get(name)
    return value if isinstance(value, str) and value.strip() else None
