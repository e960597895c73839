"""kill -9 at random moments, without a pace: in doubt is no more than was in flight, and that is little.

What is guaranteed, and asserted for each kill: in doubt is who stands in the database as being sent at that
moment, nobody else. That is at most `min_in_flight` and what the platform answered in the second before. So
it is at most the calls that had begun and have no outcome written, and the group that was marked at that
very moment and whose calls have not reached the platform.
"""

import asyncio
import json
import random
import time
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from msgsvc_core.channels.outbound.gate import MAX_IN_FLIGHT
from msgsvc_devkit import until
from msgsvc_devkit.machine import has
from msgsvc_devkit.runners import TestRunner
from msgsvc_devkit.web_servers import stop
from tests.faults import http_messenger
from tests.faults.campaign import Campaign, campaign
from tests.faults.conftest import Figure, Rounds

#: `jobs.min_in_flight`, by default.
LEAST = 8

#: Seconds over which the service may count the answers that it goes by: a second, and up to one more before
#: it counts anew.
COUNTED_S = 2.0

pytestmark = [
    pytest.mark.faults,
    pytest.mark.parametrize("runner", ["embedded", "redis"], indirect=True),
]


class Platform:
    """Notes the key of each call as it comes, and answers after `takes_s`."""

    def __init__(self, takes_s: float) -> None:
        self.takes_s = takes_s
        self.calls: Counter[str] = Counter()
        self.answered_at: deque[float] = deque()
        self.url = ""

    def answers(self, until_s: float) -> int:
        """How many answers were given in the seconds that count, before `until_s`."""
        return sum(until_s - COUNTED_S <= at <= until_s for at in self.answered_at)

    @asynccontextmanager
    async def open(self) -> AsyncIterator["Platform"]:
        app = web.Application()
        app.router.add_post("/", self._answer)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}/"
        try:
            yield self
        finally:
            await stop(runner)

    async def _answer(self, request: web.Request) -> web.Response:
        key = (await request.json())["key"]
        self.calls[key] += 1
        await asyncio.sleep(self.takes_s)
        self.answered_at.append(time.monotonic())
        return web.Response(text=key)


@pytest.mark.parametrize("takes_s", [0.005, 2.0], ids=["quick", "slow"])
@pytest.mark.parametrize("repeatable", [False, True], ids=["once", "repeatable"])
async def test_a_kill_leaves_no_more_in_doubt_than_was_in_flight(
    tmp_path: Path,
    databases: Any,
    runner: TestRunner,
    rounds: Rounds,
    figure: Figure,
    takes_s: float,
    repeatable: bool,
) -> None:
    if runner.name != "embedded" and not has("postgres"):
        pytest.skip("PostgreSQL does not answer")
    kills = rounds(short=2, long=50)
    is_quick = takes_s < 1
    people = kills * 1500 if is_quick else kills * rounds(short=15, long=60) + 50
    # How long a process lives at most once it calls. In many kills most live longer than some calls take: a
    # message that sees seven processes die in a row is given up as poison.
    lives_s = 0.2 if is_quick else takes_s * rounds(short=1, long=10)
    async with Platform(takes_s).open() as platform:
        channel = f'url = "{platform.url}"\nrepeatable = {json.dumps(repeatable)}\n'
        async with campaign(
            tmp_path, databases, runner, people, messenger=http_messenger, channel=channel
        ) as this:
            await this.ask("Hi")
            await _send_singles(this, kills)
            marked: list[set[str]] = []
            uncalled = stood = 0
            for number in range(kills):
                server = await asyncio.to_thread(this.start)
                try:
                    before, step = platform.calls.total(), (await this.mailing())["expanded_to"]

                    # A job whose process dies each time before it gets anywhere is poison, and given up:
                    # as long as recipients are looked for, each process finds some.
                    async def is_at_work(before: int = before, step: str | None = step) -> bool:
                        now_at = (await this.mailing())["expanded_to"]
                        return platform.calls.total() > before and (
                            now_at is None or now_at != step
                        )

                    await until(is_at_work, timeout_s=60, interval_s=0.005)
                    await asyncio.sleep(random.uniform(0, lives_s))
                finally:
                    server.process.kill()
                    killed_s = time.monotonic()
                    await asyncio.to_thread(server.kill)
                # What a process left before that nobody has come to yet still stands there.
                standing = await _in_flight(this)
                stood += len(standing)
                in_flight = standing - set().union(*marked)
                marked.append(in_flight)
                uncalled += sum(key not in platform.calls for key in in_flight)
                most = min(MAX_IN_FLIGHT, LEAST + platform.answers(killed_s))
                assert len(in_flight) <= (most if is_quick else LEAST)
                assert not await this.is_ended(), f"it had ended before kill {number + 1}"
            platform.takes_s = 0.005
            last = await asyncio.to_thread(this.start)
            try:
                # All that was not sent before the last kill, on a busy machine.
                await until(lambda: _is_done(this), timeout_s=max(300, people / 25), interval_s=0.2)
            finally:
                await asyncio.to_thread(last.end)
            status_of = await _statuses(this)

    statuses = Counter(status_of.values())
    unknown = {key for key, status in status_of.items() if status == "unknown"}
    called = set().union(*marked) & platform.calls.keys()
    twice = sum(times - 1 for times in platform.calls.values())
    lost = sum(status == "sent" and not platform.calls[key] for key, status in status_of.items())
    figure(
        f"kill -9 while a platform {'drops repeats and ' if repeatable else ''}takes {takes_s} s,"
        f" without a pace, {runner.name}",
        f"{kills} kills, {len(status_of)} messages: {dict(statuses)}; {sum(map(len, marked))} in flight,"
        f" at most {max(map(len, marked))}, of which {uncalled} had not reached the platform;"
        f" {lost} lost, {twice} called twice",
        kills=kills,
        messages=len(status_of),
        unknown=len(unknown),
        in_flight=sum(map(len, marked)),
        most_in_flight=max(map(len, marked)),
        uncalled=uncalled,
        lost=lost,
        called_twice=twice,
    )
    assert lost == 0
    if repeatable:
        # The platform drops what it gets again with the same key: each is shown once.
        assert statuses == Counter(sent=len(status_of))
        assert set(platform.calls) == set(status_of)
        # What stands as being sent at a kill is called once more for it, also if it stood there before.
        assert twice <= stood
    else:
        assert twice == 0
        assert set(statuses) <= {"sent", "unknown"}
        assert unknown == set().union(*marked)
        assert len(unknown) <= len(called) + uncalled


async def _send_singles(this: Campaign, kills: int) -> None:
    rows = await this.query(
        "SELECT subscriber_id FROM core_subscribers ORDER BY subscriber_id LIMIT 20"
    )
    for number in range(kills):
        for row in rows:
            await this.service.messages.send(
                this.project_id, subscriber_id=row["subscriber_id"], text=f"single {number}"
            )


async def _in_flight(this: Campaign) -> set[str]:
    """The keys of what stands as being sent."""
    messages = await this.query("SELECT message_id FROM core_messages WHERE status = 'sending'")
    ways = await this.query("SELECT in_hand FROM core_mailing_ways WHERE job_id = :job_id")
    people = [each for way in ways for each in json.loads(way["in_hand"])]
    return {
        *(row["message_id"] for row in messages),
        *(f"{this.job_id}-{each}" for each in people),
    }


async def _is_done(this: Campaign) -> bool:
    open_ = await this.query(
        "SELECT 1 AS one FROM core_messages WHERE status IN ('queued', 'sending') LIMIT 1"
    )
    return not open_ and await this.is_ended()


async def _statuses(this: Campaign) -> dict[str, str]:
    """The status of each message, by its key."""
    people = await this.query(
        "SELECT subscriber_id, status FROM core_recipients WHERE job_id = :job_id"
    )
    singles = await this.query("SELECT message_id, status FROM core_messages WHERE job_id IS NULL")
    return {
        **{f"{this.job_id}-{row['subscriber_id']}": row["status"] for row in people},
        **{row["message_id"]: row["status"] for row in singles},
    }
