"""A service that answers by a script, and a clock that moves when somebody sleeps."""

import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from msgsvc_client import AsyncClient, AsyncResponse, Request, RetryPolicy, TransportError

API_KEY = "msk_a-key-that-nobody-may-see"


@dataclass
class FakeClock:
    """`slept` are the waits, in order."""

    now: float = 1000.0
    slept: list[float] = field(default_factory=list)

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@dataclass(frozen=True)
class Answer:
    """What the service says. `takes_s` passes before its head, and `pause_s` in the middle of the body, where
    `broken` is raised."""

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    broken: TransportError | None = None
    takes_s: float = 0.0
    pause_s: float = 0.0


def refusal(status: int, code: str, *, retry_after: str | None = None) -> Answer:
    """An error as the service answers it."""
    body = {
        "error": f"text of {code}",
        "code": code,
        "retryable": status in {425, 429, 500, 503},
        "docs_url": f"https://msgsvc.example/docs/errors#{code}",
    }
    headers = {"x-request-id": "req_1"} | ({"retry-after": retry_after} if retry_after else {})
    return Answer(status, body, headers)


Step = Answer | TransportError | Callable[[Request], Answer]


class FakeTransport:
    """Answers by the script, one step for each request; the last one for all that follow."""

    def __init__(self, clock: FakeClock, script: Iterable[Step]) -> None:
        self._clock = clock
        self._script = list(script)
        self.requests: list[Request] = []
        self.timeouts: list[float] = []
        self.closed = 0

    async def send(self, request: Request, timeout_s: float) -> AsyncResponse:
        self.requests.append(request)
        self.timeouts.append(timeout_s)
        step = self._script.pop(0) if len(self._script) > 1 else self._script[0]
        if isinstance(step, TransportError):
            raise step
        answer = step if isinstance(step, Answer) else step(request)
        self._clock.now += answer.takes_s
        return AsyncResponse(answer.status, answer.headers, self._body(answer), self._close)

    async def _body(self, answer: Answer) -> AsyncIterator[bytes]:
        content = (
            answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        )
        middle = len(content) // 2
        yield content[:middle]
        self._clock.now += answer.pause_s
        if answer.broken:
            raise answer.broken
        yield content[middle:]

    async def _close(self) -> None:
        self.closed += 1

    async def aclose(self) -> None:
        self._script = []


@dataclass
class Stage:
    """A client, and what it talks to."""

    client: AsyncClient
    transport: FakeTransport
    clock: FakeClock


def stage(*script: Step, **policy: Any) -> Stage:
    """A client against this script, whose jitter is the longest that may be drawn."""
    clock = FakeClock()
    transport = FakeTransport(clock, script)
    retries = RetryPolicy(**{"uniform": lambda _low, high: high, **policy})
    client = AsyncClient(
        API_KEY, "https://msgsvc.example", transport=transport, clock=clock, retries=retries
    )
    return Stage(client, transport, clock)
