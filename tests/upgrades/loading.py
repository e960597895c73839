"""Gives a release's database a history. As a script, run by the interpreter of the release:

    python loading.py CONFIGURATION SUBSCRIBERS MESSAGES

It prints a line of JSON: `{"key", "subscribers": [subscriber_id]}`. The messages are queued, to each
subscriber in turn; the n-th says `loaded n`. Their subscribers are in the chats `chat-n` of `messenger_a`.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from msgsvc_core.channels import ChannelUser
from msgsvc_core.config.settings import load_settings
from msgsvc_core.db import WriteBatch
from msgsvc_core.messages.models import SendBody
from msgsvc_core.service import Service

#: Rows of one transaction.
AT_ONCE = 500


async def load(service: Service, subscribers: int, messages: int) -> dict[str, Any]:
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


async def _main(config: str, subscribers: str, messages: str) -> None:
    service = Service(load_settings(Path(config), env={}))
    await service.open_database()
    try:
        loaded = await load(service, int(subscribers), int(messages))
    finally:
        await service.db.disconnect()
    sys.stdout.write(json.dumps(loaded) + "\n")


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:]))
