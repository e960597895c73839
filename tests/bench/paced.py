"""A broadcast with a pace: whether it is kept, and what single messages that are sent meanwhile notice.

All by the API. The pace is what the platform saw: from the first message's arrival to the last's. A
request for a single message is timed from when it was due, quiet and during a broadcast in turn.
"""

import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from statistics import median

import httpx2

from tests.bench import fake_platform
from tests.bench.audience import add_audience
from tests.bench.report import Bound, Finding
from tests.bench.run import BenchError, Run
from tests.bench.servers import TEXT, ServiceUnderTest, Setup, started, started_service
from tests.bench.steady import at, times_ms

#: Times the p99 of a quiet service.
MOST_P99 = Bound(most=1.25)

#: Messages a minute: what the single messages are sent beside, and a pace that is high.
PACE, HIGH_PACE = 60_000, 150_000

#: The pace's part that what the platform saw may be off.
EXACT = Bound(least=0.99, most=1.01)

#: Single messages a second: twenty times what a project may ask for.
SINGLE_PER_S = 100

#: Seconds that a broadcast goes on before and after the requests beside it, and in which it must end.
AROUND_S, MOST_S = 1, 120.0


@dataclass(slots=True)
class _Seen:
    """Of all rounds of one database."""

    quiet_p50: list[float] = field(default_factory=list)
    quiet_p99: list[float] = field(default_factory=list)
    beside_p50: list[float] = field(default_factory=list)
    beside_p99: list[float] = field(default_factory=list)
    per_s: list[float] = field(default_factory=list)
    high_per_s: list[float] = field(default_factory=list)


def paced(run: Run) -> list[Finding]:
    """p99 of `POST /v1/send` during a paced broadcast beside a quiet service's, and the pace."""
    found: list[Finding] = []
    with ExitStack() as stack:
        run.tell("starting the servers")
        platform = stack.enter_context(started(run, fake_platform))
        channel = f'plugin = "courier"\nurl = "{platform.url}"'
        run.tell("paced", total=len(run.databases.kinds) * run.options.rounds * 3)
        for kind in run.databases.kinds:
            setup = Setup(kind, channel=channel, plugins=("courier", "broadcasts"))
            with started_service(run, setup) as service:
                found += _findings(kind, _measured(run, kind, service, platform.url))
    return found


def _measured(run: Run, kind: str, service: ServiceUnderTest, platform: str) -> _Seen:
    seconds = run.options.window
    seen = _Seen()
    for number in range(1, run.options.rounds + 1):
        run.tell(f"paced {kind}, round {number}: quiet")
        quiet = sorted(times_ms(service.sends, per_s=SINGLE_PER_S, seconds=seconds))
        run.advance(1)
        run.tell(f"paced {kind}, round {number}: {PACE:,} a minute")
        with _Broadcast(service, platform, PACE, seconds + 2 * AROUND_S) as broadcast:
            time.sleep(AROUND_S)
            beside = sorted(times_ms(service.sends, per_s=SINGLE_PER_S, seconds=seconds))
            seen.per_s.append(broadcast.per_s())
        run.advance(1)
        run.tell(f"paced {kind}, round {number}: {HIGH_PACE:,} a minute")
        with _Broadcast(service, platform, HIGH_PACE, seconds) as broadcast:
            seen.high_per_s.append(broadcast.per_s())
        run.advance(1)
        seen.quiet_p50.append(at(0.5, quiet))
        seen.quiet_p99.append(at(0.99, quiet))
        seen.beside_p50.append(at(0.5, beside))
        seen.beside_p99.append(at(0.99, beside))
    return seen


def _findings(kind: str, seen: _Seen) -> list[Finding]:
    sends = f"send {kind} beside a broadcast of {PACE // 60:,} a second"
    pace = f"broadcast {kind} of"
    return [
        Finding(f"{sends}: p50 ms / quiet", median(seen.beside_p50), median(seen.quiet_p50)),
        Finding(
            f"{sends}: p99 ms / quiet", median(seen.beside_p99), median(seen.quiet_p99), MOST_P99
        ),
        Finding(f"{pace} {PACE:,} a minute: per s / asked", median(seen.per_s), PACE / 60, EXACT),
        Finding(
            f"{pace} {HIGH_PACE:,} a minute: per s / asked",
            median(seen.high_per_s),
            HIGH_PACE / 60,
            EXACT,
        ),
    ]


class _Broadcast:
    """A broadcast that takes `seconds` at `per_minute`, asked for by the API."""

    def __init__(
        self, service: ServiceUnderTest, platform: str, per_minute: int, seconds: int
    ) -> None:
        self._count = per_minute * seconds // 60
        self._platform = platform
        tag = service.use(lambda opened: add_audience(opened, service.project_id, self._count))
        self._http = httpx2.Client(
            base_url=service.server.url,
            headers={"Authorization": f"Bearer {service.sends.api_key}"},
        )
        self._body = {
            "audience": {"tags_any": [tag]},
            "text": TEXT,
            "messages_per_minute": per_minute,
        }
        self._path = ""

    def __enter__(self) -> "_Broadcast":
        httpx2.get(f"{self._platform}/arrivals")
        answer = self._http.post("/v1/broadcast", json=self._body)
        if answer.status_code != 202 or answer.json()["total"] != self._count:
            raise BenchError(f"broadcast: {answer.status_code} {answer.text}")
        self._path = f"/v1/broadcast/{answer.json()['job_id']}"
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def per_s(self) -> float:
        """Messages a second that the platform saw, when the last has arrived."""
        ends_at = time.monotonic() + MOST_S
        while (found := self._http.get(self._path).json())["finished_at"] is None:
            if time.monotonic() > ends_at:
                raise BenchError(f"{found['sent']} of {self._count} are sent after {MOST_S:g} s")
            time.sleep(0.1)
        arrivals: list[float] = httpx2.get(f"{self._platform}/arrivals").json()
        if (found["sent"], len(arrivals)) != (self._count, self._count):
            raise BenchError(f"{found['sent']} sent, {len(arrivals)} arrived, of {self._count}")
        return (len(arrivals) - 1) / (max(arrivals) - min(arrivals))
