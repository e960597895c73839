"""Verifies mini app data, which the platform signs with the bot's token."""

import hashlib
import hmac
import json
from typing import Any
from urllib.parse import parse_qsl, unquote

from msgsvc_core.channels import ChannelUser, InvalidMiniApp, MiniAppUser

#: Stand beside the signed data, in the same address, and are not signed.
_UNSIGNED = frozenset({"hash", "WebAppPlatform", "WebAppVersion"})

#: The documentation shows `auth_date` in milliseconds and in seconds; seconds beyond this are not near.
_MOST_SECONDS = 100_000_000_000

#: Characters; what the platform gives is far below.
_LONGEST = 16_384


def read_init_data(init_data: str, token: str) -> MiniAppUser:
    """The user in `init_data`, as `window.WebApp.initData` or percent-encoded once more.

    Raises `InvalidMiniApp`.
    """
    fields = _fields(init_data)
    given = fields.get("hash", "")
    if not hmac.compare_digest(_signature(fields, token).encode(), given.encode()):
        raise InvalidMiniApp("the data is not signed for this bot")
    try:
        user, auth_date = json.loads(fields["user"]), int(fields["auth_date"])
        return MiniAppUser(
            user=_user(user),
            signed_at_ms=auth_date if auth_date > _MOST_SECONDS else auth_date * 1000,
            start_payload=fields.get("start_param", ""),
        )
    except (KeyError, ValueError, RecursionError):
        raise InvalidMiniApp("the data does not say who it is about, and when") from None


def _fields(init_data: str) -> dict[str, str]:
    if len(init_data) > _LONGEST:
        raise InvalidMiniApp("the data is too long")
    if "=" not in init_data:
        # As it stands in the page's address.
        init_data = unquote(init_data)
    try:
        # Of a field that is there twice the last one counts, for the signature and for what is read.
        return dict(
            parse_qsl(init_data, keep_blank_values=True, strict_parsing=True, errors="strict")
        )
    except ValueError:
        raise InvalidMiniApp("the data can't be read") from None


def _signature(fields: dict[str, str], token: str) -> str:
    lines = sorted(f"{name}={value}" for name, value in fields.items() if name not in _UNSIGNED)
    key = hmac.digest(b"WebAppData", token.encode(), "sha256")
    return hmac.new(key, "\n".join(lines).encode(), hashlib.sha256).hexdigest()


def _user(user: Any) -> ChannelUser:
    if not isinstance(user, dict) or type(user.get("id")) is not int:
        raise ValueError
    texts = [user.get(name) or None for name in ("first_name", "username", "language_code")]
    if not all(isinstance(text, str | None) for text in texts):
        raise ValueError
    first_name, username, lang = texts
    return ChannelUser(str(user["id"]), first_name or "", username, lang)
