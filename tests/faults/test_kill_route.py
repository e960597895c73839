"""kill -9 while messages go along their routes: three channels, each of which refuses 30 % for good."""

import json
from collections import Counter
from pathlib import Path

import pytest

from msgsvc_core.messages.batches.service import Batches
from msgsvc_devkit.databases import PostgresDatabases, SQLiteDatabases
from tests.faults.conftest import Figure, Rounds
from tests.faults.refusing_outbox import refuses
from tests.faults.town import BATCH, CHANNELS, Town, town

pytestmark = pytest.mark.faults


async def send(this: Town, on_unknown: str) -> None:
    """A message to everybody, by one route."""
    route_id = await this.make_route(on_unknown)
    messages = [
        {"external_id": f"person-{number}", "route_id": route_id, "text": "Hi"}
        for number in range(this.people)
    ]
    for first in range(0, this.people, BATCH):
        answer = await this.service.get(Batches).send(
            this.project_id, messages[first : first + BATCH]
        )
        assert answer.rejected == []


@pytest.mark.parametrize("on_unknown", ["continue", "stop"])
async def test_everybody_is_reached_by_the_first_channel_that_works_over_many_kills(
    tmp_path: Path,
    backend: SQLiteDatabases | PostgresDatabases,
    on_unknown: str,
    rounds: Rounds,
    figure: Figure,
) -> None:
    kills, people = rounds(short=2, long=10), rounds(short=600, long=10_000)
    async with town(tmp_path, backend, people) as this:
        await send(this, on_unknown)

        async def all_are_final() -> bool:
            return await this.final() == people

        await this.work(kills, all_are_final)
        messages = await this.query(
            "SELECT message_id, subscriber_id, channel, status FROM core_messages"
        )
        events = await this.query("SELECT name, data FROM core_events WHERE name LIKE 'delivery.%'")
        [batches] = await this.query(
            "SELECT SUM(sent) AS sent, SUM(failed) AS failed, SUM(unknown) AS unknown FROM core_batches"
        )

    expected = {
        f"chat-{number}": next(
            (name for name in CHANNELS if not refuses(name, f"chat-{number}")), None
        )
        for number in range(people)
    }
    reached = {chat: channel for chat, channel in expected.items() if channel is not None}
    shown = this.shown()
    told = Counter(json.loads(event["data"])["message_id"] for event in events)
    statuses = Counter(message["status"] for message in messages)
    twice = sum(times > 1 for times in Counter(chat for _, chat in shown.elements()).values())
    figure(
        f"kill -9 of messages by a route, {on_unknown} if unknown, {backend.name}",
        f"{kills} kills, {people} people: {dict(statuses)}, {twice} reached twice",
        kills=kills,
        people=people,
        unknown=statuses["unknown"],
        twice=twice,
    )
    wanted = Counter((channel, chat) for chat, channel in reached.items())
    # What is charged is charged by the one event of each message.
    assert told == Counter(message["message_id"] for message in messages)
    assert (batches["sent"], batches["failed"]) == (
        statuses["sent"],
        statuses["failed"] + statuses["unknown"],
    )
    for message in messages:
        chat = f"chat-{int(message['subscriber_id'].removeprefix('sub_')[1:])}"
        assert message["status"] != "sent" or message["channel"] == expected[chat]
    if on_unknown == "continue":
        assert shown == wanted
        assert statuses["sent"] == len(reached)
    else:
        # A call in progress at a kill is made again, and refused: the first may have been taken.
        assert twice == 0
        assert shown <= wanted
        assert statuses["sent"] == shown.total()
        assert len(reached) - statuses["sent"] <= statuses["unknown"]
