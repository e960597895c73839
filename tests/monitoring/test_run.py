"""A service with every kind of trouble under a real Prometheus: alerts fire, and every query has an answer.

What alerts say about times is in `situations.py`; here `for` is a second.
"""

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgsvc_devkit.platforms.telegram import FakeTelegram
from tests.monitoring import trouble
from tests.monitoring.prometheus import EVERY_S, Prometheus, running
from tests.monitoring.tools import DEPLOY, alerts, rules
from tests.monitoring.trouble import TROUBLES, WELL
from tests.ports import free_ports
from tests.process import Deployment, Server, until

RULES = {rule["alert"]: rule for rule in rules(alerts())}
DASHBOARD: dict[str, Any] = json.loads((DEPLOY / "grafana" / "msgsvc.json").read_text("utf-8"))
PANELS = {panel["title"]: panel for panel in DASHBOARD["panels"] if panel["type"] != "row"}
VARIABLES = {each["name"]: each for each in DASHBOARD["templating"]["list"]}

#: Alerts that can't fire in the run, and why.
NOT_IN_THE_RUN = {
    "MsgsvcNotScraped": "there are targets, without which the others could not fire",
    "MsgsvcVersionsDiffer": "there is one release",
    "MsgsvcDatabaseAway": "a file is there as long as the process that has opened it",
}

#: Panels that show nothing in the run, and why.
EMPTY_PANELS = {
    "Wait for the pace": "bots of the sandbox have no rate limits, and the other one sends nothing",
}

#: Metrics that are named and not in the run, and why.
NOT_MEASURED = {
    "msgsvc_channel_pace_wait_seconds_bucket": EMPTY_PANELS["Wait for the pace"],
}

#: What Grafana puts in place of its variables.
GRAFANA = {
    "$__rate_interval": f"{5 * EVERY_S}s",
    "$job": ".*",
    "$instance": ".*",
    "$channel": ".*",
    "$endpoint": ".*",
}

#: Names of metrics in a query.
METRIC = re.compile(r"\b((?:msgsvc|process)_[a-z0-9_]+|up(?=\{)|ALERTS(?=\{))")


@dataclass(frozen=True, slots=True)
class Run:
    """What is left of a run. `calm` are the alerts that fired while nothing was wrong."""

    prometheus: Prometheus
    began_s: float
    calm: set[str]

    def shows(self, query: str) -> bool:
        """Whether a query had a value at some time of the run."""
        found = self.prometheus.get(
            "query_range", query=query, start=self.began_s, end=time.time(), step=EVERY_S
        )
        return any(value != "NaN" for each in found["result"] for _, value in each["values"])


@asynccontextmanager
async def after_trouble(folder: Path) -> AsyncIterator[Run]:
    """The run, with Prometheus still there."""
    port, nobody = free_ports(), free_ports()
    targets = [f"127.0.0.1:{port}", f"127.0.0.1:{nobody}"]
    deployment = trouble.deploy(folder)
    database = folder / "msgsvc.db"

    def configure(telegram: FakeTelegram, runner: str = "embedded") -> None:
        limit = f"max_connections = {trouble.MAX_CONNECTIONS}"
        deployment.configure(trouble.configuration(telegram, runner), port=port, server=limit)

    with running(folder, targets) as prometheus:
        began_s = time.time()
        async with FakeTelegram() as telegram, trouble.receivers() as receivers:
            configure(telegram)
            # From the beginning: a poll that waits for updates would be answered late.
            conflict = "Conflict: terminated by other getUpdates request"
            telegram.fail_next("getUpdates", 409, conflict, times=10_000)
            server = await asyncio.to_thread(deployment.start)
            try:
                key = await asyncio.to_thread(deployment.create_key)
                async with trouble.project(server.url, key) as project:
                    calm = await all_is_well(prometheus, project, receivers)
                    await much_goes_wrong(prometheus, project, receivers, server)
                    await asyncio.to_thread(trouble.age, database)
                    await asyncio.to_thread(
                        prometheus.wait_for,
                        "MsgsvcMessengerAway",
                        "MsgsvcReceptionInterrupted",
                        "MsgsvcBacklog",
                    )
                    await nobody_can_write(prometheus, project, database)
            finally:
                await asyncio.to_thread(server.end)
            configure(telegram, "none")
            await nobody_works(prometheus, deployment, key)
            await it_is_restarted(prometheus, deployment)
        yield Run(prometheus, began_s, calm)


async def all_is_well(prometheus: Prometheus, project: trouble.Project, receivers: str) -> set[str]:
    """Uses everything while nothing is wrong; returns the alerts that fire."""
    await project.add_webhook(f"{receivers}/200", "event.tracked")
    for channel in (WELL, *TROUBLES):
        await project.sign_in(channel)
        await project.send(channel)
    await project.use_everything()
    await project.say("hello")
    delivered = 'sum(msgsvc_webhooks_attempts_total{outcome="delivered"})'
    await reaches(prometheus, 'sum(msgsvc_deliveries_total{channel="well",outcome="sent"})', 4)
    await reaches(prometheus, 'count(msgsvc_deliveries_total{outcome="sent"})', len(TROUBLES) + 1)
    await reaches(prometheus, delivered, 1)
    # What a rule has found is confirmed by the next evaluation but one.
    await asyncio.sleep(3 * EVERY_S)
    return await asyncio.to_thread(prometheus.look)


async def reaches(prometheus: Prometheus, query: str, least: float) -> None:
    """Returns once a query has that value."""
    await asyncio.to_thread(until, lambda: (prometheus.value(query) or 0) >= least)


async def much_goes_wrong(
    prometheus: Prometheus,
    project: trouble.Project,
    receivers: str,
    server: Server,
) -> None:
    await project.open_ticket()
    for channel in TROUBLES:
        await project.send(channel)
    # Two on each: a rate sees no first value of a counter.
    both = 'count(msgsvc_deliveries_total{channel!="well",outcome="sent"} == 2)'
    await reaches(prometheus, both, len(TROUBLES))
    for channel, reason in TROUBLES.items():
        await project.sandbox.fail(channel, reason, retry_after_s=trouble.PAUSE_S)
        await project.send(channel, trouble.MESSAGES)
    failed = 'sum(msgsvc_deliveries_total{outcome="failed",reason="invalid_message"})'
    await reaches(prometheus, failed, 1)
    await project.send("refused", trouble.MESSAGES)
    await project.add_webhook(f"{receivers}/500")
    await project.add_webhook(f"{receivers}/500/")
    await project.add_webhook(f"{receivers}/410")
    for _ in range(5):
        await project.track()
    await project.say("/crash")
    await project.say("/enqueue")
    await project.begin_sign_ins(trouble.UNCONFIRMED)
    with trouble.open_connections(server.url, trouble.MAX_CONNECTIONS - 4):
        await asyncio.to_thread(
            prometheus.wait_for,
            "MsgsvcDown",
            "MsgsvcRedisAway",
            "MsgsvcBotStopped",
            "MsgsvcBotPaused",
            "MsgsvcDeliveriesFail",
            "MsgsvcUpdatesFail",
            "MsgsvcDeadLetters",
            "MsgsvcWebhooksFail",
            "MsgsvcWebhookDisabled",
            "MsgsvcConnectionsRunOut",
            "MsgsvcNobodySignsIn",
        )
    await reaches(prometheus, "max(msgsvc_channel_unavailable_since_timestamp_seconds)", 1)
    await reaches(
        prometheus, "max(msgsvc_channel_reception_interrupted_since_timestamp_seconds)", 1
    )


async def nobody_can_write(prometheus: Prometheus, project: trouble.Project, database: Any) -> None:
    """Requests wait for the file, and fail."""
    async with trouble.locked(database), asyncio.TaskGroup() as clients:
        statuses = [clients.create_task(project.try_to_write()) for _ in range(10)]
        # A load balancer's question fails sooner, and again: so the count of failures rises.
        balancer = clients.create_task(project.ask_for_readiness(every_s=EVERY_S / 2))
        await asyncio.to_thread(
            prometheus.wait_for,
            "MsgsvcWritesFail",
            "MsgsvcFailing",
            "MsgsvcSlow",
            "MsgsvcPoolExhausted",
        )
        balancer.cancel()

    assert {each.result() for each in statuses} == {503}


async def nobody_works(prometheus: Prometheus, deployment: Deployment, key: str) -> None:
    """A process that takes requests, and none that runs jobs."""
    server = await asyncio.to_thread(deployment.start)
    try:
        async with trouble.project(server.url, key) as project:
            [subscriber] = await project.find("well")
            project.subscribers[WELL] = subscriber
            await project.use_everything()
        await asyncio.to_thread(trouble.age, deployment.folder / "msgsvc.db")
        await asyncio.to_thread(
            prometheus.wait_for,
            "MsgsvcNoRunner",
            "MsgsvcWorkWaits",
            "MsgsvcMessagesWait",
            "MsgsvcWebhooksWait",
        )
    finally:
        await asyncio.to_thread(server.end)


async def it_is_restarted(prometheus: Prometheus, deployment: Deployment) -> None:
    """Until Prometheus has seen four starts."""
    seen = "changes(process_start_time_seconds[30m])"
    for times in (2, 3):
        server = await asyncio.to_thread(deployment.start)
        try:
            await reaches(prometheus, f"max({seen})", times)
        finally:
            await asyncio.to_thread(server.end)
    await asyncio.to_thread(prometheus.wait_for, "MsgsvcRestarts")


# ---- what must hold -----------------------------------------------------------------------------


# All in one test: each worker of the suite would make a run of its own.
async def test_alerts_fire_and_every_query_is_answered(tmp_path: Path) -> None:
    async with after_trouble(tmp_path) as run:
        faults = await asyncio.to_thread(faults_of, run)

    assert faults == []
    # All is well but for the process that there never was, and Redis.
    assert run.calm == {"MsgsvcDown", "MsgsvcRedisAway"}
    assert set(RULES) - set(run.prometheus.fired) == set(NOT_IN_THE_RUN)


def faults_of(run: Run) -> list[str]:
    """What is wrong with the alerts and the dashboard, a line each."""
    groups = run.prometheus.get("rules")["groups"]
    healthy = {
        rule["name"] for group in groups for rule in group["rules"] if rule["health"] == "ok"
    }
    faults = [f"{name} is not evaluated" for name in set(RULES) - healthy]
    for name, alert in run.prometheus.fired.items():
        faults += [f"{name}: {fault}" for fault in faults_of_annotations(name, alert)]
    for name, rule in RULES.items():
        faults += [f"{name}: {fault}" for fault in faults_of_names(run, rule["expr"])]
    for title, panel in PANELS.items():
        queries = [filled(target["expr"]) for target in panel["targets"]]
        shows = all(map(run.shows, queries))
        if shows == (title in EMPTY_PANELS):
            faults.append(
                f"{title}: shows {'something in spite of' if shows else 'nothing without'} a reason"
            )
        for query in queries:
            faults += [f"{title}: {fault}" for fault in faults_of_names(run, query)]
    for name, variable in VARIABLES.items():
        if variable["type"] == "query" and not values_of(run, variable):
            faults.append(f"${name} offers nothing")
    for each in DASHBOARD["annotations"]["list"]:
        if "expr" in each and not run.shows(filled(each["expr"])):
            faults.append(f"the annotation {each['name']} shows nothing")
    return faults


def faults_of_annotations(name: str, alert: dict[str, Any]) -> list[str]:
    """What nobody could read in an alert that has fired."""
    annotations = alert["annotations"]
    docs = annotations["runbook_url"].partition("/guides")[0]
    faults = []
    if not docs.startswith("https://"):
        faults.append(f"{docs} is no address")
    if annotations["runbook_url"] != f"{docs}/guides/monitoring.html#{name.lower()}":
        faults.append(f"its runbook is {annotations['runbook_url']}")
    # A label that the alert does not have is rendered as nothing.
    unreadable = re.compile(r"\{\{|no value|error expanding|  |\(\)|^ | $")
    return faults + [text for text in annotations.values() if unreadable.search(text)]


def faults_of_names(run: Run, expression: str) -> list[str]:
    """Metrics that a query names and that the run has not, without a reason; or has, in spite of one."""
    names = set(METRIC.findall(expression))
    absent = {name for name in names if not run.shows(name)}
    faults = [f"there is no {name}" for name in absent - set(NOT_MEASURED)]
    faults += [
        f"there is {name}, in spite of a reason" for name in names & set(NOT_MEASURED) - absent
    ]
    return faults if names else ["it names no metric"]


def values_of(run: Run, variable: dict[str, Any]) -> list[str]:
    """What a variable of the dashboard offers."""
    asked = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]["query"])
    assert asked
    metric, label = asked.groups()
    found: list[str] = run.prometheus.get(f"label/{label}/values", **{"match[]": filled(metric)})
    return found


def filled(expression: str) -> str:
    """A query as Grafana sends it."""
    for name, value in GRAFANA.items():
        expression = expression.replace(name, value)
    assert "$" not in expression
    return expression
