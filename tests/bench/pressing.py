"""From pressing Yes to the code in the browser that waits, beyond what the messenger's call takes.

The messenger's call is a POST to our hook; the browser, or the site's server, holds a long poll. What is
measured is by how much the poll's answer comes later than the answer to the call, or nothing where it
comes first: the person's phone has its answer then, and the site its code.
"""

import asyncio
import itertools
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import aiohttp

from msgsvc_auth.models import MAX_WAIT_S, CreateSessionBody
from msgsvc_auth.payloads import session_payload
from msgsvc_auth.service import SignIn
from msgsvc_core.service import Service
from tests import phone
from tests.bench.report import Bound, Finding
from tests.bench.run import BenchError, Run
from tests.bench.servers import ServiceUnderTest, Setup, started_service
from tests.bench.status import SECTIONS

MOST_MS = Bound(most=100)

#: Seconds that a poll gets to be held, before Yes is pressed.
HELD_S = 0.05

#: Seconds in which the bot's questions must be there.
ASKED_S = 60.0

HOOK = "/hooks/messenger_a"

_ids = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Press:
    """One Yes: milliseconds until the messenger's call was answered, and the poll."""

    call_ms: float
    poll_ms: float

    @property
    def beyond_ms(self) -> float:
        return max(0.0, self.poll_ms - self.call_ms)


def pressing(run: Run) -> list[Finding]:
    """The poll held by the process that is called, and on PostgreSQL by another one too."""
    found: list[Finding] = []
    for kind in run.databases.kinds:
        with ExitStack() as stack:
            run.tell(f"yes, {kind}: starting the servers")
            outbox = run.new_folder() / "outbox.jsonl"
            channel = f'plugin = "phone"\noutbox = "{outbox}"'
            setup = Setup(kind, channel=channel, plugins=("phone", "auth"), sections=SECTIONS)
            service = stack.enter_context(started_service(run, setup))
            urls = {"same process": service.server.url}
            if kind == "postgresql":
                other = service.deployment.start()
                stack.callback(other.kill)
                urls["another process"] = other.url
            for where, url in urls.items():
                presses = asyncio.run(pressed(run, service, outbox, url))
                found += _findings(f"yes {kind}, {where}", presses)
    return found


def _findings(name: str, presses: Sequence[Press]) -> list[Finding]:
    beyond = [press.beyond_ms for press in presses]
    call_ms = median(press.call_ms for press in presses)
    return [
        Finding(f"{name}: p99 ms behind", p99_ms(beyond), bound=MOST_MS, alone=True),
        Finding(f"{name}: ms / the call", median(p.poll_ms for p in presses), call_ms),
    ]


def p99_ms(times_ms: Sequence[float]) -> float:
    """Of a sample that may be small."""
    return quantiles(times_ms, n=100, method="inclusive")[98]


async def pressed(run: Run, service: ServiceUnderTest, outbox: Path, url: str) -> list[Press]:
    """One Yes after another, as many as `--presses` says, each with a poll at `url`."""
    number = run.options.presses
    run.tell(f"yes: asking {number} people", total=number)
    sessions = await asyncio.to_thread(service.use, lambda opened: _open(opened, service, number))
    headers = {"Authorization": f"Bearer {service.sends.api_key}"}
    async with aiohttp.ClientSession(headers=headers) as client:
        hook = service.server.url + HOOK
        chats = {f"chat-{next(_ids)}": session for session in sessions}
        for chat_id, (_, payload) in chats.items():
            await _call(client, hook, chat_id, payload=payload)
        questions = await _questions(outbox, set(chats))
        run.tell("yes: pressing")
        presses: list[Press] = []
        for chat_id, (session_id, _) in chats.items():
            status = f"{url}/v1/auth/session/{session_id}/status?wait={MAX_WAIT_S}"
            question = questions[chat_id]
            poll = asyncio.create_task(_poll(client, status))
            await asyncio.sleep(HELD_S)
            began = time.perf_counter()
            await _call(client, hook, chat_id, data=question["data"][0], ref=question["ref"])
            answered = time.perf_counter()
            presses.append(Press((answered - began) * 1000, (await poll - began) * 1000))
            run.advance(1)
    return presses


async def _open(opened: Service, service: ServiceUnderTest, number: int) -> list[tuple[str, str]]:
    """Ids and start payloads of new sessions."""
    sign_in = opened.get(SignIn)
    async with opened.db.transaction() as tx:
        made = [
            await sign_in.open(tx, service.project_id, CreateSessionBody()) for _ in range(number)
        ]
    return [(new.session.session_id, session_payload(new.token)) for new in made]


async def _call(client: aiohttp.ClientSession, hook: str, chat_id: str, **said: str) -> None:
    update = {"id": f"{next(_ids)}", "chat_id": chat_id, **said}
    async with client.post(hook, json=update) as answer:
        if answer.status != 200:
            raise BenchError(f"the hook answered {answer.status} {await answer.text()}")


async def _poll(client: aiohttp.ClientSession, url: str) -> float:
    """When the code came."""
    async with client.get(url) as answer:
        said = await answer.json()
        came = time.perf_counter()
    if "code" not in said:
        raise BenchError(f"a poll was answered with {said}")
    return came


async def _questions(outbox: Path, chats: set[str]) -> dict[str, dict[str, Any]]:
    """What each chat is asked, once all are."""
    ends_at = time.monotonic() + ASKED_S
    while time.monotonic() < ends_at:
        found = {call["chat_id"]: call for call in phone.calls(outbox)}
        if chats <= set(found):
            return found
        await asyncio.sleep(0.1)
    raise BenchError(f"not all of {len(chats)} people were asked within {ASKED_S:g} s")
