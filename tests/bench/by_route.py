"""Messages by a route, beside messages to a subscriber: what waits is delivered over HTTP.

Three queues on the same service in turn, each filled while the server stands still: messages to a subscriber,
messages by a route whose first channel takes them, and by one whose first channel refuses each. The third
makes two calls for each message, so half of the first's rate would be the least that it could cost.
"""

from collections import defaultdict
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from statistics import median

from msgsvc_core.channels import ChannelUser
from msgsvc_core.db import WriteBatch
from msgsvc_core.messages.bodies import SendBody
from msgsvc_core.routing import Routes
from msgsvc_core.routing.models import CreateRouteBody
from msgsvc_core.service import Service
from tests.bench import fake_platform
from tests.bench.lane import ENDED
from tests.bench.queues import Queue
from tests.bench.report import Bound, Finding
from tests.bench.run import Run
from tests.bench.servers import (
    SUBSCRIBERS,
    TEXT,
    ServiceUnderTest,
    Setup,
    cpu_s,
    go_on,
    pause,
    started,
    started_service,
)

#: Of the messages a second to a subscriber, and times their processor time.
LEAST = {"taken": Bound(least=0.7), "refused first": Bound(least=0.3)}
MOST_CPU = {"taken": Bound(most=1.4), "refused first": Bound(most=3)}

#: The channel whose platform refuses everything, beside `messenger_a`.
REFUSING = "messenger_b"

#: The order of the channels, by the names of the measurements.
ROUTES = {"taken": ("messenger_a", REFUSING), "refused first": (REFUSING, "messenger_a")}


def by_route(run: Run) -> list[Finding]:
    """Messages a second and processor time, as parts of those of messages to a subscriber."""
    with ExitStack() as stack:
        run.tell("starting the servers")
        platform = stack.enter_context(started(run, fake_platform))
        channel = f'plugin = "courier"\nurl = "{platform.url}"'
        setup = partial(
            Setup,
            channel=channel,
            plugins=("courier",),
            sections=[f"[channels.{REFUSING}]\n{channel}"],
        )
        services = {
            kind: stack.enter_context(started_service(run, setup(kind), fill=_fill_project))
            for kind in run.databases.kinds
        }
        for service in services.values():
            pause(service.server)
        queues = [
            Queue("to a subscriber", "channel:", partial(_fill, route=None), ENDED),
            *(
                Queue(f"by a route, {name}", "channel:", partial(_fill, route=name), ENDED)
                for name in ROUTES
            ),
        ]
        run.tell("by a route", total=run.options.rounds * len(services) * len(queues))
        rates: dict[tuple[str, str], list[float]] = defaultdict(list)
        costs: dict[tuple[str, str], list[float]] = defaultdict(list)
        for number in range(1, run.options.rounds + 1):
            for kind, service in services.items():
                for queue in queues:
                    run.tell(f"{queue.name}, round {number}: {kind}")
                    rate, cost = _emptied(queue, service, run.options.messages)
                    rates[kind, queue.name].append(rate)
                    costs[kind, queue.name].extend([] if cost is None else [cost])
                    run.advance(1)
        for service in services.values():
            go_on(service.server)
    return [found for kind in services for found in _findings(kind, rates, costs)]


def _findings(
    kind: str,
    rates: Mapping[tuple[str, str], list[float]],
    costs: Mapping[tuple[str, str], list[float]],
) -> list[Finding]:
    plain = (kind, "to a subscriber")
    found: list[Finding] = []
    for name in ROUTES:
        own = (kind, f"by a route, {name}")
        found.append(
            Finding(
                f"{own[1]} {kind}: per s / to a subscriber",
                median(rates[own]),
                median(rates[plain]),
                LEAST[name],
            )
        )
        if costs.get(own) and costs.get(plain):
            found.append(
                Finding(
                    f"{own[1]} {kind}: CPU µs / to a subscriber",
                    median(costs[own]),
                    median(costs[plain]),
                    MOST_CPU[name],
                )
            )
    return found


def _emptied(queue: Queue, service: ServiceUnderTest, count: int) -> tuple[float, float | None]:
    """Messages a second, and the microseconds of the processor for each."""
    before_s = cpu_s(service.server)
    rate = queue.emptied(service, count)
    after_s = cpu_s(service.server)
    if before_s is None or after_s is None:
        return rate, None
    return rate, (after_s - before_s) * 1e6 / count


async def _fill_project(service: Service, project_id: str) -> None:
    """People with both channels, of which the platform refuses one, and the routes."""
    async with service.db.transaction() as tx:
        for number in range(SUBSCRIBERS):
            for channel, chat in (("messenger_a", "taken"), (REFUSING, "refused")):
                person = await service.subscribers.ensure(
                    tx,
                    project_id,
                    channel,
                    ChannelUser(f"person-{number}", "Ann"),
                    f"{chat}-{number}",
                    source="api",
                )
                await tx.execute(
                    "UPDATE core_subscribers SET external_id = :external_id"
                    " WHERE project_id = :project_id AND subscriber_id = :subscriber_id",
                    {
                        "external_id": f"person-{number}",
                        "project_id": project_id,
                        "subscriber_id": person.subscriber_id,
                    },
                )
        for name, channels in ROUTES.items():
            steps = [{"channel": channel} for channel in channels]
            body = CreateRouteBody.model_validate({"name": name, "steps": steps})
            await service.get(Routes).create(tx, project_id, body)


async def _fill(service: Service, project_id: str, messages: int, *, route: str | None) -> None:
    async with service.db.read() as tx:
        routes = {
            each.name: each.route_id for each in await service.get(Routes).list_all(tx, project_id)
        }
        rows = await tx.fetch_all(
            "SELECT subscriber_id FROM core_subscribers WHERE chat_id LIKE 'taken-%' LIMIT :count",
            {"count": SUBSCRIBERS},
        )
    ids = [row["subscriber_id"] for row in rows]
    for first in range(0, messages, SUBSCRIBERS):
        unit = WriteBatch()
        for number in range(min(SUBSCRIBERS, messages - first)):
            whom = (
                {"subscriber_id": ids[number]}
                if route is None
                else {"external_id": f"person-{number}", "route_id": routes[route]}
            )
            body = SendBody.model_validate({**whom, "text": TEXT})
            await service.messages.add(unit, project_id, body)
        await service.db.write(unit)
