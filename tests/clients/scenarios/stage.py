"""A service, people, and a client that plays the scenarios."""

import asyncio
import re
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgsvc_core.config.settings import Settings
from msgsvc_core.kernel.clock import SystemClock
from msgsvc_core.server import ConnectionLimits, Server, bind, check_open_files
from msgsvc_core.service import Service
from msgsvc_dashboard.accounts import Accounts
from msgsvc_devkit import settled, until
from msgsvc_devkit.deadlines import patient
from msgsvc_devkit.platforms.sandbox import Sandbox, SandboxPerson
from msgsvc_devkit.services import SECRET_KEY
from msgsvc_devkit.webhooks import WebhookReceiver
from tests.clients.scenarios.proxy import Fault, Forwarded, Proxy
from tests.clients.scenarios.script import Scenario, Step, Variables, at, lacks
from tests.clients.scenarios.transcript import Entry, Transcript

#: Calls a method of a client, and returns `{"answer": ...}`, `{"items": [...]}`, `{"error": {...}}` or
#: `{"failed": "..."}`.
Perform = Callable[[Mapping[str, Any]], Awaitable[dict[str, Any]]]

#: Seconds that a message may take.
PATIENCE_S = patient(20.0)

#: What a step may say of a call that its client has to know.
_OF_CALL = ("call", "path", "body", "query", "options", "all", "once")

_SETTINGS: dict[str, Any] = {
    "plugins": [
        "sandbox",
        "auth",
        "otp",
        "webhooks",
        "broadcasts",
        "forms",
        "helpdesk",
        "billing",
        "dashboard",
    ],
    "channels": {name: {"plugin": "sandbox"} for name in ("messenger_a", "messenger_b")},
    "auth": {"sessions_per_hour": 1000, "sessions_per_hour_per_address": 1000},
    # An account on this plan has no credit from the beginning.
    "billing": {
        "plans": {"none": {"monthly_credits": 0}},
        "default_plan": "none",
        "grace_days": 0,
        "prices": {"message.sent": 1},
    },
    "limits": {"requests_per_minute": 100_000},
    "webhooks": {"allow_http": True, "allow_cidrs": ["127.0.0.0/8"]},
}


class MovableClock(SystemClock):
    """Runs as the machine's does, and can be moved forward."""

    def __init__(self) -> None:
        self._ahead_ms = 0

    def time(self) -> float:
        return super().time() + self._ahead_ms / 1000

    def now_ms(self) -> int:
        return super().now_ms() + self._ahead_ms

    def monotonic_ms(self) -> int:
        return super().monotonic_ms() + self._ahead_ms

    def advance(self, seconds: float) -> None:
        self._ahead_ms += round(seconds * 1000)


@dataclass(frozen=True, slots=True)
class Place:
    """A running service."""

    service: Service
    clock: MovableClock
    url: str


@asynccontextmanager
async def running_service(folder: Path) -> AsyncIterator[Place]:
    """In this process, so that a step can move its clock."""
    listener = bind("127.0.0.1", 0)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    settings = Settings.model_validate(
        {
            **_SETTINGS,
            "database_url": f"sqlite:///{folder / 'scenarios.db'}",
            "secret_keys": (SECRET_KEY,),
            "base_url": url,
        }
    )
    clock = MovableClock()
    async with Service(settings, clock=clock) as service:
        guard = ConnectionLimits(
            check_open_files(settings.server), settings.errors_url, service.metrics
        )
        server = Server(service.app, guard, signals=False)
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield Place(service, clock, url)
        finally:
            server.should_exit = True
            await serving
            listener.close()


@dataclass(slots=True)
class Stage:
    """One client's project, and what has happened in it."""

    place: Place
    proxy: Proxy
    receiver: WebhookReceiver
    people: dict[str, SandboxPerson]
    project_id: str
    #: API keys by who holds them.
    keys: dict[str, str]
    transcript: Transcript
    kept: Variables = field(default_factory=Variables)

    async def play(self, scenario: Scenario, perform: Perform) -> None:
        """Plays all of its steps, and notes what differs from what each expects."""
        for number, step in enumerate(scenario.steps, start=1):
            try:
                entry = await self._play(scenario, number, step, perform)
            except Exception as error:  # noqa: BLE001 # a step that can't be played is a finding like others
                problem = f"{type(error).__name__}: {error}"
                entry = Entry(scenario.title, number, _does(step), {}, (), (problem,))
            self.transcript.entries.append(entry)
            if entry.problems:
                break  # what follows would fail as a consequence

    async def _play(self, scenario: Scenario, number: int, step: Step, perform: Perform) -> Entry:
        await settled(self.place.service)
        if "call" not in step and "opens_webhook" not in step:
            await self._beside(step)
            return Entry(scenario.title, number, _does(step), {}, ())
        self.proxy.drain()
        self.proxy.faults.extend(Fault(**each) for each in step.get("faults", ()))
        outcome = await self._performed(step, perform)
        problems = [*self._problems(step, outcome), *self._unused_faults()]
        requests = tuple(_written(self.proxy.drain()))
        if "requests" in step:
            problems += lacks(step["requests"], list(requests), "requests")
        if not problems:
            self._keep(step, outcome)
        return Entry(scenario.title, number, _does(step), outcome, requests, tuple(problems))

    async def _performed(self, step: Step, perform: Perform) -> dict[str, Any]:
        call = {name: self.kept.fill(step[name]) for name in _OF_CALL if name in step}
        call["api_key"] = self.keys[step.get("as", "site")]
        if "opens_webhook" in step:
            call["webhook"] = await self._webhook(step)
        performing = asyncio.create_task(perform(call))
        if "meanwhile" in step:
            await until(self._has_asked)
            await self._beside(step["meanwhile"])
        return await performing

    async def _has_asked(self) -> bool:
        return bool(self.proxy.requests)

    async def _webhook(self, step: Step) -> dict[str, Any]:
        """The latest request for that event, as the receiver's framework would hand it on."""
        wanted = step["opens_webhook"]
        found = await until(lambda: self._received(wanted))
        body = found.body + b" " if step.get("tampered") else found.body
        return {
            "headers": dict(found.headers),
            "body": body.decode(),
            "secrets": self.kept.fill(step["secrets"]),
        }

    async def _received(self, event: str) -> Any:
        found = [
            each
            for each in self.receiver.requests
            if {name.lower(): value for name, value in each.headers.items()}["x-service-event"]
            == event
        ]
        return found[-1] if found else None

    async def _beside(self, step: Step) -> None:
        """What happens without the client: people act, time passes, the operator switches something."""
        match self.kept.fill(dict(step)):
            case {"advance_s": seconds}:
                self.place.clock.advance(seconds)
            case {"project": state}:
                projects = self.place.service.projects
                await projects.set_active(self.project_id, state == "enabled")
            case {"person": name, "opens": link}:
                await self.people[name].open(link)
            case {"person": name, "presses": button}:
                await self.people[name].press(button, timeout_s=PATIENCE_S)
            case {"person": name, "writes": text}:
                await self.people[name].say(text)
            case {"person": name, "blocks": channel}:
                await self.people[name].block(channel)
            case {"person": name, "sees": text, **rest}:
                message = await self.people[name].wait_for(text=text, timeout_s=PATIENCE_S)
                keep: dict[str, str] = rest.get("keep", {})
                for variable, pattern in keep.items():
                    found = re.search(pattern, message.text)
                    assert found, f"{pattern} is not in {message.text!r}"
                    self.kept[variable] = found[0]
            case unknown:
                raise ValueError(f"a step that nobody plays: {unknown}")

    def _problems(self, step: Step, outcome: dict[str, Any]) -> list[str]:
        expected = {
            kind: self.kept.fill(step[kind])
            for kind in ("answer", "items", "failed")
            if kind in step
        }
        if "error" in step:
            expected["error"] = {"code": step["error"]}
        if not expected:
            return [] if "answer" in outcome or "items" in outcome else [f"it {outcome}"]
        if set(expected) != set(outcome):
            return [f"it is {outcome}, not {expected}"]
        return lacks(expected, outcome)

    def _unused_faults(self) -> list[str]:
        left = [f"no request met the fault {each.kind}" for each in self.proxy.faults]
        self.proxy.faults.clear()
        return left

    def _keep(self, step: Step, outcome: dict[str, Any]) -> None:
        found = outcome.get("answer", outcome.get("items"))
        for name, path in step.get("keep", {}).items():
            self.kept[name] = at(found, path)


@asynccontextmanager
async def new_stage(place: Place, client: str, docs_url: str) -> AsyncIterator[Stage]:
    """A project for a client, with subscribers Ann, Boris and Vera."""
    service = place.service
    project = await service.projects.create("Shop")
    poor = await service.projects.create("Poor shop")
    async with service.db.transaction() as tx:
        accounts = service.get(Accounts)
        account = await accounts.create(tx, email=f"{client}@shop.example", name="Ann")
        await accounts.give_project(tx, poor.project_id, account.account_id)
    keys = {"stranger": "msk_" + "0" * 43}
    for holder, project_id, scopes in (
        ("site", project.project_id, ("*",)),
        ("reader", project.project_id, ("messages:read",)),
        ("poor", poor.project_id, ("*",)),
    ):
        _, keys[holder] = await service.projects.create_key(project_id, holder, scopes)
    proxy = Proxy(place.url, docs_url)
    sandbox = Sandbox.in_process(service)
    await proxy.start()
    try:
        async with WebhookReceiver() as receiver:
            people = {
                "ann": await sandbox.person("Ann", username="ann"),
                "boris": await sandbox.person("Boris", lang="ru"),
                "vera": await sandbox.person("Vera"),
            }
            stage = Stage(
                place, proxy, receiver, people, project.project_id, keys, Transcript(client)
            )
            stage.kept["none"] = None
            # Slugs of sign-in links are unique in a service.
            stage.kept["slug"] = f"shop-{secrets.token_hex(4)}"
            stage.kept["hook"] = receiver.url
            stage.kept["huge"] = "x" * 1_100_000
            yield stage
    finally:
        await proxy.stop()


def _does(step: Step) -> str:
    """A step in a line."""
    if "call" in step:
        return str(step["call"])
    return " ".join(f"{name} {value}" for name, value in step.items() if name != "secrets")


def _written(requests: list[Forwarded]) -> list[str]:
    """A line for each: what became of it, whose key it has, and whether it came too early."""
    lines = []
    for request in requests:
        path = re.sub(r"_[0-9A-Za-z]{16,}", "", request.path)
        line = f"{request.method} {path} {request.fate}"
        if request.key and request is not requests[0]:
            line += " same key" if request.key == requests[0].key else " other key"
        if request.waited_s is not None:
            line += " waited" if request.waited_s >= 1 else " too early"
        lines.append(line)
    return lines
