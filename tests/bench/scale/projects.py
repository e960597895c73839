"""Many projects in one process, each with a bot, a key and a subscriber of its own, beside ten.

The bots receive by webhook, so that each has what a bot costs that is looked after all the time.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import httpx2

from msgsvc_core.channels import ChannelUser
from msgsvc_core.channels.project_channels.models import CreateChannelBody, OwnChannel
from msgsvc_core.channels.project_channels.service import ProjectChannels
from msgsvc_core.service import Service
from tests.bench.queues import until_empty
from tests.bench.report import Bound, Finding
from tests.bench.run import BenchError, Run
from tests.bench.servers import (
    TEXT,
    ServiceUnderTest,
    Setup,
    cpu_percent,
    memory_mib,
    started_service,
)

#: A project that sends nothing now has its bot in memory, and little else.
MOST_KIB, MOST_PERCENT, MOST_START_S = Bound(most=20), Bound(most=3), Bound(most=5)

#: Of what the operator's endpoints take with few projects.
MOST_PROBE = Bound(most=5)

#: Projects of the process that is compared with: what is needed once is there.
FEW = 10

#: Seconds until memory is read.
SETTLE_S = 3.0

#: Seconds for the process to be ready, at most.
PATIENCE_S = 120.0

#: Times that an endpoint of the operator is asked; the median counts.
TIMES = 9

#: Projects that are written in one transaction.
STEP = 100

#: What a deployment's monitoring asks for all the time.
PROBES = ("/readyz", "/metrics")


@dataclass(frozen=True, slots=True)
class Tenant:
    """A project's key, and whom it can write to by the project's bot."""

    key: str
    subscriber_id: str


@dataclass(frozen=True, slots=True)
class Seen:
    """Of one process: seconds until it was ready, MiB before and after each project's first message, CPU
    time as a part of the clock's while nothing happens, and what the probes took."""

    ready_s: float
    unused_mib: float
    used_mib: float
    percent: float | None
    probes_ms: Mapping[str, float]


def projects(run: Run) -> list[Finding]:
    """On the first of the databases, a process with few projects and one with many."""
    number, kind = run.options.projects, run.databases.kinds[0]
    few, many = (_measured(run, kind, each) for each in (FEW, number))
    name = f"{number:,} projects {kind}"
    kib = (many.unused_mib - few.unused_mib) * 1024 / (number - FEW)
    used_kib = (many.used_mib - few.used_mib) * 1024 / (number - FEW)
    beside = f"/ with {FEW}"
    return [
        Finding(f"{name}: KiB each", kib, bound=MOST_KIB, alone=True),
        Finding(f"{name}, after a message of each: KiB each", used_kib, alone=True),
        Finding(
            f"{name}, idle: % of a core {beside}",
            many.percent,
            few.percent,
            MOST_PERCENT,
            alone=True,
        ),
        Finding(
            f"{name}: seconds until ready {beside}",
            many.ready_s,
            few.ready_s,
            MOST_START_S,
            alone=True,
        ),
        *(
            Finding(
                f"{name}: ms for {probe} {beside}",
                many.probes_ms[probe],
                few.probes_ms[probe],
                MOST_PROBE,
            )
            for probe in PROBES
        ),
    ]


def _measured(run: Run, kind: str, number: int) -> Seen:
    tenants: list[Tenant] = []

    async def fill(service: Service, _project_id: str) -> None:
        tenants.extend(await _add_projects(service, number))

    run.tell(f"{number:,} projects, {kind}: writing them")
    outbox = run.new_folder() / "outbox.jsonl"
    section = f'[own_channels.settings.phone]\noutbox = "{outbox}"'
    setup = Setup(kind, plugins=("sink", "phone"), sections=(section,))
    with started_service(run, setup, fill=fill) as service:
        run.tell(f"{number:,} projects, {kind}: waiting for the process", total=number)
        ready_s = _ready_s(service)
        time.sleep(SETTLE_S)
        unused_mib = memory_mib(service.server)
        run.tell(f"{number:,} projects, {kind}: a message of each")
        _send(run, service, tenants)
        service.use(lambda opened: until_empty(opened, "channel:"))
        time.sleep(SETTLE_S)
        used_mib = memory_mib(service.server)
        run.tell(f"{number:,} projects, {kind}: idle")
        percent = cpu_percent(service.server, run.options.window)
        return Seen(ready_s, unused_mib, used_mib, percent, _probes_ms(service))


async def _add_projects(service: Service, number: int) -> Sequence[Tenant]:
    tenants: list[Tenant] = []
    body = CreateChannelBody(name="shop_bot", plugin="phone")
    for start in range(0, number, STEP):
        places = range(start, min(number, start + STEP))
        bots: list[OwnChannel] = []
        async with service.db.transaction() as tx:
            for place in places:
                project = await service.projects.add(tx, f"Shop {place}")
                bots.append(await service.get(ProjectChannels).create(tx, project.project_id, body))
        # Only now are the bots there, for people to come by.
        async with service.db.transaction() as tx:
            for place, bot in zip(places, bots, strict=True):
                user, chat_id = ChannelUser(f"user-{place}", "Ann"), f"chat-{place}"
                person = await service.subscribers.ensure(
                    tx, bot.project_id, bot.channel_id, user, chat_id, source="api"
                )
                _, key = await service.projects.add_key(tx, bot.project_id, "bench")
                tenants.append(Tenant(key, person.subscriber_id))
    return tenants


def _ready_s(service: ServiceUnderTest) -> float:
    """Seconds from the start of the process to the first `/readyz` that says so."""
    while True:
        passed_s = time.time() - service.began_s
        if httpx2.get(f"{service.server.url}/readyz").status_code == 200:
            return passed_s
        if passed_s > PATIENCE_S:
            raise BenchError(f"the process is not ready after {PATIENCE_S:g} s")
        time.sleep(0.02)


def _send(run: Run, service: ServiceUnderTest, tenants: Sequence[Tenant]) -> None:
    with httpx2.Client(base_url=service.server.url) as client:
        for tenant in tenants:
            body = {"subscriber_id": tenant.subscriber_id, "text": TEXT}
            headers = {"Authorization": f"Bearer {tenant.key}"}
            answer = client.post("/v1/send", json=body, headers=headers)
            if answer.status_code != 202:
                raise BenchError(f"a project's message: {answer.status_code} {answer.text}")
            run.advance(1)


def _probes_ms(service: ServiceUnderTest) -> Mapping[str, float]:
    found = {}
    with httpx2.Client(base_url=service.server.url) as client:
        for probe in PROBES:
            times_ms = []
            for _ in range(TIMES):
                began_s = time.perf_counter()
                answer = client.get(probe)
                times_ms.append((time.perf_counter() - began_s) * 1000)
                if answer.status_code != 200:
                    raise BenchError(f"{probe}: {answer.status_code} {answer.text}")
            found[probe] = median(times_ms)
    return found
