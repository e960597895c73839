"""Gives a release's database a history. As a script, run by the interpreter of the release:

    python loading.py CONFIGURATION begin SUBSCRIBERS MESSAGES
    python loading.py CONFIGURATION past MESSAGES

`begin` prints a line of JSON, `{"key", "subscribers": [subscriber_id]}`. The messages are queued, to each
subscriber in turn; the n-th says `loaded n`. The n-th subscriber is in the chat `chat-n` of `messenger_a`.
`past` writes more messages and their events, as those that have been delivered stand in the tables.
"""

import asyncio
import itertools
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgsvc_core.channels import ChannelUser
from msgsvc_core.config.settings import load_settings
from msgsvc_core.db import WriteBatch
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.service import Service

try:
    from msgsvc_core.messages.bodies import SendBody
except ImportError:  # the release of 2026-11-26 has it in another module
    from msgsvc_core.messages.models import SendBody  # type: ignore[attr-defined, no-redef]

#: Rows of one transaction.
AT_ONCE = 500


async def begin(service: Service, subscribers: int, messages: int) -> dict[str, Any]:
    project = await service.projects.create("Shop")
    _, key = await service.projects.create_key(project.project_id, "site", ("*",))
    people: list[str] = []
    while len(people) < subscribers:
        async with service.db.transaction() as tx:
            for number in range(len(people), min(subscribers, len(people) + AT_ONCE)):
                made = await service.subscribers.ensure(
                    tx,
                    project.project_id,
                    "messenger_a",
                    ChannelUser(f"user-{number}", f"Person {number}", None, "en"),
                    f"chat-{number}",
                    source="api",
                )
                people.append(made.subscriber_id)
    for first in range(0, messages, AT_ONCE):
        unit = WriteBatch()
        for number in range(first, min(messages, first + AT_ONCE)):
            body = SendBody(subscriber_id=people[number % len(people)], text=f"loaded {number}")
            await service.messages.add(unit, project.project_id, body)
        await service.db.write(unit)
    return {"key": key, "subscribers": people}


async def past(service: Service, messages: int) -> None:
    async with service.db.read() as tx:
        sent = await tx.fetch_all("SELECT * FROM core_messages WHERE status = 'sent'")
        told = await tx.fetch_all("SELECT * FROM core_events WHERE name = 'delivery.success'")
    events = {json.loads(event["data"])["message_id"]: dict(event) for event in told}
    whole = [(dict(row), events[row["message_id"]]) for row in sent if row["message_id"] in events]
    copies = _copies(itertools.cycle(whole))
    for first in range(0, messages, AT_ONCE):
        made = list(itertools.islice(copies, min(AT_ONCE, messages - first)))
        async with service.db.transaction() as tx:
            await tx.insert_many("core_messages", [message for message, _ in made])
            await tx.insert_many("core_events", [event for _, event in made])


def _copies(
    rows: Iterator[tuple[dict[str, Any], dict[str, Any]]],
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for message, event in rows:
        message_id, event_id = new_id("msg"), new_id("evt")
        data = event["data"].replace(message["message_id"], message_id)
        yield (
            {**message, "message_id": message_id, "message_ref": message_id},
            {**event, "event_id": event_id, "data": data.replace(event["event_id"], event_id)},
        )


async def _main(config: str, what: str, *counts: str) -> None:
    service = Service(load_settings(Path(config), env={}))
    await service.open_database()
    try:
        if what == "past":
            await past(service, *map(int, counts))
        else:
            subscribers, messages = map(int, counts)
            sys.stdout.write(json.dumps(await begin(service, subscribers, messages)) + "\n")
    finally:
        await service.db.disconnect()


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:]))
