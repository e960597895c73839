"""Verifies mini app data: `initData`, signed with a key derived from the bot's token."""

import hashlib
import hmac
import json
from urllib.parse import parse_qsl

from pydantic import ValidationError

from msgsvc_core.channels import InvalidMiniApp, MiniAppUser
from msgsvc_telegram.models import User

#: Fields that Telegram sends are about ten; more are a try to keep us busy.
MAX_FIELDS = 50


def verify_init_data(init_data: str, token: str) -> MiniAppUser:
    """The user in `init_data`, the query string of `Telegram.WebApp.initData` in a mini app.

    Raises `InvalidMiniApp`. The caller checks its age, by `signed_at_ms`.
    """
    fields = _fields(init_data)
    signature = fields.pop("hash", "")
    if not hmac.compare_digest(_sign(fields, token).encode(), signature.encode()):
        raise InvalidMiniApp("Telegram did not sign this for the bot")
    try:
        user = User.model_validate(json.loads(fields["user"]))
        signed_at_s = int(fields["auth_date"])
    except (KeyError, ValueError, RecursionError, ValidationError):
        raise InvalidMiniApp("it does not say who opened it, and when") from None
    opened = user.channel_user()
    return MiniAppUser(
        opened,
        signed_at_s * 1000,
        fields.get("start_param", ""),
        # The id of a private chat is the person's id.
        chat_id=opened.user_id,
    )


def _fields(init_data: str) -> dict[str, str]:
    try:
        init_data.encode()  # half of a character can't be signed
        pairs = parse_qsl(
            init_data,
            keep_blank_values=True,
            strict_parsing=True,
            max_num_fields=MAX_FIELDS,
            errors="strict",
        )
    except ValueError:
        raise InvalidMiniApp("it is no query string") from None
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise InvalidMiniApp("it names a field twice")
    return fields


def _sign(fields: dict[str, str], token: str) -> str:
    key = hmac.digest(b"WebAppData", token.encode(), hashlib.sha256)
    text = "\n".join(f"{name}={fields[name]}" for name in sorted(fields))
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
