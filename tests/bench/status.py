"""`GET /v1/auth/session/{id}/status` against a bare GET."""

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from msgsvc_auth.models import CreateSessionBody
from msgsvc_auth.service import SignIn
from msgsvc_core.service import Service
from tests.bench.load import Request
from tests.bench.report import Bound, Finding
from tests.bench.rounds import Target, measure
from tests.bench.run import Run
from tests.bench.servers import ServiceUnderTest, Setup, started_echo, started_service

LEAST = Bound(least=0.4)

#: Sessions whose status is asked for, in turn.
SESSIONS = 200

PLUGINS = ("sink", "auth")

#: The service's default, but for the other limit that no honest load stays under.
SECTIONS = ("[auth]\nsessions_per_hour = 1000000\nsession_lifetime_s = 3600",)


def status(run: Run) -> list[Finding]:
    """Sessions that wait for their Yes, asked for without `wait`."""
    with ExitStack() as stack:
        run.tell("starting the servers")
        echo = stack.enter_context(started_echo(run))
        targets: list[Target] = []
        for kind in run.databases.kinds:
            setup = Setup(kind, plugins=PLUGINS, sections=SECTIONS)
            service = stack.enter_context(started_service(run, setup))
            paths = [f"/v1/auth/session/{id_}/status" for id_ in open_sessions(service, SESSIONS)]
            lines = run.new_folder() / "paths"
            lines.write_text("\n".join(paths) + "\n")
            request = replace(service.sends, method="GET", lines=lines)
            targets.append(Target(kind, service.server, request, status=200))
        bare = Request(echo.url, _one_line(run.new_folder(), "/status"), "key", method="GET")
        figures = measure(run, "status", [Target("echo", echo, bare, status=200), *targets])
    bare_get, found = figures["echo"], list[Finding]()
    for kind in run.databases.kinds:
        own, name = figures[kind], f"session status {kind}"
        found += [
            Finding(f"{name}: per s / bare GET", own.per_s, bare_get.per_s, LEAST),
            Finding(f"{name}: CPU µs / bare GET", own.cpu_us, bare_get.cpu_us),
        ]
    return found


def open_sessions(service: ServiceUnderTest, number: int) -> list[str]:
    """The ids of new sessions."""

    async def make(opened: Service) -> list[str]:
        sign_in = opened.get(SignIn)
        async with opened.db.transaction() as tx:
            made = [
                await sign_in.open(tx, service.project_id, CreateSessionBody())
                for _ in range(number)
            ]
        return [new.session.session_id for new in made]

    return service.use(make)


def _one_line(folder: Path, line: str) -> Path:
    path = folder / "paths"
    path.write_text(line + "\n")
    return path
