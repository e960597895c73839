"""A load balancer over processes of two releases, and the traffic that goes through it."""

import asyncio
import itertools
import json
import random
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from msgsvc_devkit import until
from msgsvc_devkit.deadlines import patient
from tests.process import Server

#: Seconds after which a request without an answer has failed.
HUNG_S = patient(60.0)

#: Seconds between two requests of one kind of client.
PAUSE_S = 0.02


@dataclass(slots=True, eq=False)
class Upstream:
    """A process in the rotation; `in_flight` requests wait for its answer."""

    server: Server
    in_flight: int = 0


@dataclass(slots=True)
class Balancer:
    """Sends requests to the processes in the rotation in turn, as a proxy before them does.

    A process that refuses the connection is passed over, as no request has reached it. Any other answer than
    2xx, and none, is a failure: it is noted, and the request is not repeated.
    """

    session: aiohttp.ClientSession
    upstreams: list[Upstream] = field(default_factory=list)
    answered: int = 0
    failures: list[str] = field(default_factory=list)
    slowest_s: float = 0.0
    _turn: int = 0

    async def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """The body of the answer; None if the request has failed."""
        began_s = time.monotonic()
        for upstream in self._in_turn():
            upstream.in_flight += 1
            try:
                answer = await self._call(upstream, method, path, body, headers)
            except aiohttp.ClientConnectorError:
                continue
            except (aiohttp.ClientError, TimeoutError) as error:
                self.failures.append(f"{method} {path}: {error!r}")
                return None
            finally:
                upstream.in_flight -= 1
            self.slowest_s = max(self.slowest_s, time.monotonic() - began_s)
            return answer
        self.failures.append(f"{method} {path}: no process took it")
        return None

    async def _call(
        self, upstream: Upstream, method: str, path: str, body: Any, headers: dict[str, str]
    ) -> Any:
        url = upstream.server.url + path
        async with self.session.request(method, url, json=body, headers=headers) as answer:
            text = await answer.text()
            if answer.status // 100 != 2:
                self.failures.append(f"{method} {path}: {answer.status} {text}")
                return None
            self.answered += 1
            return json.loads(text) if text else {}

    def _in_turn(self) -> list[Upstream]:
        self._turn += 1
        first = self._turn % max(1, len(self.upstreams))
        return [*self.upstreams[first:], *self.upstreams[:first]]

    async def add(self, server: Server) -> None:
        """Takes a process into the rotation once it says that it is ready."""

        async def ready() -> bool:
            async with self.session.get(f"{server.url}/readyz") as answer:
                return answer.status == 200

        await until(ready)
        self.upstreams.append(Upstream(server))

    async def remove(self, server: Server) -> None:
        """Sends it no more requests; returns when it has answered those that it has."""
        [upstream] = [each for each in self.upstreams if each.server is server]
        self.upstreams.remove(upstream)

        async def idle() -> bool:
            return upstream.in_flight == 0

        await until(idle)


@asynccontextmanager
async def balancing(key: str) -> AsyncIterator[Balancer]:
    """Each request has a connection of its own: one that is kept may be closed just as it is used."""
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(force_close=True),
        headers={"Authorization": f"Bearer {key}"},
        timeout=aiohttp.ClientTimeout(total=HUNG_S),
    ) as session:
        yield Balancer(session)


@dataclass(slots=True)
class Traffic:
    """Clients of a site and people at the sandbox, who go on until they are told to stop.

    `sent` are texts by message id, `signed_in` the subscribers of finished sign-ins, `wrong` are answers
    that were not what they had to be.
    """

    balancer: Balancer
    subscribers: list[str]
    seed: int = 0
    sent: dict[str, str] = field(default_factory=dict)
    signed_in: list[str] = field(default_factory=list)
    reads: int = 0
    wrong: list[str] = field(default_factory=list)
    _goes_on: bool = True

    @asynccontextmanager
    async def going(self) -> AsyncIterator[None]:
        """While the block lasts; then each client ends what it has begun."""
        clients: list[Callable[[], Coroutine[Any, Any, None]]] = [
            self._send,
            self._send,
            self._read_message,
            self._read_subscriber,
            self._read_lists,
            self._sign_in,
        ]
        tasks = [asyncio.create_task(self._repeat(client)) for client in clients]
        try:
            yield
        finally:
            self._goes_on = False
            await asyncio.gather(*tasks)

    async def _repeat(self, client: Callable[[], Coroutine[Any, Any, None]]) -> None:
        while self._goes_on:
            await client()
            await asyncio.sleep(PAUSE_S)

    async def _send(self) -> None:
        text = f"live {next(_NUMBERS)}"
        body = {"subscriber_id": random.choice(self.subscribers), "text": text}
        answer = await self.balancer.ask("POST", "/v1/send", body)
        if answer is not None:
            self.sent[answer["message_id"]] = text

    async def _read_message(self) -> None:
        if self.sent:
            message_id = random.choice(list(self.sent))
            answer = await self.balancer.ask("GET", f"/v1/messages/{message_id}")
            self._check(answer, message_id=message_id, text=self.sent[message_id])

    async def _read_subscriber(self) -> None:
        subscriber_id = random.choice(self.subscribers)
        answer = await self.balancer.ask("GET", f"/v1/subscribers/{subscriber_id}")
        self._check(answer, subscriber_id=subscriber_id, status="active", channel="messenger_a")

    async def _read_lists(self) -> None:
        for path in ("/v1/messages?limit=20", "/v1/events?limit=20", "/v1/subscribers?limit=20"):
            answer = await self.balancer.ask("GET", path)
            if answer is not None:
                self.reads += 1
                if len(answer["data"]) != 20:
                    self.wrong.append(f"{path}: {len(answer['data'])} of 20")

    async def _sign_in(self) -> None:
        """A person opens the link, says yes, and the site gets who it is."""
        ask = self.balancer.ask
        state = f"state {next(_NUMBERS)}"
        person = await ask("POST", "/sandbox/api/people", {"name": "Ann"})
        session = await ask("POST", "/v1/auth/session", {"state": state})
        if person is None or session is None:
            return
        home = f"/sandbox/api/people/{person['person_id']}"
        await ask("POST", f"{home}/open", {"link": session["links"]["town"]})

        async def question() -> Any:
            shown = await ask("GET", f"{home}/state?since=0")
            return next(
                (each for each in (shown or {}).get("messages", []) if each["buttons"]), None
            )

        asked = await until(question, timeout_s=HUNG_S)
        press = f"{home}/chats/town/messages/{asked['ref']}/press"
        await ask("POST", press, {"row": 0, "column": 0})
        path = f"/v1/auth/session/{session['session_id']}/status?wait=20"

        async def confirmed() -> Any:
            status = await ask("GET", path)
            return status if status and status["status"] == "confirmed" else None

        code = (await until(confirmed, timeout_s=HUNG_S))["code"]
        who = await ask("POST", "/v1/auth/verify", {"code": code})
        self._check(who, state=state, first_name="Ann", channel="town")
        if who is not None:
            self.signed_in.append(who["subscriber_id"])

    def _check(self, answer: Any, **expected: Any) -> None:
        if answer is not None:
            self.reads += 1
            found = {name: answer.get(name) for name in expected}
            if found != expected:
                self.wrong.append(f"{found} instead of {expected}")


_NUMBERS = itertools.count(1)


def lines_of(path: Path) -> list[dict[str, Any]]:
    """The JSON lines of a file that other processes append to."""
    text = path.read_text("utf-8") if path.exists() else ""
    return [json.loads(line) for line in text.splitlines()]
