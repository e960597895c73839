"""A messenger with one person, Anna, who has started the bot `shop`: what its tables answer."""

from collections.abc import Mapping
from typing import Any

from msgsvc_core.config.settings import Settings
from msgsvc_devkit.fakes import FakeDatabase, fake_settings
from msgsvc_devkit.fakes.database import Reply
from msgsvc_sandbox.models import MessageBody

ANNA = {
    "person_id": "per_anna",
    "name": "Anna",
    "username": "",
    "lang": "en",
    "created_at_ms": 0,
    "revision": 5,
}
BORIS = {**ANNA, "person_id": "per_boris", "name": "Boris"}
CHAT = {"channel": "shop", "blocked": 0, "unread": 0, "notice": "", "notice_revision": 0}


def tables(replies: Mapping[str, Reply] | None = None) -> FakeDatabase:
    """Anna's messenger, in which the next revision is 6; `replies` answer instead."""
    others = dict(replies or {})
    usual: dict[str, Reply] = {
        "UPDATE sandbox_people SET revision = revision + 1 WHERE": [{"revision": 6}],
        "UPDATE sandbox_people": 1,
        "SELECT revision": [{"revision": 5}],
        "FROM sandbox_people": [ANNA],
        "INTO sandbox_chats": 1,
        "UPDATE sandbox_chats": 1,
        "FROM sandbox_chats": [CHAT],
        "UPDATE sandbox_messages": 1,
        "FROM sandbox_messages": [],
        "INTO sandbox_faults": 1,
        "FROM sandbox_faults": [],
    }
    return FakeDatabase(
        replies=others | {words: usual[words] for words in usual if words not in others}
    )


def message(body: MessageBody, **fields: Any) -> dict[str, Any]:
    """A row of a message that the bot has sent, as `fields` say otherwise."""
    return {
        "position": 3,
        "channel": "shop",
        "author": "bot",
        "kind": "text",
        "body": body.model_dump_json(),
        "sent_at_ms": 0,
        "edited_at_ms": None,
        "deleted": 0,
        "revision": 3,
        **fields,
    }


def with_bot() -> Settings:
    """Settings of a service with the bot `shop` in the sandbox, and one elsewhere."""
    return fake_settings(channels={"shop": {"plugin": "sandbox"}, "other": {"plugin": "recording"}})
