"""`POST /v1/auth/verify` against the bare echo: every call consumes a code that was made before."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from msgsvc_auth.codes import Codes
from msgsvc_core.kernel.ids import new_secret_id, new_token
from msgsvc_core.security import digest
from msgsvc_core.service import Service
from tests.bench.load import Request
from tests.bench.report import Bound, Finding
from tests.bench.rounds import Figures, Target, measure
from tests.bench.run import BenchError, Run
from tests.bench.servers import ServiceUnderTest, Setup, started_echo, started_service
from tests.bench.status import PLUGINS, SECTIONS

LEAST = Bound(least=0.2)

#: Codes that are made for each second of load. One process verified 7,000; a round that runs out of them
#: fails, for a code works once.
CODES_PER_S = 12_000

#: Rows of one transaction while they are made.
ROWS_AT_ONCE = 1000


def verifying(run: Run) -> list[Finding]:
    """Codes of sessions that were said Yes to, each exchanged once."""
    with ExitStack() as stack:
        run.tell("starting the servers")
        echo = stack.enter_context(started_echo(run))
        services = {
            kind: stack.enter_context(started_service(run, setup))
            for kind in run.databases.kinds
            for setup in [Setup(kind, plugins=PLUGINS, sections=SECTIONS)]
        }
        targets: list[Target] = []
        for kind, service in services.items():
            run.tell(f"making codes on {kind}")
            bodies = _bodies(run, service)
            targets.append(Target(kind, service.server, status=200, fresh=bodies))
        lines = run.new_folder() / "bodies.jsonl"
        lines.write_text(json.dumps({"code": "0" * 43}) + "\n")
        bare = Request(echo.url + "/v1/send", lines, "key")
        figures = measure(run, "verify", [Target("echo", echo, bare), *targets])
        for kind, service in services.items():
            _check_all_consumed(kind, service, figures[kind])
    found = list[Finding]()
    for kind in run.databases.kinds:
        own, bare_post, name = figures[kind], figures["echo"], f"verify {kind}"
        found += [
            Finding(f"{name}: per s / echo", own.per_s, bare_post.per_s, LEAST),
            Finding(f"{name}: p99 ms / echo", own.p99_ms, bare_post.p99_ms),
            Finding(f"{name}: CPU µs / echo", own.cpu_us, bare_post.cpu_us),
        ]
    return found


def _bodies(run: Run, service: ServiceUnderTest) -> Callable[[], Request]:
    """Gives each round a file of bodies with codes that nobody has exchanged."""
    options = run.options
    lengths = [options.warm_up] * bool(options.warm_up) + [options.seconds] * options.rounds
    folder = run.new_folder()

    async def make(opened: Service) -> list[list[str]]:
        return [await _make_codes(opened, service, seconds * CODES_PER_S) for seconds in lengths]

    files: list[Path] = []
    for codes in service.use(make):
        files.append(folder / f"{len(files)}")
        files[-1].write_text("".join(json.dumps({"code": code}) + "\n" for code in codes))
    unused = iter(files)
    return lambda: _request(service, unused)


def _request(service: ServiceUnderTest, files: Iterator[Path]) -> Request:
    url = service.server.url + "/v1/auth/verify"
    return replace(service.sends, url=url, lines=next(files))


async def _make_codes(opened: Service, service: ServiceUnderTest, number: int) -> list[str]:
    """The codes of as many confirmed sessions, each as a Yes leaves it."""
    codes, now_ms = Codes(opened.secrets), opened.clock.now_ms()
    async with opened.db.read() as tx:
        subscriber_id = await tx.fetch_val("SELECT subscriber_id FROM core_subscribers LIMIT 1")
    issued = [(id_, codes.issue(id_)) for id_ in (new_secret_id("ses") for _ in range(number))]
    rows = [
        {
            "project_id": service.project_id,
            "session_id": session_id,
            "token_digest": digest(new_token()),
            "status": "confirmed",
            "state": "",
            "created_at_ms": now_ms,
            "expires_at_ms": now_ms + 600_000,
            "subscriber_id": subscriber_id,
            "nonce": code.nonce,
            "code_hash": code.hash,
            "confirmed_at_ms": now_ms,
            # Every round comes in time, however long the run is.
            "code_expires_at_ms": now_ms + 24 * 3_600_000,
        }
        for session_id, code in issued
    ]
    for start in range(0, number, ROWS_AT_ONCE):
        async with opened.db.transaction() as tx:
            await tx.insert_many("auth_sessions", rows[start : start + ROWS_AT_ONCE])
    return [code.code for _, code in issued]


def _check_all_consumed(kind: str, service: ServiceUnderTest, figures: Figures) -> None:
    """Every code that was exchanged is consumed in the database."""

    async def count(opened: Service) -> int:
        async with opened.db.read() as tx:
            return int(
                await tx.fetch_val(
                    "SELECT COUNT(*) AS count FROM auth_sessions WHERE status = 'consumed'"
                )
            )

    consumed = service.use(count)
    if consumed < figures.requests:
        raise BenchError(f"verify {kind}: {figures.requests} exchanged, {consumed} consumed")
