"""Signed mini app data: the user, signed with a key of the bot."""

import json
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlencode

from msgsvc_core.channels import ChannelUser, InvalidMiniApp, MiniAppUser
from msgsvc_core.kernel.json import to_json
from msgsvc_sandbox.models import Person

if TYPE_CHECKING:
    from msgsvc_core.security.secret_box import SecretBox

_PURPOSE = "sandbox mini app"


def sign(secrets: "SecretBox", bot: str, person: Person, payload: str, now_ms: int) -> str:
    """The data for the mini app of `bot`, a channel's key: a query string that ends with its hash."""
    user = {"id": person.person_id, "first_name": person.name, "lang": person.lang}
    if person.username:
        user["username"] = person.username
    text = urlencode({"user": to_json(user), "auth_date": now_ms, "start_param": payload})
    return f"{text}&hash={secrets.sign(_PURPOSE, bot, text)}"


def read(secrets: "SecretBox", bot: str, init_data: str) -> MiniAppUser:
    """The user who opened it. Raises `InvalidMiniApp`."""
    text, _, given = init_data.rpartition("&hash=")
    if not secrets.verify(given, _PURPOSE, bot, text):
        raise InvalidMiniApp("the sandbox did not sign this for the bot")
    fields = {name: values[0] for name, values in parse_qs(text, keep_blank_values=True).items()}
    user = json.loads(fields["user"])
    return MiniAppUser(
        ChannelUser(user["id"], user["first_name"], user.get("username"), user["lang"]),
        int(fields["auth_date"]),
        fields["start_param"],
        chat_id=user["id"],
    )
