"""Whatever is sent to an endpoint, the answer is a success as described, or the envelope.

Bodies, queries, paths and methods are made from our own OpenAPI, of the plugins that are loaded by default.
First each operation is asked as the document shows it, about what there is. Then come some requests for each:
the same in each run, and many by chance in the long form, where `--hypothesis-seed` makes them again.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from msgsvc_core.api.envelope import MAX_MESSAGE
from msgsvc_core.config.settings import load_settings
from msgsvc_core.http.openapi import openapi
from msgsvc_core.service import Service
from msgsvc_devkit.fixtures import ServiceFactory
from msgsvc_devkit.services import SECRET_KEY
from tests.faults.conftest import Figure, Rounds
from tests.faults.fuzzing import Fuzzed, Operation, Reply, Shapes, call, operations
from tests.hostile.place import MANY, Place, furnish
from tests.paths import by_kind, kinds_in

pytestmark = pytest.mark.faults

#: Operations that no request of these tests need succeed at, by why that is. Any other one must.
UNREACHED: dict[str, tuple[str, ...]] = {
    "something signed, or a code that only a person has": (
        "POST /login/{slug}/app",
        "POST /v1/auth/verify",
        "POST /v1/otp/result",
        "POST /v1/otp/verify",
        "POST /v1/subscribers/mini-app",
    ),
    "a messenger that is not loaded by default": (
        "POST /v1/auth/links",
        "POST /v1/channel-requests",
        "POST /v1/channels",
        "POST /v1/subscribers",
        "PATCH /v1/channels/{key}",
        "PATCH /v1/auth/links/{key}",
    ),
    "a state in which what is there is not": (
        "DELETE /v1/oidc/clients/{client_id}/secrets/{secret_id}",
        "POST /v1/broadcast/{job_id}/resend-unknown",
        "POST /v1/broadcast/{job_id}/winner",
        "POST /v1/drips/{drip_id}/enroll",
        "POST /v1/people/imports/{import_id}/cancel",
        "POST /v1/subscribers/bulk-actions/{bulk_action_id}/confirm",
        "POST /v1/subscribers/{subscriber_id}/subscribe",
        "POST /v1/tickets/bulk-actions/{bulk_action_id}/cancel",
        "POST /v1/webhooks/{webhook_id}/replay",
    ),
    "a second thing of a kind, or a name that is free": (
        "PATCH /v1/members/{member_id}",
        "POST /v1/drips",
        "POST /v1/people/consent",
        "POST /v1/people/merge",
        "POST /v1/routes",
        "POST /v1/tags",
        "POST /v1/tickets/{ticket_id}/merge",
        "PATCH /v1/tags/{key}",
    ),
    "a picture": ("POST /v1/project/branding/logo",),
    "a chat of the sandbox with files, buttons and a past": (
        "GET /sandbox/api/people/{person_id}/chats/{channel}/messages",
        "GET /sandbox/api/people/{person_id}/files/{file_id}",
        "POST /sandbox/api/people/{person_id}/chats/{channel}/messages/{ref}/press",
        "POST /sandbox/api/people/{person_id}/open",
    ),
}


@dataclass(frozen=True)
class Described:
    """What our OpenAPI describes, and the statuses of the error codes."""

    document: dict[str, Any]
    operations: list[Operation]
    codes: dict[str, int]


@cache
def described() -> Described:
    # The plugins are those of an installation that names none.
    service = Service(load_settings(env={}, secret_keys=[SECRET_KEY]))
    document = openapi(service.endpoints, "http://127.0.0.1")
    codes = {error.code: error.status for error in service.errors}
    return Described(document, operations(document), codes)


class Fuzz:
    """The service under test, what it has given out, and what it answered."""

    def __init__(self, place: Place) -> None:
        self._service = place.service
        self._key = (b"authorization", f"Bearer {place.tenant.key}".encode())
        self.known: defaultdict[str, list[str]] = defaultdict(list)
        self.known |= {name: [value] for name, value in place.ids.items()}
        self.known["channel"] = ["sandbox_a", "messenger_a", "messenger_b"]
        self.dialect = place.service.db.dialect
        self.statuses: Counter[int] = Counter()
        #: What was wrong with an answer.
        self.wrong: list[str] = []
        #: How often each operation was asked, and those that answered with a success.
        self.asked: Counter[str] = Counter()
        self.reached: set[str] = set()

    async def send(self, request: Fuzzed) -> None:
        path, body = request.path(self.known), request.body(self.known)
        headers = (self._key, *request.headers)
        reply = await call(self._service.app, request.method, path, request.query, headers, body)
        self.statuses[reply.status] += 1
        self.asked[str(request.operation)] += 1
        what = f"{request.method} {path[:200]}?{request.query[:200]!r} {body[:500]!r}"
        try:
            check(request, reply, what)
        except AssertionError as error:
            self.wrong.append(str(error))
            return
        if reply.status >= 300 or request.method != request.operation.method:
            return
        self.reached.add(str(request.operation))
        if reply.body and not _is_elsewhere(reply):
            self._learn(reply)

    async def begin(self) -> None:
        """A person of the sandbox, who has opened a link and written."""
        await self._post("/sandbox/api/people", {"name": "Ann"})
        # What is there first is what the operations are asked about.
        person = self.known["person_id"][0]
        link = (await self._post("/v1/subscribers/links", {}))["links"]["sandbox_a"]
        await self._post(f"/sandbox/api/people/{person}/open", {"link": link})
        chat = f"/sandbox/api/people/{person}/chats/sandbox_a"
        await self._post(f"{chat}/messages", {"text": "Hello"})

    async def _post(self, path: str, body: dict[str, str]) -> dict[str, Any]:
        headers = (self._key, (b"content-type", b"application/json"))
        reply = await call(self._service.app, "POST", path, b"", headers, json.dumps(body).encode())
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
    place = await furnish(
        make_service,
        make_tenant,
        auth={"sessions_per_hour": MANY},
        otp={"sends_per_hour": MANY, "resend_after_s": 0},
    )
    made = Fuzz(place)
    await made.begin()
    return made


def requests(operation: Operation, count: int, *, by_chance: bool) -> list[Fuzzed]:
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
    @given(Shapes(described().document).requests(operation))
    def keep(request: Fuzzed) -> None:
        found.append(request)

    keep()
    return found


def as_described(operation: Operation, *, whole: bool = True) -> Fuzzed:
    """The request that the document shows, about what there is; or only what its body must have."""
    headers: tuple[tuple[bytes, bytes], ...] = ((b"content-type", b"application/json"),)
    if operation.takes_file:
        headers = ((b"content-type", b"multipart/form-data; boundary=b"),)
    needed = [p["name"] for p in operation.parameters if p["in"] == "query"]

    def path(known: Any) -> str:
        text = by_kind(operation.path)
        for name in kinds_in(operation.path):
            text = text.replace(f"{{{name}}}", next(iter(known.get(name, ())), "nothing"))
        return text

    def body(known: Any) -> bytes:
        if operation.takes_file:
            head = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\n'
            return head + b"address\nann@example.com\n\r\n--b--\r\n"
        if operation.body is None:
            return b""
        example = operation.example
        if not whole:
            example = {name: example[name] for name in required_of(operation) if name in example}
        return json.dumps(_about(example, known)).encode()

    # Those who are looked for are named in the query.
    query = b"external_id=ann-customer" if "external_id" in needed and not whole else b""
    return Fuzzed(operation, operation.method, path, query, headers, body)


def required_of(operation: Operation) -> list[str]:
    """The fields that a body must have."""
    schema = operation.body or {}
    while "$ref" in schema:
        schema = described().document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return list(schema.get("required", ()))


def _about(value: Any, known: Any, name: str = "", place: int = 0) -> Any:
    """The body with what there is in place of its ids. Names of what is made stay its own."""
    if isinstance(value, dict):
        return {key: _about(inner, known, key) for key, inner in value.items()}
    if isinstance(value, list):
        each = name.removesuffix("s")
        return [_about(inner, known, each, at) for at, inner in enumerate(value)]
    if not isinstance(value, str) or not name.endswith(("_id", "channel")):
        return value
    there = known.get(name, ())
    return there[place] if place < len(there) else value


def order_of(operation: Operation) -> tuple[int, int]:
    """What is deleted can't be asked for any more, and not what belongs to it."""
    if operation.method == "DELETE":
        return 2, -operation.path.count("/")
    return int(operation.path.endswith(("/cancel", "/merge", "/split"))), 0


async def test_every_operation_answers_whatever_is_sent_with_a_success_or_the_envelope(
    fuzz: Fuzz, rounds: Rounds, figure: Figure
) -> None:
    count = rounds(short=8, long=100)
    found = sorted(described().operations, key=order_of)
    # The short form sends the same each time: a change is judged by it, not by luck.
    make = partial(requests, count=count, by_chance=rounds(short=0, long=1) == 1)
    for operation in found:
        await fuzz.send(as_described(operation, whole=False))
        await fuzz.send(as_described(operation))
    for operation in found:
        for request in make(operation):
            await fuzz.send(request)

    sent, failed = fuzz.statuses.total(), sum(fuzz.statuses[status] for status in range(500, 600))
    names = {str(operation) for operation in found}
    figure(
        f"fuzzed bodies over every endpoint, {fuzz.dialect}",
        f"{sent} sent to {len(fuzz.asked)} of {len(names)} operations, {failed} answered with a 5xx,"
        f" successes at {len(fuzz.reached)}",
        sent=sent,
        failed=failed,
        reached=len(fuzz.reached),
    )
    assert fuzz.wrong == []
    assert {name for name in names if fuzz.asked[name] < count / 2} == set()
    # Else the requests were not much like ours, and proved little.
    excused = {name for listed in UNREACHED.values() for name in listed}
    assert excused <= names
    assert names - fuzz.reached <= excused
