"""Traces one message and one sign-in through a service, and writes their walks to docs/walks.md.

python -m tests.walks
"""

import asyncio
import dis
import inspect
import re
import socket
import sys
import tempfile
import textwrap
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import httpx2

from msgsvc_auth import plugin as auth
from msgsvc_core.config.settings import Settings
from msgsvc_core.server import ConnectionLimits, Server
from msgsvc_core.service import Service
from msgsvc_devkit import settled, until
from msgsvc_devkit.platforms.telegram import FakeTelegram
from msgsvc_devkit.services import SECRET_KEY
from msgsvc_telegram import plugin as telegram
from msgsvc_webhooks import plugin as webhooks

PAGE = Path(__file__).parents[1] / "docs/walks.md"

#: The walks, and what each is made of.
WALKS = {"A1": ("A1",), "A2": ("A2",), "A": ("A1", "A2")}
WALKS |= {"B1": ("B1",), "B2": ("B2",), "B3": ("B3",), "B": ("B1", "B2", "B3")}

#: Files of ours, by package and path in it.
_FILE = re.compile(r".*/msgsvc_(\w+)/(.+)\.py")

#: Left out: logging, spans, clocks, JSON, the decorator of values, the text of SQL, the names of its errors.
LEFT_OUT = {
    "db/errors",
    "db/rows",
    "db/sql",
    "db/tx",
    "kernel/clock",
    "kernel/tracing",
    "kernel/json",
    "kernel/values",
    "telemetry/logs",
}

#: Statements of a transaction: what executes them is left out too.
STATEMENTS = "msgsvc_core/db/tx.py"

#: Functions that are no step of their own.
_PARTS = {"<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>", "<module>"}

#: The tasks that a walk is in; others are their parts, or work for somebody else.
DRAIN, BATCH, REQUEST = "LaneRunner._drain", "Lane._run_batch", "RequestResponseCycle.run_asgi"

#: Seconds until a bot's pace and batches of others have come to rest.
REST_S = 1.5

CallKey = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function in `file`, by one of ours in the file `caller`, or by none.

    `task` is the task for which it is made, of those named above; None where there is none.
    """

    caller: str | None
    file: str
    function: str
    task: asyncio.Task[Any] | None

    @property
    def work(self) -> str:
        return name_of(self.task)


class Tracer:
    """Records the calls of our functions, while it is `on`, in all threads that began after it.

    What a thread or a callback of the loop calls is taken to be for the task that was at work before.
    """

    def __init__(self) -> None:
        self.on = False
        self.calls: list[Call] = []
        self._known: dict[CodeType, tuple[str | None, int]] = {}
        self._parents: dict[asyncio.Task[Any], asyncio.Task[Any] | None] = {}
        self._last: asyncio.Task[Any] | None = None

    def new_task(
        self, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any], **options: Any
    ) -> asyncio.Task[Any]:
        """The task factory of the loop."""
        task = asyncio.Task(work, loop=loop, **options)
        self._parents[task] = asyncio.current_task(loop) or self._last
        return task

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        if not self.on or event != "call":
            return
        file, start = self._place(frame.f_code)
        # A coroutine or generator that goes on is called as well.
        if file is None or frame.f_lasti > start >= 0:
            return
        caller = frame.f_back
        while caller is not None and self._place(caller.f_code)[0] is None:
            if caller.f_code.co_filename.endswith(STATEMENTS):
                return
            caller = caller.f_back
        by = None if caller is None else self._place(caller.f_code)[0]
        self.calls.append(Call(by, file, frame.f_code.co_qualname, self._task()))

    def take(self) -> list[Call]:
        """What was recorded since it was switched on."""
        calls, self.calls, self.on, self._last = self.calls, [], False, None
        first = next(call.task for call in calls if call.task is not None)
        # A connection is read before the request has its task.
        return [call if call.task is not None else replace(call, task=first) for call in calls]

    def _task(self) -> asyncio.Task[Any] | None:
        try:
            task = asyncio.current_task() or self._last
        except RuntimeError:
            # A thread of the database.
            return self._last
        while task in self._parents and name_of(task) not in {DRAIN, BATCH, REQUEST}:
            task = self._parents[task]
        if name_of(task) in {DRAIN, BATCH, REQUEST}:
            self._last = task
        return task

    def _place(self, code: CodeType) -> tuple[str | None, int]:
        """The file of a function, None if it is left out, and the instruction where its calls begin."""
        if code not in self._known:
            self._known[code] = _file_of(code), _start_of(code)
        return self._known[code]


def name_of(task: asyncio.Task[Any] | None) -> str:
    """The name of the coroutine that a task runs."""
    return "" if task is None else getattr(task.get_coro(), "__qualname__", "")


def _file_of(code: CodeType) -> str | None:
    match = _FILE.fullmatch(code.co_filename)
    if match is None or match[1] == "devkit" or code.co_name in _PARTS:
        return None
    name = match[2] if match[1] == "core" else f"{match[1]}/{match[2]}"
    return None if name in LEFT_OUT else name


def _start_of(code: CodeType) -> int:
    if not code.co_flags & (
        inspect.CO_COROUTINE | inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR
    ):
        return -1
    return next(
        each.offset
        for each in dis.get_instructions(code)
        if each.opname == "RESUME" and each.arg == 0
    )


# ---- counts -------------------------------------------------------------------------------------


def forward(calls: Iterable[Call]) -> list[str]:
    """The files of functions in the order of their first calls."""
    functions = {(call.file, call.function): call.file for call in calls}
    return _steps(functions.values())


def with_returns(calls: Iterable[Call]) -> list[str]:
    """The files of all calls, and before each call the file from which it is made."""
    return _steps(file for call in calls for file in (call.caller, call.file) if file is not None)


def changes_of_room(steps: Sequence[str]) -> int:
    rooms = [room_of(step) for step in steps]
    return sum(before != after for before, after in pairwise(rooms))


def room_of(step: str) -> str:
    return step.partition("/")[0]


def _steps(files: Iterable[str]) -> list[str]:
    return [file for file, _ in groupby(files)]


# ---- the walks ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stage:
    """A service with a bot on Telegram, which calls it, and a site that uses it."""

    service: Service
    telegram: FakeTelegram
    site: httpx2.AsyncClient

    async def post(self, path: str, **body: object) -> dict[str, Any]:
        answer = await self.site.post(path, json=body)
        assert answer.is_success, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def rest(self) -> None:
        """Until nothing is at work."""
        await settled(self.service)
        await asyncio.sleep(REST_S)


@asynccontextmanager
async def staged(folder: str) -> AsyncIterator[Stage]:
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    async with FakeTelegram() as platform:
        bot = {"plugin": "telegram", "receiving": "webhook", "base_url": platform.url}
        settings = Settings.model_validate(
            {
                "secret_keys": (SECRET_KEY,),
                "plugins": (),
                "database_url": f"sqlite:///{folder}/walks.db",
                "base_url": url,
                "channels": {"messenger_a": {**bot, "token": platform.bot.token}},
                # Nobody else is there to be looked after meanwhile.
                "jobs": {"sweep_s": 300, "lease_s": 600},
            }
        )
        plugins = [("telegram", telegram), ("auth", auth), ("webhooks", webhooks)]
        service = Service(settings, extra_plugins=plugins)
        async with service:
            limits = ConnectionLimits(settings.server, settings.errors_url, service.metrics)
            server = Server(service.app, limits, signals=False)
            serving = asyncio.create_task(server.serve(sockets=[listener]))
            project = await service.projects.create("Shop")
            _, key = await service.projects.create_key(project.project_id, "walks", ("*",))
            async with httpx2.AsyncClient(
                base_url=url, headers={"Authorization": f"Bearer {key}"}
            ) as site:
                yield Stage(service, platform, site)
            server.should_exit = True
            await serving


async def trace(tracer: Tracer, stage: Stage) -> dict[str, list[Call]]:
    """The calls of the five parts."""

    async def ready() -> bool:
        is_known = stage.service.channels["messenger_a"].profile is not None
        return is_known and bool(stage.telegram.calls_of("setWebhook"))

    await until(ready)
    message = await _send(tracer, stage)
    press, code = await _press(tracer, stage)
    tracer.on = True
    await stage.post("/v1/auth/verify", code=code)
    verified = [call for call in tracer.take() if call.work == REQUEST]
    return {**_parts_of_message(message), **_parts_of_press(press), "B3": verified}


async def _send(tracer: Tracer, stage: Stage) -> list[Call]:
    """The second message to somebody: for the first one some things are made."""
    anna = stage.telegram.person("Anna", username="anna_k", lang="en")
    links = (await stage.post("/v1/subscribers/links"))["links"]
    await anna.open(links["messenger_a"])
    await stage.rest()
    events = (await stage.site.get("/v1/events")).json()["data"]
    [subscriber_id] = {event["data"]["subscriber_id"] for event in events}
    for text in ("First", "Second"):
        tracer.on = text == "Second"
        await stage.post("/v1/send", subscriber_id=subscriber_id, text=text)
        await anna.wait_for(text)
        # Without a query of ours meanwhile.
        await asyncio.sleep(REST_S)
    return tracer.take()


async def _press(tracer: Tracer, stage: Stage) -> tuple[list[Call], str]:
    """Somebody new says Yes, while their browser waits for it; and the code."""
    bob = stage.telegram.person("Bob", username="bob_k", lang="en")
    session = await stage.post("/v1/auth/session", state="xyz")
    await bob.open(session["links"]["messenger_a"])
    question = await bob.wait_for(button="Yes")
    await stage.rest()
    path = f"/v1/auth/session/{session['session_id']}/status?wait=25"
    waiting = asyncio.create_task(stage.site.get(path))
    await asyncio.sleep(REST_S)
    tracer.on = True
    await bob.press("Yes", question)
    status = (await waiting).json()
    await bob.wait_until(lambda: question.edits)
    await asyncio.sleep(REST_S)
    return tracer.take(), status["code"]


def _parts_of_message(calls: Sequence[Call]) -> dict[str, list[Call]]:
    """The request until its answer, and the lane's work until the outcome is recorded."""
    claims = [at for at, call in enumerate(calls) if call.function == "Lane._claim_and_start"]
    # The next look finds nothing.
    lane = [call for call in calls[: claims[1]] if call.work == DRAIN]
    lane += [call for call in calls if call.work == BATCH]
    request = [call for call in calls if call.work == REQUEST]
    # The answer's last bytes go out by a callback of the loop, whatever is at work.
    return {"A1": request, "A2": [call for call in lane if room_of(call.file) != "server"]}


def _parts_of_press(calls: Sequence[Call]) -> dict[str, list[Call]]:
    """The press until its commit, and the status that it wakes. What the bot says then is no part."""
    request = [call for call in calls if call.work == REQUEST]
    polls = {call.task for call in request if call.function == "SignIn.code_of"}
    return {
        "B1": [call for call in request if call.task not in polls],
        "B2": [call for call in request if call.task in polls],
    }


# ---- the page -----------------------------------------------------------------------------------


def written(page: str, parts: dict[str, list[Call]]) -> str:
    """The page with its lists and counts made new."""
    for name, calls in parts.items():
        steps = " > ".join(forward(calls))
        block = "\n".join(textwrap.wrap(steps, 120, break_long_words=False))
        page = re.sub(rf"(?s)(```walk {name}\n).*?(?=\n```)", lambda m, b=block: m[1] + b, page)
    for name, names in WALKS.items():
        page = re.sub(rf"(?m)^\| {name} \|.*$", row(name, [parts[each] for each in names]), page)
    return page


def row(name: str, parts: Sequence[Sequence[Call]]) -> str:
    steps = _joined(parts, forward)
    rooms = {room_of(step) for step in steps}
    counts = [len(steps), len(set(steps)), len(rooms), changes_of_room(steps)]
    cells = [name, *counts, changes_of_room(_joined(parts, with_returns))]
    return f"| {' | '.join(map(str, cells))} |"


def _joined(
    parts: Sequence[Sequence[Call]], count: Callable[[Iterable[Call]], list[str]]
) -> list[str]:
    return [step for part in parts for step in count(part)]


async def main() -> None:
    tracer = Tracer()
    asyncio.get_running_loop().set_task_factory(tracer.new_task)
    threading.setprofile(tracer)
    with tempfile.TemporaryDirectory() as folder:
        async with staged(folder) as stage:
            sys.setprofile(tracer)
            try:
                parts = await trace(tracer, stage)
            finally:
                sys.setprofile(None)
    PAGE.write_text(written(PAGE.read_text("utf-8"), parts), "utf-8")


if __name__ == "__main__":
    asyncio.run(main())
