"""A project with very many messages, subscribers and events, beside an empty one: what its requests take.

Both services run all the time, each with a database of its own, and are asked in turn.
"""

import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import median

import httpx2

from msgsvc_core.core_parts import retention_rules
from msgsvc_core.db.sql import limited_delete
from msgsvc_core.jobs.steps import STEP
from msgsvc_core.service import Service
from tests.api.lists.filling import START_MS, fill_history
from tests.bench.lists import settle
from tests.bench.report import Bound, Finding
from tests.bench.run import BenchError, Run
from tests.bench.servers import Fill, ServiceUnderTest, Setup, memory_mib, started_service
from tests.bench.status import PLUGINS, SECTIONS, open_sessions
from tests.bench.steady import at, times_ms

#: Of what the same takes in an empty project, and MiB by which the process may be larger.
MOST, MOST_MIB = Bound(most=3), Bound(most=30)

#: Messages a second that are sent.
PER_S = 50

#: Times that each page is asked for; the median counts.
TIMES = 15

#: Events that are older than all others, in both projects: what one step of retention deletes.
EXPIRED = STEP

#: Lists whose first page is asked for; `lists` measures all of them, with every filter.
PAGES = ("/v1/messages", "/v1/subscribers", "/v1/events")

#: Events are kept so long that the service's own purge leaves all of them; a line of `[limits]`.
KEPT = "event_days = 36500"


@dataclass(frozen=True, slots=True)
class Seen:
    """Of one service: milliseconds by what was asked, and MiB."""

    took_ms: Mapping[str, float]
    mib: float


def rows(run: Run) -> list[Finding]:
    """On every database."""
    found: list[Finding] = []
    for kind in run.databases.kinds:
        count = run.options.rows
        run.tell(f"{count:,} messages, {kind}: writing them")
        setup = Setup(kind, plugins=PLUGINS, sections=(KEPT, *SECTIONS))
        with ExitStack() as stack:
            full, empty = (
                stack.enter_context(started_service(run, setup, fill=_filled_with(messages)))
                for messages in (count, 0)
            )
            run.tell(f"{count:,} messages, {kind}: asking", total=2)
            few = _seen(run, empty)
            many = _seen(run, full)
        name = f"{count:,} messages and {count // 10:,} subscribers {kind}"
        found += [
            Finding(
                f"{name}, {what}: ms / of none",
                took_ms,
                few.took_ms[what],
                MOST if "p99" not in what else Bound(),
            )
            for what, took_ms in many.took_ms.items()
        ]
        grown = many.mib - few.mib
        found.append(Finding(f"{name}: MiB more", grown, bound=MOST_MIB, alone=True))
    return found


def _filled_with(messages: int) -> Fill:
    async def write(service: Service, project_id: str) -> None:
        async with service.db.transaction() as tx:
            if messages:
                await fill_history(
                    tx, project_id, messages=messages, subscribers=max(10, messages // 10)
                )
            expired = [
                {
                    "project_id": project_id,
                    "event_id": f"evt_{number:022d}x",
                    "name": "delivery.success",
                    "data": "{}",
                    "occurred_at_ms": START_MS - 1,
                    "history_of": "",
                }
                for number in range(EXPIRED)
            ]
            await tx.insert_many("core_events", expired)
        await settle(service)

    return write


def _seen(run: Run, service: ServiceUnderTest) -> Seen:
    took_ms: dict[str, float] = {}
    if run.options.warm_up:
        times_ms(service.sends, per_s=PER_S, seconds=run.options.warm_up)
    sends = sorted(times_ms(service.sends, per_s=PER_S, seconds=run.options.window))
    took_ms["POST /v1/send, p50"] = at(0.5, sends)
    took_ms["POST /v1/send, p99"] = at(0.99, sends)
    [session_id] = open_sessions(service, 1)
    paths = {
        "sign-in status": f"/v1/auth/session/{session_id}/status",
        **{f"page of {path}": path for path in PAGES},
    }
    with httpx2.Client(
        base_url=service.server.url,
        headers={"Authorization": f"Bearer {service.sends.api_key}"},
        timeout=60,
    ) as client:
        for name, path in paths.items():
            took_ms[name] = _asked_ms(client, path)
    took_ms["step of retention"] = service.use(_step_ms)
    run.advance(1)
    return Seen(took_ms, memory_mib(service.server))


def _asked_ms(client: httpx2.Client, path: str) -> float:
    found = []
    for _ in range(TIMES):
        began_s = time.perf_counter()
        answer = client.get(path)
        found.append((time.perf_counter() - began_s) * 1000)
        if answer.status_code != 200:
            raise BenchError(f"{path}: {answer.status_code} {answer.text}")
    return median(found)


async def _step_ms(service: Service) -> float:
    """Of one step of the purge of events, as of the time before which there are so many."""
    [rule] = [each for each in retention_rules(service.settings) if each.table == "core_events"]
    async with service.db.transaction() as tx:
        old = limited_delete(rule.table, f"{rule.column} < :before_ms", tx.dialect)
        params = {"before_ms": START_MS, "most": EXPIRED}
        began_s = time.perf_counter()
        count = await tx.execute(f"DELETE FROM {rule.table} WHERE {old}", params)
        took_ms = (time.perf_counter() - began_s) * 1000
    if count != EXPIRED:
        raise BenchError(f"{count} of {EXPIRED} events were deleted")
    return took_ms
