"""The same messages sent by one, two and four processes: what a message costs the processor of all together.

Messages a second would tell of the machine, which has so many cores and no more. The messages are a
broadcast to people of several bots, and single messages to the same people. They wait, with all
processes stopped, until the processes go on together.
"""

import asyncio
import time
from collections.abc import Sequence
from contextlib import ExitStack
from statistics import median

from msgsvc_core.mailings import Audience, MailingMessage, NewMailing
from msgsvc_core.service import Service
from tests.bench.audience import add_audience
from tests.bench.queues import until_empty
from tests.bench.report import Bound, Finding
from tests.bench.run import BenchError, Run
from tests.bench.scale.upkeep import vacuum
from tests.bench.servers import (
    TEXT,
    Fill,
    ServiceUnderTest,
    Setup,
    cpu_s,
    go_on,
    pause,
    started_service,
)
from tests.process import Server

#: Of what a message costs one process.
MOST = Bound(most=1.5)

NUMBERS = (1, 2, 4)

#: What part of `--messages` a round sends of either kind: it is sent by three numbers of processes.
PART = 4

#: Bots, each with a quarter of the people.
BOTS = ("messenger_a", "messenger_b", "messenger_c", "messenger_d")

#: Seconds for new processes to share the work, and for all to be sent.
SHARED_S, MOST_S = 3.0, 300.0

#: Seconds between two looks whether all are sent, and messages that are accepted at once.
LOOK_S, STEP = 0.2, 1000

#: Of single messages and of broadcasts.
SENT = "SELECT COUNT(*) FROM core_messages WHERE status = 'sent'"


def processes(run: Run) -> list[Finding]:
    """On PostgreSQL, the only database that processes share."""
    if "postgresql" not in run.databases.kinds:
        run.progress.console.print("several processes are not measured without postgresql")
        return []
    costs_us: dict[int, float] = {}
    idle: dict[int, float] = {}
    sections = [f'[channels.{name}]\nplugin = "sink"' for name in BOTS[1:]]
    setup = Setup("postgresql", plugins=("sink", "broadcasts"), sections=sections)
    run.tell("processes", total=len(NUMBERS) * (run.options.rounds + 1))
    with ExitStack() as stack:
        service = stack.enter_context(started_service(run, setup, fill=_add_people(run)))
        servers = [service.server]
        for number in NUMBERS:
            while len(servers) < number:
                servers.append(service.deployment.start())
                stack.callback(servers[-1].kill)
            run.tell(f"{number} processes: idle")
            time.sleep(SHARED_S)
            idle[number] = _idle_percent(servers, run.options.window)
            rounds = []
            for place in range(run.options.rounds + 1):
                run.tell(f"{number} processes, round {place}")
                rounds.append(_cost_us(run, service, servers))
                run.advance(1)
            # The first makes what is made once.
            costs_us[number] = median(rounds[1:])
    first = NUMBERS[0]
    return [
        *(
            Finding(
                f"{number} processes postgresql: CPU µs a message / of 1",
                costs_us[number],
                costs_us[first],
                MOST,
            )
            for number in NUMBERS[1:]
        ),
        *(
            Finding(
                f"{number} processes postgresql, idle: % of a core / of 1",
                idle[number],
                idle[first],
            )
            for number in NUMBERS[1:]
        ),
    ]


def _idle_percent(servers: Sequence[Server], watch_s: int) -> float:
    """CPU time as a part of the clock's."""
    before, began_s = _cpu_s(servers), time.monotonic()
    time.sleep(watch_s)
    return (_cpu_s(servers) - before) / (time.monotonic() - began_s) * 100


def _cpu_s(servers: Sequence[Server]) -> float:
    """Of all of them together."""
    found = [cpu_s(server) for server in servers]
    if None in found:
        raise BenchError("this system does not tell a process's time")
    return sum(each for each in found if each is not None)


def _cost_us(run: Run, service: ServiceUnderTest, servers: Sequence[Server]) -> float:
    # A message of the broadcast and a single one to each.
    count = 2 * _people(run)

    async def send(opened: Service) -> tuple[int, float]:
        before = await _sent(opened)
        await _queue(opened, service.project_id)
        before_s = _cpu_s(servers)
        for server in servers:
            go_on(server)
        ends_at = time.monotonic() + MOST_S
        while (sent := await _sent(opened) - before) < count:
            if time.monotonic() > ends_at:
                raise BenchError(f"{sent} of {count} messages are sent")
            await asyncio.sleep(LOOK_S)
        await until_empty(opened, "channel:")
        return sent, _cpu_s(servers) - before_s

    for server in servers:
        pause(server)
    vacuum(service)
    sent, spent_s = service.use(send)
    return spent_s * 1e6 / sent


async def _queue(service: Service, project_id: str) -> None:
    """A broadcast to all, and a message to each."""
    async with service.db.read() as tx:
        rows = await tx.fetch_all(
            "SELECT subscriber_id FROM core_subscribers WHERE source = 'form'"
        )
    async with service.db.transaction() as tx:
        audience = Audience(tags_any=[f"first-{len(rows)}"])
        new = NewMailing("broadcasts", MailingMessage(text=TEXT), audience)
        await service.mailings.start(tx, project_id, new)
    ids = [row["subscriber_id"] for row in rows]
    for start in range(0, len(ids), STEP):
        await asyncio.gather(
            *(
                service.messages.send(project_id, subscriber_id=id_, text=TEXT)
                for id_ in ids[start : start + STEP]
            )
        )


async def _sent(service: Service) -> int:
    async with service.db.read() as tx:
        return int(await tx.fetch_val(SENT))


def _people(run: Run) -> int:
    return max(100, run.options.messages // PART)


def _add_people(run: Run) -> Fill:
    async def add(service: Service, project_id: str) -> None:
        await add_audience(service, project_id, _people(run))
        async with service.db.transaction() as tx:
            for place, bot in enumerate(BOTS):
                await tx.execute(
                    "UPDATE core_subscribers SET channel = :bot, bot = :bot"
                    " WHERE source = 'form' AND CAST(substr(subscriber_id, 5) AS integer)"
                    " % :bots = :place",
                    {"bot": bot, "bots": len(BOTS), "place": place},
                )

    return add
