"""The edge of the API: keys, rates, idempotency, transactions and answers."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from msgsvc_core.api.context import CallerKey, Context
from msgsvc_core.api.endpoint import Endpoint, RequestModel, ResponseModel, Router
from msgsvc_core.channels import ChannelKind
from msgsvc_core.channels.contract import ChannelHealth
from msgsvc_core.channels.health.states import ChannelStates
from msgsvc_core.channels.shelf import Shelf
from msgsvc_core.config.sections import Section
from msgsvc_core.db import Database, Tx, WriteBatch
from msgsvc_core.http.authentication import (
    Authentication,
    api_key_of,
    check_rate,
    check_scope,
    rate_headers,
)
from msgsvc_core.http.dispatcher import EndpointDispatcher
from msgsvc_core.http.documentation import NotFoundPage
from msgsvc_core.http.idempotency import Idempotency, StoredAnswer
from msgsvc_core.http.operations import CHANNEL_HEALTH_S, Readiness
from msgsvc_core.kernel.clock import to_rfc3339
from msgsvc_core.kernel.errors import (
    ApiError,
    BadRequest,
    Conflict,
    ErrorCatalogue,
    Forbidden,
    IdempotencyConflict,
    InvalidApiKey,
    NotFound,
    RateLimitProject,
    Unauthorized,
    ValidationFailed,
)
from msgsvc_core.kernel.providers import Providers
from msgsvc_core.limits.memory import MemoryLimiter
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.projects.models import ApiKey
from msgsvc_devkit import MemoryCore, memory_core
from msgsvc_devkit.channel import RecordingChannel
from msgsvc_devkit.core import PROJECT
from msgsvc_devkit.memory import MEMORY_URL
from tests.unit.parts.channels import own_channel, put_state

# ---- keys and rates -----------------------------------------------------------------------------


def authentication_of(core: MemoryCore, limit: int = 2) -> Authentication:
    return Authentication(
        projects=core.projects,
        limiter=core.limiter,
        requests_per_minute=limit,
        metrics=core.metrics.requests,
    )


@pytest.mark.parametrize(
    ("headers", "key"),
    [
        ({"authorization": "Bearer msk_1", "x-api-key": "msk_2"}, "msk_1"),
        ({"authorization": "bearer  msk_1 "}, "msk_1"),
        ({"authorization": "Basic bXNr", "x-api-key": "msk_2"}, "msk_2"),
        ({"authorization": "Bearer "}, None),
        ({"x-api-key": ""}, None),
    ],
)
def test_a_key_comes_in_either_header(headers: dict[str, str], key: str | None) -> None:
    assert api_key_of(headers) == key


async def test_a_key_names_its_project_and_an_unknown_one_nobody(core: MemoryCore) -> None:
    key, secret = await core.projects.create_key(PROJECT, "site")
    authentication = authentication_of(core)
    project, found = await authentication.authenticate({"x-api-key": secret})

    assert (project.project_id, found) == (PROJECT, key)
    with pytest.raises(Unauthorized):
        await authentication.authenticate({})
    with pytest.raises(InvalidApiKey):
        await authentication.authenticate({"x-api-key": "msk_unknown"})


async def test_a_project_has_its_rate_and_refusals_are_counted(core: MemoryCore) -> None:
    authentication, [project] = authentication_of(core), await core.projects.list()
    allowed = [(await authentication.count(project)).allowed for _ in range(3)]
    window = await authentication.count(project)

    assert allowed == [True, True, False]
    assert core.metrics.requests.rate_limited == 2
    with pytest.raises(RateLimitProject, match="more than 2 requests in 60 s") as refused:
        check_rate(window)
    assert refused.value.retry_after_s == 60
    assert dict(rate_headers(window))[b"x-ratelimit-remaining"] == b"0"


def test_a_key_opens_the_areas_of_its_scopes() -> None:
    of_admin = ApiKey("key_1", PROJECT, "site", "msk_1", ("*admin",))
    of_area = ApiKey("key_2", PROJECT, "site", "msk_2", ("messages",))
    check_scope(of_admin, "messages", writes=True, owners_only=False)
    check_scope(of_area, "messages", writes=True, owners_only=True)

    with pytest.raises(Forbidden):
        check_scope(of_admin, "billing", writes=False, owners_only=True)
    with pytest.raises(Forbidden):
        check_scope(of_area, "files", writes=False, owners_only=False)


def test_a_key_that_reads_opens_all_areas_but_those_of_owners_and_writes_where_it_is_said() -> None:
    key = ApiKey("key_1", PROJECT, "site", "msk_1", ("*read", "messages"))
    check_scope(key, "files", writes=False, owners_only=False)
    check_scope(key, "messages", writes=True, owners_only=False)

    with pytest.raises(Forbidden, match="may only read 'files'"):
        check_scope(key, "files", writes=True, owners_only=False)
    for writes in (True, False):
        with pytest.raises(Forbidden, match="has no access to 'billing'"):
            check_scope(key, "billing", writes=writes, owners_only=True)


# ---- an idempotency key -------------------------------------------------------------------------

KEY, SAME = "key-12345", ["POST /v1/x 1"]


def idempotency_of(core: MemoryCore) -> Idempotency:
    return Idempotency(core.db, core.clock, core.secrets, keep_hours=24)


def tag_row(name: str) -> dict[str, Any]:
    return {"project_id": PROJECT, "tag_id": f"tag_{name}", "created_at_ms": 0, "name": name}


async def tags(core: MemoryCore) -> list[str]:
    """The names of the project's tags, which requests add here."""
    async with core.db.read() as tx:
        return [tag.name for tag in await core.tags.list_all(tx, PROJECT, 100)]


class Work:
    """Work that adds the tag `done` and answers, or raises."""

    def __init__(self, failure: ApiError | None = None) -> None:
        self.runs = 0
        self._failure = failure

    async def __call__(self, target: Tx | WriteBatch) -> StoredAnswer:
        self.runs += 1
        if isinstance(target, WriteBatch):
            target.insert("core_tags", tag_row("done"))
        else:
            await target.insert("core_tags", tag_row("done"))
        if self._failure is not None:
            raise self._failure
        return StoredAnswer(201, '{"secret": "s-1234"}')


def as_answer(error: ApiError) -> StoredAnswer:
    return StoredAnswer(error.status, json.dumps({"code": error.code}))


async def test_an_answer_is_kept_encrypted_and_given_again(core: MemoryCore) -> None:
    work, idempotency = Work(), idempotency_of(core)
    first = await idempotency.run(PROJECT, KEY, SAME, work, as_answer)
    async with core.db.read() as tx:
        stored = await tx.fetch_val("SELECT body FROM core_idempotency")
    again = await idempotency.run(PROJECT, KEY, SAME, work, as_answer)

    assert "s-1234" not in stored
    assert (again.body, again.status, again.replayed) == (first.body, 201, True)
    assert work.runs == 1


async def test_an_answer_is_kept_for_so_many_hours(core: MemoryCore) -> None:
    work, idempotency = Work(Conflict("gone")), idempotency_of(core)
    runs = []
    for passed_s in (0, 24 * 3600, 1):
        core.clock.advance(passed_s)
        await idempotency.run(PROJECT, KEY, SAME, work, as_answer)
        runs.append(work.runs)

    assert runs == [1, 1, 2]


async def test_a_key_stands_for_one_request(core: MemoryCore) -> None:
    idempotency = idempotency_of(core)
    await idempotency.run(PROJECT, KEY, ["POST /v1/y 1"], Work(), as_answer)

    with pytest.raises(IdempotencyConflict):
        await idempotency.run(PROJECT, KEY, SAME, Work(), as_answer)


async def test_a_refusal_is_kept_without_its_effects(core: MemoryCore) -> None:
    work, idempotency = Work(Conflict("gone")), idempotency_of(core)
    answer = await idempotency.run(PROJECT, KEY, SAME, work, as_answer)
    assert (answer.status, await tags(core)) == (409, [])

    again = await idempotency.run(PROJECT, KEY, SAME, work, as_answer)
    assert (again.status, again.replayed, work.runs) == (409, True, 1)


@pytest.mark.parametrize("failure", [BadRequest(), ValidationFailed(), Forbidden()])
async def test_what_the_client_may_put_right_is_not_kept(
    core: MemoryCore, failure: ApiError
) -> None:
    idempotency = idempotency_of(core)
    with pytest.raises(type(failure)):
        await idempotency.run(PROJECT, KEY, SAME, Work(failure), as_answer)
    assert await tags(core) == []

    answer = await idempotency.run(PROJECT, KEY, SAME, Work(), as_answer)
    assert (answer.status, answer.replayed) == (201, False)


class Counted(Conflict):
    """An attempt was counted, and must stay counted."""

    code = "counted"
    keeps_writes = True


async def test_a_refusal_that_keeps_its_writes_keeps_them(core: MemoryCore) -> None:
    await idempotency_of(core).run(PROJECT, KEY, SAME, Work(Counted()), as_answer)

    assert await tags(core) == ["done"]


async def test_grouped_work_is_written_with_its_key(core: MemoryCore) -> None:
    idempotency = idempotency_of(core)
    first = await idempotency.run_grouped(PROJECT, KEY, SAME, Work(), as_answer)

    assert await tags(core) == ["done"]
    assert await idempotency.recall(PROJECT, KEY, SAME) == StoredAnswer(
        201, first.body, replayed=True
    )


async def test_grouped_work_whose_key_was_used_leaves_no_trace(core: MemoryCore) -> None:
    idempotency = idempotency_of(core)
    first = await idempotency.run_grouped(PROJECT, KEY, SAME, Work(Conflict("gone")), as_answer)
    again = await idempotency.run_grouped(PROJECT, KEY, SAME, Work(), as_answer)

    assert (again.body, again.status, again.replayed) == (first.body, 409, True)
    assert await tags(core) == []


# ---- one endpoint -------------------------------------------------------------------------------


class Thing(RequestModel):
    """What is made."""

    name: str


class Made(ResponseModel):
    """What was made."""

    thing_id: str


class Things:
    """Makes things, which are tags here, or raises `failure`."""

    failure: Exception | None = None

    async def make(self, ctx: Context, name: str) -> Made:
        await ctx.tx.insert("core_tags", tag_row(name))
        if self.failure is not None:
            raise self.failure
        return Made(thing_id="thg_1")


router = Router("things")


@router.post("/v1/things", status=201, audited=lambda _: _("Thing created"))
async def make_thing(ctx: Context, body: Thing, things: Things) -> Made:
    """Makes a thing."""
    return await things.make(ctx, body.name)


@router.get("/v1/things", public=True)
async def list_things(ctx: Context) -> Made:
    """Shows what there is."""
    return Made(thing_id="thg_1")


@router.post("/v1/things/stop")
async def stop_things(ctx: Context) -> None:
    """Takes no body, and answers nothing."""


class Edge:
    """The dispatcher of the three endpoints, and what it wrote into the audit log."""

    def __init__(self, core: MemoryCore) -> None:
        self.things = Things()
        self.audited: list[tuple[str, str | None]] = []
        self.dispatcher = EndpointDispatcher(
            db=core.db,
            secrets=core.secrets,
            authentication=authentication_of(core, limit=100),
            idempotency=idempotency_of(core),
            write_audit=self._write_audit,
            settings=core.config,
        )

    async def _write_audit(
        self, tx: Tx, action: str, key: CallerKey, *, target: str | None, ip: str
    ) -> None:
        self.audited.append((action, target))

    async def answer(
        self,
        name: str,
        *,
        key: str = "",
        body: bytes = b"",
        query: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> tuple[Response, Any]:
        """The response of the endpoint of that name, and the JSON in it."""
        providers = Providers()
        providers.add(self.things)
        [endpoint] = [each for each in router.endpoints if each.name == name]
        request = request_of(endpoint, body, query, {"x-api-key": key, **(headers or {})})
        response = await self.dispatcher.answer(endpoint.bound(providers), request)
        return response, json.loads(bytes(response.body) or b"null")


def request_of(endpoint: Endpoint, body: bytes, query: str, headers: Mapping[str, str]) -> Request:
    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    given = {"content-type": "application/json", "content-length": str(len(body)), **headers}
    scope = {
        "type": "http",
        "method": endpoint.method,
        "path": endpoint.path,
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in given.items() if value],
        "path_params": {},
        "state": {"request_id": "req_1"},
        "client": ("203.0.113.7", 1234),
    }
    return Request(scope, receive)


@pytest.fixture
def at(core: MemoryCore) -> Edge:
    return Edge(core)


@pytest.fixture
async def key(core: MemoryCore) -> str:
    """A key that opens the edge."""
    return (await core.projects.create_key(PROJECT, "site"))[1]


MAKE_X: dict[str, Any] = {"body": b'{"name": "x"}'}


async def test_a_change_is_committed_with_its_entry_in_the_audit_log(
    core: MemoryCore, at: Edge, key: str
) -> None:
    response, made = await at.answer("make_thing", key=key, **MAKE_X)

    assert (response.status_code, made) == (201, {"thing_id": "thg_1"})
    assert response.headers["x-ratelimit-remaining"] == "99"
    assert at.audited == [("things.make_thing", "thg_1")]
    assert await tags(core) == ["x"]


async def test_a_refusal_takes_back_what_was_written_unless_it_keeps_that(
    core: MemoryCore, at: Edge, key: str
) -> None:
    at.things.failure = Conflict("no")
    await at.answer("make_thing", key=key, **MAKE_X)
    assert await tags(core) == []
    at.things.failure = Counted("counted")
    response, error = await at.answer("make_thing", key=key, **MAKE_X)

    assert (response.status_code, error["code"]) == (409, "counted")
    assert await tags(core) == ["x"]
    assert at.audited == []


async def test_what_breaks_here_is_not_told_outside(at: Edge, key: str) -> None:
    at.things.failure = RuntimeError("/srv/app: disk full")
    response, error = await at.answer("make_thing", key=key, **MAKE_X)

    assert (response.status_code, error["retryable"]) == (500, True)
    assert "disk full" not in error["error"]


@pytest.mark.parametrize(
    ("name", "asked", "code"),
    [
        ("make_thing", {"body": b'{"name": 1}'}, "validation_failed"),
        ("make_thing", {"body": b'{"name": "x", "nmae": 1}'}, "validation_failed"),
        ("make_thing", {"body": b"{}", "headers": {"content-type": "text/plain"}}, None),
        ("make_thing", {"body": b'{"name": "x"}', "query": "dry_run=1"}, "validation_failed"),
        ("stop_things", {"body": b'{"name": "x"}'}, "validation_failed"),
        (
            "make_thing",
            {"body": b'{"name": "x"}', "headers": {"idempotency-key": "short"}},
            "validation_failed",
        ),
    ],
)
async def test_a_request_that_is_not_understood_reaches_no_handler(
    core: MemoryCore, at: Edge, key: str, name: str, asked: dict[str, Any], code: str | None
) -> None:
    response, error = await at.answer(name, key=key, **asked)

    assert 400 <= response.status_code < 500
    assert code in {None, error["code"]}
    assert (at.audited, await tags(core)) == ([], [])


async def test_who_has_no_key_or_one_that_opens_nothing_is_refused(
    core: MemoryCore, at: Edge
) -> None:
    _, narrow = await core.projects.create_key(PROJECT, "site", ["files"])
    anonymous, _ = await at.answer("make_thing", **MAKE_X)
    stranger, _ = await at.answer("make_thing", key=narrow, **MAKE_X)
    open_to_all, _ = await at.answer("list_things")

    assert (anonymous.status_code, stranger.status_code) == (401, 403)
    assert open_to_all.status_code == 200


async def test_a_disabled_project_is_refused_and_counted_all_the_same(
    core: MemoryCore, at: Edge, key: str
) -> None:
    await core.projects.set_active(PROJECT, False)
    response, error = await at.answer("stop_things", key=key)

    assert (response.status_code, error["code"]) == (403, "project_inactive")
    assert response.headers["x-ratelimit-remaining"] == "99"


async def test_a_repeated_request_is_answered_from_what_was_kept(
    core: MemoryCore, at: Edge, key: str
) -> None:
    asked = {**MAKE_X, "headers": {"idempotency-key": KEY}}
    await at.answer("make_thing", key=key, **asked)
    response, made = await at.answer("make_thing", key=key, **asked)

    assert (response.headers["idempotent-replayed"], made) == ("true", {"thing_id": "thg_1"})
    assert await tags(core) == ["x"]


# ---- where there is nothing ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "accept", "is_page"),
    [
        ("/nowhere", "text/html,*/*", True),
        ("/nowhere", "application/json", False),
        ("/v1/nowhere", "text/html", False),
    ],
)
def test_people_get_a_page_and_programs_the_envelope(
    core: MemoryCore, path: str, accept: str, is_page: bool
) -> None:
    page = NotFoundPage(core.texts, "en")
    scope = {"type": "http", "path": path, "headers": [(b"accept", accept.encode())]}

    assert page.is_for(Request(scope)) is is_page


def test_the_page_is_in_the_readers_language_and_links_below_its_root(core: MemoryCore) -> None:
    headers = [(b"accept-language", b"ru,en;q=0.5")]
    scope = {"type": "http", "path": "/x", "headers": headers, "root_path": "/bots"}
    answer = NotFoundPage(core.texts, "en").answer(Request(scope), HTTPException(404))

    assert answer.status_code == 404
    assert 'lang="ru"' in bytes(answer.body).decode()
    assert "Accept-Language" in answer.headers["vary"]


def test_a_code_means_one_error() -> None:
    class Other(ApiError):
        """Something else."""

        code, status = "not_found", 400

    with pytest.raises(ValueError, match="'not_found' is declared by both"):
        ErrorCatalogue([NotFound, Other])
    assert list(ErrorCatalogue([NotFound, Conflict, NotFound, Forbidden])) == [
        Forbidden,
        NotFound,
        Conflict,
    ]


# ---- health -------------------------------------------------------------------------------------


class Asked(RecordingChannel):
    """Counts how often its platform was asked."""

    health = ChannelHealth(ok=True, detail="Shop bot")
    asked = 0

    async def check(self) -> ChannelHealth:
        self.asked += 1
        return self.health


class AskedPlugin:
    """Registers the channel kind `asked`."""

    @hookimpl
    def register_channel_kinds(self) -> Sequence[ChannelKind]:
        return [ChannelKind("asked", Section, lambda _context, identity, _: Asked(identity))]


@asynccontextmanager
async def asked() -> AsyncIterator[tuple[MemoryCore, Asked]]:
    """A service with one bot, and the bot."""
    channels = {"messenger_a": {"plugin": "asked"}}
    async with memory_core(extra_plugins=[("asked", AskedPlugin())], channels=channels) as core:
        channel = core.channels["messenger_a"]
        assert isinstance(channel, Asked)
        yield core, channel


class NoRedis(MemoryLimiter):
    """Counts for itself, as Redis does not answer."""

    async def check(self) -> str | None:
        return "connection refused"


def readiness_of(core: MemoryCore, **changes: Any) -> Readiness:
    parts: dict[str, Any] = {
        "db": core.db,
        "limiter": core.limiter,
        "has_redis": False,
        "keys_are_lost": lambda: False,
        "is_quarantined": False,
        "is_draining": lambda: False,
        **changes,
    }
    return Readiness(
        clock=core.clock,
        jobs=core.jobs,
        channels=core.channels,
        states=core.service.get(ChannelStates),
        shelf=core.service.get(Shelf),
        **parts,
    )


async def test_all_is_well_and_without_redis_it_is_not_asked(core: MemoryCore) -> None:
    checks = await readiness_of(core).checks()

    assert {name: check["ok"] for name, check in checks.items()} == {
        "database": True,
        "queue": True,
        "channel:messenger_a": True,
        "channel:messenger_b": True,
    }


async def test_without_its_database_a_process_is_not_ready_and_says_why(core: MemoryCore) -> None:
    checks = await readiness_of(
        core,
        # Not connected.
        db=Database(MEMORY_URL),
        limiter=NoRedis(core.clock),
        has_redis=True,
        keys_are_lost=lambda: True,
    ).checks()

    assert checks["database"] == {
        "ok": False,
        "detail": "the database is not open: the service is not started",
    }
    assert not checks["queue"]["ok"]
    assert "per process: connection refused" in checks["redis"]["detail"]
    assert "secret_keys" in checks


async def test_what_is_known_of_a_bot_is_not_asked_of_its_platform(core: MemoryCore) -> None:
    own_channel(core)
    async with core.db.transaction() as tx:
        await put_state(tx, "chn_1", status="stopped")
        await put_state(tx, "messenger_a", status="stopped", reason="bot_banned", detail="no")
        await put_state(tx, "messenger_b", outage_since_ms=0, outage_detail="timeout")
    checks = await readiness_of(core).checks()

    assert checks["channel:messenger_a"] == {
        "ok": False,
        "stopped": True,
        "detail": "stopped: bot_banned: no",
    }
    assert checks["channel:messenger_b"]["unavailable_since"] == "1970-01-01T00:00:00.000Z"
    # Whose own channels those are is not told.
    assert checks["own_channels"]["detail"] == {"stopped": 1, "unavailable": 0, "interrupted": 0}


async def test_a_platform_is_asked_no_more_often_than_its_health_is_remembered() -> None:
    async with asked() as (core, channel):
        readiness = readiness_of(core)
        for waits_s in (0.0, CHANNEL_HEALTH_S - 1, 1.0):
            core.clock.advance(waits_s)
            await readiness.checks()

    assert channel.asked == 2


async def test_a_bot_that_is_found_revoked_is_stopped() -> None:
    async with asked() as (core, channel):
        channel.health = ChannelHealth(ok=False, detail="Unauthorized", revoked=True)
        checks = await readiness_of(core).checks()
        async with core.db.read() as tx:
            state = await core.service.get(ChannelStates).find(tx, "messenger_a")

    assert checks["channel:messenger_a"]["stopped"]
    assert state is not None
    assert (state.status, state.detail) == ("stopped", "Unauthorized")


async def test_a_bot_that_is_asked_to_wait_is_no_fault_and_says_until_when(
    core: MemoryCore,
) -> None:
    own_channel(core)
    until_ms = core.clock.now_ms() + 300_000
    async with core.db.transaction() as tx:
        await put_state(tx, "messenger_a", paused_until_ms=until_ms)
        await put_state(tx, "chn_1", paused_until_ms=until_ms)
    checks = await readiness_of(core).checks()

    check = checks["channel:messenger_a"]
    assert (check["ok"], check["paused_until"]) == (True, to_rfc3339(until_ms))
    assert check["detail"].endswith(f"; its platform asks to wait until {to_rfc3339(until_ms)}")
    assert "own_channels" not in checks
