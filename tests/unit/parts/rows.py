"""Values of the domain as a test wants them, and the rows that the databases have of them."""

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.db import Tx
from msgsvc_core.kernel.json import to_json
from msgsvc_core.mailings.content import to_column
from msgsvc_core.mailings.models import Mailing
from msgsvc_core.messages.models import Message
from msgsvc_core.messages.templates.models import TemplateContent
from msgsvc_devkit.clock import START
from msgsvc_devkit.core import PROJECT

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

#: When a `FakeClock` begins, in Unix milliseconds.
NOW_MS = round(START.timestamp() * 1000)


def a_message(message_id: str = "msg_1", **given: Any) -> Message:
    """A queued message to `sub_1` on `messenger_a`, but for what is given."""
    values: dict[str, Any] = {
        "project_id": PROJECT,
        "subscriber_id": "sub_1",
        "channel": "messenger_a",
        "bot": "messenger_a",
        "status": "queued",
        "content": OutgoingMessage("Hi"),
        "metadata": None,
        "reason": None,
        "error": None,
        "attempts": 0,
        "message_ref": None,
        "created_at_ms": NOW_MS,
        "expires_at_ms": None,
        "finished_at_ms": None,
    }
    return Message(message_id=message_id, **{**values, **given})


async def insert_message(tx: Tx, message_id: str = "msg_1", **given: Any) -> Message:
    """`a_message`, stored."""
    message = a_message(message_id, **given)
    row = row_of(message)
    # The copies of a route have a table of their own.
    del row["past_steps"]
    await tx.insert("core_messages", row)
    return message


def a_mailing(job_id: str = "job_1", *, text: str = "Hi", **given: Any) -> Mailing:
    """A mailing to everybody that runs and has its recipients, but for what is given."""
    values: dict[str, Any] = {
        **dict.fromkeys(field.name for field in fields(Mailing)),
        "project_id": PROJECT,
        "source": "broadcasts",
        "status": "running",
        "content": to_column(TemplateContent(text=text), {}, silent=False),
        "audience": {"all": True},
        **dict.fromkeys(("total", "sent", "failed", "skipped", "unknown"), 0),
        **dict.fromkeys(("next_us", "timed_from"), 0),
        "created_at_ms": NOW_MS,
        "started_at_ms": NOW_MS,
    }
    return Mailing(**{**values, "job_id": job_id, **given})


def row_of(value: "DataclassInstance") -> dict[str, Any]:
    """The row of a value whose columns are its fields."""
    return {field.name: _stored(getattr(value, field.name)) for field in fields(value)}


def _stored(value: Any) -> Any:
    if isinstance(value, OutgoingMessage):
        return to_json(value.to_payload())
    return to_json(value) if isinstance(value, Mapping) else value
