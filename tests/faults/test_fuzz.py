"""Whatever is sent to an endpoint, the answer is a success as described, or the envelope.

Bodies, queries, paths and methods are made from our own OpenAPI: 600 requests for each database, the
same in each run, and 10,000 by chance in the long form, where `--hypothesis-seed` makes them again.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from msgsvc_core.api.envelope import MAX_MESSAGE
from msgsvc_core.config.settings import load_settings
from msgsvc_core.http.openapi import openapi
from msgsvc_core.service import Service
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from msgsvc_devkit.services import SECRET_KEY
from tests.faults.conftest import Figure, Rounds
from tests.faults.fuzzing import Fuzzed, Operation, Reply, Shapes, call, operations

pytestmark = pytest.mark.faults

#: What is fuzzed: the operations of these.
PLUGINS = ("sandbox", "auth", "otp", "webhooks")


@dataclass(frozen=True)
class Described:
    """What our OpenAPI describes, and the statuses of the error codes."""

    document: dict[str, Any]
    operations: list[Operation]
    codes: dict[str, int]


@cache
def described() -> Described:
    service = Service(load_settings(env={}, secret_keys=[SECRET_KEY], plugins=PLUGINS))
    document = openapi(service.endpoints, "http://127.0.0.1")
    codes = {error.code: error.status for error in service.errors}
    return Described(document, operations(document), codes)


class Fuzz:
    """The service under test, what it has given out, and what it answered."""

    def __init__(self, service: Service, tenant: Tenant) -> None:
        self._service = service
        self._key = (b"authorization", f"Bearer {tenant.key}".encode())
        self.known: defaultdict[str, list[str]] = defaultdict(list)
        self.known["channel"] = ["messenger_a", "messenger_b"]
        self.dialect = service.db.dialect
        self.statuses: Counter[int] = Counter()
        #: What was wrong with an answer.
        self.wrong: list[str] = []
        self.reached: set[tuple[str, str]] = set()

    async def send(self, request: Fuzzed) -> None:
        path, body = request.path(self.known), request.body(self.known)
        headers = (self._key, *request.headers)
        reply = await call(self._service.app, request.method, path, request.query, headers, body)
        self.statuses[reply.status] += 1
        what = f"{request.method} {path[:200]}?{request.query[:200]!r} {body[:500]!r}"
        try:
            check(request, reply, what)
        except AssertionError as error:
            self.wrong.append(str(error))
            return
        if reply.status >= 300 or request.method != request.operation.method:
            return
        self.reached.add((request.method, request.operation.path))
        if reply.body and not _is_elsewhere(reply):
            self._learn(reply)

    async def begin(self) -> None:
        """One of each thing that paths can name, made by requests that are as they should be."""
        await self._post("/sandbox/api/people", {"name": "Ann"})
        static = {"slug": "shop", "name": "Shop", "callback_url": "https://a.example/"}
        await self._post("/v1/auth/links", static)
        await self._post("/v1/auth/session", {"state": "s"})
        await self._post("/v1/webhooks", {"url": "https://127.0.0.1/hook"})
        made = await self._post("/v1/subscribers/links", {})
        link = made["links"]["messenger_a"]
        await self._post(f"/sandbox/api/people/{self.known['person_id'][0]}/open", {"link": link})
        listed = await call(self._service.app, "GET", "/v1/subscribers", b"", (self._key,), b"")
        self._learn(listed)
        subscriber = {"subscriber_id": self.known["subscriber_id"][0], "text": "Hello"}
        await self._post("/v1/send", subscriber)
        await self._post("/v1/otp/send", {"subscriber_id": subscriber["subscriber_id"]})

    async def _post(self, path: str, body: dict[str, str]) -> dict[str, Any]:
        headers = (self._key, (b"content-type", b"application/json"))
        raw = json.dumps(body).encode()
        reply = await call(self._service.app, "POST", path, b"", headers, raw)
        assert reply.status < 300, reply
        self._learn(reply)
        made: dict[str, Any] = json.loads(reply.body)
        return made

    def _learn(self, reply: Reply) -> None:
        """Remembers ids, so that later requests name what there is."""
        for name, value in _texts(json.loads(reply.body)):
            known = self.known[name]
            if value not in known and len(known) < 50:
                known.append(value)


def _texts(value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            if isinstance(inner, str) and name.endswith(("_id", "slug", "code", "ref")):
                yield name, inner
            else:
                yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


def check(request: Fuzzed, reply: Reply, what: str) -> None:
    """An answer that is described, or the envelope; never a 5xx."""
    assert 200 <= reply.status < 500, (what, reply)
    assert reply.headers["x-request-id"].startswith("req_"), what
    if reply.status < 400:
        if reply.status == 204 or request.method in {"HEAD", "OPTIONS"}:
            return
        if request.method == request.operation.method and not _is_elsewhere(reply):
            assert reply.status in request.operation.statuses, (what, reply)
            json.loads(reply.body)
        return
    if request.method == "HEAD" or _is_page(reply):
        return
    fields = json.loads(reply.body)
    assert set(fields) == {"error", "code", "retryable", "docs_url"}, what
    assert described().codes[fields["code"]] == reply.status, (what, reply)
    assert fields["error"], what
    assert len(fields["error"]) <= MAX_MESSAGE, (what, reply)


def _is_elsewhere(reply: Reply) -> bool:
    """A slash or nothing in a path's parameter leads to another path: a page, for one."""
    return "json" not in reply.headers.get("content-type", "")


def _is_page(reply: Reply) -> bool:
    """Pages for people stand beside operations, e.g. GET beside POST /login/{slug}/app, and say what
    went wrong in words."""
    return reply.headers.get("content-type", "").startswith("text/html")


@pytest.fixture
async def fuzz(make_service: ServiceFactory, make_tenant: Any) -> Fuzz:
    many = 1_000_000
    service = await make_service(
        plugins=PLUGINS,
        channels={"messenger_a": {"plugin": "sandbox"}, "messenger_b": {"plugin": "recording"}},
        jobs={"runner": "none"},
        limits={"requests_per_minute": many},
        auth={"sessions_per_hour": many},
        otp={"sends_per_hour": many, "resend_after_s": 0},
        webhooks={"endpoints_per_project": many, "allow_cidrs": ("127.0.0.0/8",)},
    )
    made = Fuzz(service, await make_tenant(service))
    await made.begin()
    return made


def requests(count: int, *, by_chance: bool) -> list[Fuzzed]:
    """Made first and sent then: what one leaves behind is part of the next one's trouble, so a run
    can't be made smaller by leaving some out, which hypothesis would try."""
    found: list[Fuzzed] = []

    @settings(
        max_examples=count,
        derandomize=not by_chance,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(Shapes(described().document).requests(described().operations))
    def keep(request: Fuzzed) -> None:
        found.append(request)

    keep()
    return found


async def test_no_request_is_answered_with_anything_but_success_or_the_envelope(
    fuzz: Fuzz, rounds: Rounds, figure: Figure
) -> None:
    count = rounds(short=10, long=100) * len(described().operations)
    # The short form sends the same each time: a change is judged by it, not by luck.
    for request in requests(count, by_chance=rounds(short=0, long=1) == 1):
        await fuzz.send(request)

    sent, failed = fuzz.statuses.total(), sum(fuzz.statuses[status] for status in range(500, 600))
    figure(
        f"fuzzed bodies over every endpoint, {fuzz.dialect}",
        f"{sent} sent, {failed} answered with a 5xx, successes at {len(fuzz.reached)} of "
        f"{len(described().operations)} operations",
        sent=sent,
        failed=failed,
    )
    assert fuzz.wrong == []
    assert sent >= count * 0.9
    # Else the requests were not much like ours, and proved little.
    assert len(fuzz.reached) >= len(described().operations) / 5
