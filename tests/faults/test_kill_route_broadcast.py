"""kill -9 in a broadcast by a route: three channels, each of which refuses 30 % for good."""

import json
from collections import Counter
from pathlib import Path

import pytest

from msgsvc_core.mailings import Audience, MailingMessage, NewMailing
from msgsvc_devkit.databases import PostgresDatabases, SQLiteDatabases
from tests.faults.conftest import Figure, Rounds
from tests.faults.refusing_outbox import refuses
from tests.faults.town import CHANNELS, Town, town

pytestmark = pytest.mark.faults


async def start(this: Town, on_unknown: str) -> str:
    """A broadcast to everybody, by one route; returns its id."""
    route_id = await this.make_route(on_unknown)
    async with this.service.db.transaction() as tx:
        message, everybody = MailingMessage(text="Hi"), Audience(all=True)
        new = NewMailing("broadcasts", message, everybody, route_id=route_id)
        mailing = await this.service.mailings.start(tx, this.project_id, new)
    assert mailing.total == this.people
    return mailing.job_id


@pytest.mark.parametrize("on_unknown", ["continue", "stop"])
async def test_nobody_is_lost_or_sent_to_twice_over_many_kills(
    tmp_path: Path,
    backend: SQLiteDatabases | PostgresDatabases,
    on_unknown: str,
    rounds: Rounds,
    figure: Figure,
) -> None:
    kills, people = rounds(short=2, long=10), rounds(short=600, long=10_000)
    async with town(tmp_path, backend, people) as this:
        await start(this, on_unknown)

        async def has_ended() -> bool:
            return bool(
                await this.query(
                    "SELECT 1 AS one FROM core_mailings WHERE finished_at_ms IS NOT NULL"
                )
            )

        await this.work(kills, has_ended)
        [mailing] = await this.query("SELECT * FROM core_mailings")
        rows = await this.query(
            "SELECT r.subscriber_id, r.person, r.status, r.bot FROM core_recipients r"
            " WHERE r.status NOT IN ('standby', 'passed', 'doubted')"
        )
        messages = await this.query("SELECT message_id, status FROM core_messages")
        events = await this.query("SELECT data FROM core_events WHERE name LIKE 'delivery.%'")

    expected = {
        f"chat-{number}": next(
            (name for name in CHANNELS if not refuses(name, f"chat-{number}")), None
        )
        for number in range(people)
    }
    reached = {chat: channel for chat, channel in expected.items() if channel is not None}
    shown = this.shown()
    statuses = Counter(row["status"] for row in rows)
    twice = sum(times > 1 for times in Counter(chat for _, chat in shown.elements()).values())
    figure(
        f"kill -9 in a broadcast by a route, {on_unknown} if unknown, {backend.name}",
        f"{kills} kills, {people} people: {dict(statuses)}, {twice} reached twice",
        kills=kills,
        people=people,
        unknown=statuses["unknown"],
        twice=twice,
    )
    # Each person has one outcome, one message and one event, and the counts are those of the ledger.
    assert sorted(row["person"] for row in rows) == sorted(f"person-{n}" for n in range(people))
    assert statuses.keys() <= {"sent", "failed", "unknown"}
    told = Counter(json.loads(event["data"])["message_id"] for event in events)
    assert told == Counter(message["message_id"] for message in messages)
    assert Counter(message["status"] for message in messages) == statuses
    assert (mailing["sent"], mailing["failed"]) == (
        statuses["sent"],
        statuses["failed"] + statuses["unknown"],
    )
    assert (mailing["unknown"], mailing["total"]) == (statuses["unknown"], people)
    for row in rows:
        chat = f"chat-{row['person'].removeprefix('person-')}"
        assert row["status"] != "sent" or row["bot"] == expected[chat]
    wanted = Counter((channel, chat) for chat, channel in reached.items())
    # A call in progress at a kill: the person may have it, and gets no other copy of that channel.
    assert shown <= wanted
    assert twice == 0
    lost = set(wanted) - set(shown)
    if on_unknown == "stop":
        assert len(lost) <= statuses["unknown"]
    else:
        assert not lost
