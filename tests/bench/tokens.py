"""The token endpoint of the OpenID provider against a bare server that signs one token of the same size."""

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlencode

from msgsvc_core.kernel.ids import new_id
from msgsvc_core.service import Service
from msgsvc_oidc.clients.models import CreateOidcClientBody
from msgsvc_oidc.clients.service import Clients
from msgsvc_oidc.grants.references import References
from tests.bench import signer
from tests.bench.load import Request
from tests.bench.report import Bound, Finding
from tests.bench.rounds import Figures, Target, measure
from tests.bench.run import BenchError, Run
from tests.bench.servers import ServiceUnderTest, Setup, started, started_service

LEAST = Bound(least=0.6)

#: Codes that are made for each second of load. A round that runs out of them fails, for a code works once.
CODES_PER_S = 5000

#: Rows of one transaction while they are made.
ROWS_AT_ONCE = 1000

CALLBACK = "https://app.example/callback"

FORM = "application/x-www-form-urlencoded"

PLUGINS = ("sink", "auth", "oidc")

#: As large as the claims of the provider's own tokens.
CLAIMS = {
    "iss": "http://127.0.0.1:8000/oidc/prj_0000000000000000000000",
    "sub": "sub_0000000000000000000000",
    "aud": "app_0000000000000000000000",
    "exp": 1764100600,
    "iat": 1764100000,
    "auth_time": 1764100000,
    "acr": "urn:msgsvc:acr:button",
    "at_hash": "0" * 22,
    "amr": ["mca"],
    "nonce": "n" * 16,
}


def tokens(run: Run) -> list[Finding]:
    """Codes of people who signed in, each exchanged once by a client with a secret."""
    with ExitStack() as stack:
        run.tell("starting the servers")
        bare = stack.enter_context(started(run, signer, json.dumps(CLAIMS)))
        services = {
            kind: stack.enter_context(started_service(run, setup))
            for kind in run.databases.kinds
            for setup in [Setup(kind, plugins=PLUGINS)]
        }
        targets: list[Target] = []
        for kind, service in services.items():
            run.tell(f"making codes on {kind}")
            requests = _requests(run, service)
            targets.append(Target(kind, service.server, status=200, fresh=requests))
        lines = run.new_folder() / "bodies"
        lines.write_text(urlencode({"grant_type": "authorization_code", "code": "0" * 50}) + "\n")
        signs = Request(bare.url + "/token", lines, "key", media_type=FORM)
        signing = Target("signer", bare, signs, status=200)
        figures = measure(run, "token", [signing, *targets])
        for kind, service in services.items():
            _check_all_used(kind, service, figures[kind])
    found = list[Finding]()
    for kind in run.databases.kinds:
        own, least, name = figures[kind], figures["signer"], f"token {kind}"
        found += [
            Finding(f"{name}: per s / bare signer", own.per_s, least.per_s, LEAST),
            Finding(f"{name}: p99 ms / bare signer", own.p99_ms, least.p99_ms),
            Finding(f"{name}: CPU µs / bare signer", own.cpu_us, least.cpu_us),
        ]
    return found


def _requests(run: Run, service: ServiceUnderTest) -> Callable[[], Request]:
    """Gives each round a file of forms with codes that nobody has exchanged."""
    options = run.options
    lengths = [options.warm_up] * bool(options.warm_up) + [options.seconds] * options.rounds
    folder = run.new_folder()

    async def make(opened: Service) -> tuple[str, list[list[str]]]:
        async with opened.db.transaction() as tx:
            body = CreateOidcClientBody(name="Bench", redirect_uris=[CALLBACK], first_party=True)
            new = await opened.get(Clients).create(tx, service.project_id, body)
        client_id, basic = new.client.client_id, f"{new.client.client_id}:{new.secret}"
        codes = [
            await _make_codes(opened, service.project_id, client_id, seconds * CODES_PER_S)
            for seconds in lengths
        ]
        return base64.b64encode(basic.encode()).decode(), codes

    basic, batches = service.use(make)
    files: list[Path] = []
    for codes in batches:
        files.append(folder / f"{len(files)}")
        files[-1].write_text("".join(_form(code) + "\n" for code in codes))
    unused = iter(files)
    return lambda: _request(service, basic, unused)


def _form(code: str) -> str:
    fields = {"grant_type": "authorization_code", "code": code, "redirect_uri": CALLBACK}
    return urlencode(fields)


def _request(service: ServiceUnderTest, basic: str, files: Iterator[Path]) -> Request:
    url = f"{service.server.url}/oidc/{service.project_id}/token"
    return Request(url, next(files), "", media_type=FORM, basic=basic)


async def _make_codes(opened: Service, project_id: str, client_id: str, number: int) -> list[str]:
    """The codes of as many grants, each as a sign-in leaves it."""
    references, now_ms = References(opened.secrets), opened.clock.now_ms()
    async with opened.db.read() as tx:
        subscriber_id = await tx.fetch_val("SELECT subscriber_id FROM core_subscribers LIMIT 1")
    rows = [
        {
            "project_id": project_id,
            "grant_id": new_id("gra"),
            "client_id": client_id,
            "subscriber_id": subscriber_id,
            "subject": subscriber_id,
            "scopes": "openid profile",
            "offline": False,
            "auth_time_ms": now_ms,
            "method": "button",
            "nonce": "n" * 16,
            "redirect_uri": CALLBACK,
            # Every round comes in time, however long the run is.
            "code_expires_at_ms": now_ms + 24 * 3_600_000,
            "created_at_ms": now_ms,
            "ends_at_ms": now_ms + 24 * 3_600_000,
        }
        for _ in range(number)
    ]
    for start in range(0, number, ROWS_AT_ONCE):
        async with opened.db.transaction() as tx:
            await tx.insert_many("oidc_grants", rows[start : start + ROWS_AT_ONCE])
    return [references.code(project_id, str(row["grant_id"])) for row in rows]


def _check_all_used(kind: str, service: ServiceUnderTest, figures: Figures) -> None:
    """Every code that was exchanged is used in the database."""

    async def count(opened: Service) -> int:
        async with opened.db.read() as tx:
            return int(
                await tx.fetch_val(
                    "SELECT COUNT(*) AS count FROM oidc_grants WHERE code_used_at_ms IS NOT NULL"
                )
            )

    used = service.use(count)
    if used < figures.requests:
        raise BenchError(f"token {kind}: {figures.requests} exchanged, {used} used")
