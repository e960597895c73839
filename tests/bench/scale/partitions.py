"""What a send costs where messages and events are partitioned, against the same service where they are not.

PostgreSQL only. Both are measured in turns, with the partitions that a retention of 30 days has.
"""

from collections.abc import Mapping
from contextlib import ExitStack

from msgsvc_core.db.partitions import partitioned_table
from msgsvc_core.db.retention import PartitionRule
from msgsvc_core.events.retention import retention_rule
from msgsvc_core.kernel.clock import DAY_MS
from msgsvc_core.messages.retention import partition_rule
from msgsvc_core.service import Service
from tests.bench.report import Bound, Finding
from tests.bench.rounds import Figures, Target, measure
from tests.bench.run import BenchError, Run
from tests.bench.servers import Setup, started_service

DAYS = 30

#: Of the requests a second of plain tables: below it, tables are partitioned where that is asked for only.
LEAST = Bound(least=0.9)

HOWS = ("taken in only", "delivering meanwhile")


def partitions(run: Run) -> list[Finding]:
    """On PostgreSQL."""
    if "postgresql" not in run.databases.kinds:
        return []
    with ExitStack() as stack:
        run.tell("starting the servers")
        targets: list[Target] = []
        for how, runner in zip(HOWS, ("none", "embedded"), strict=True):
            setup = Setup("postgresql", runner=runner)
            plain = stack.enter_context(started_service(run, setup))
            partitioned = stack.enter_context(started_service(run, setup, fill=partition))
            targets += [
                Target(f"{how}, plain", plain.server, plain.sends),
                Target(f"{how}, partitioned", partitioned.server, partitioned.sends),
            ]
        figures = measure(run, "send", targets)
    return [found for how in HOWS for found in _findings(how, figures)]


async def partition(service: Service, _project_id: str) -> None:
    """Partitions the tables that a send writes, as the purges of the last weeks would have done."""
    events = retention_rule(event_days=DAYS).partitions
    assert events is not None
    for rule in (partition_rule(DAYS), events):
        await partition_table(service, rule, days=DAYS)


async def partition_table(service: Service, rule: PartitionRule, *, days: int) -> None:
    """Empties a table, and gives it the partitions of the last `days`."""
    now_ms = service.clock.now_ms()
    async with partitioned_table(service.db, rule) as table:
        if table is None:
            raise BenchError(f"somebody else is about {rule.table}")
        # Those of the setup are of today, and none but the last partition would take them.
        async with service.db.transaction() as tx:
            await tx.execute(f"DELETE FROM {rule.table}")
        await table.convert()
        for number in range(days * DAY_MS // rule.period_ms, -1, -1):
            await table.split(now_ms - number * rule.period_ms)


def _findings(how: str, figures: Mapping[str, Figures]) -> list[Finding]:
    plain, own = figures[f"{how}, plain"], figures[f"{how}, partitioned"]
    name = f"send to partitions, {how}"
    return [
        Finding(f"{name}: per s / plain", own.per_s, plain.per_s, LEAST),
        Finding(f"{name}: p99 ms / plain", own.p99_ms, plain.p99_ms),
        Finding(f"{name}: CPU µs / plain", own.cpu_us, plain.cpu_us),
    ]
