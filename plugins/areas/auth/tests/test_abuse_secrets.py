"""Nothing that signs anybody in can be read from the database, the logs, errors or metrics."""

import json
import logging
import re
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import httpx2
import pytest
import structlog

from msgsvc_auth import plugin
from msgsvc_core.channels import ChannelUser
from msgsvc_core.service import Service
from msgsvc_core.telemetry.logs import hide_secrets
from msgsvc_devkit import settled
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from plugins.areas.auth.tests.conftest import CALLBACK, Person
from plugins.areas.auth.tests.hosted import browsing

HOSTILE = [
    "\"><script>alert('x')</script>",
    "&code=forged&state=forged",
    "#fragment?query",
    "\r\nLocation: https://evil.example\r\n",
    "{project} {0} %s %00 %0d%0a",
    "javascript:alert(1)",
    "..\\../\\/evil.example",
    "\u202e\u200b\ufeff\U0001f600 ё é e\u0301",
    " leading and trailing ",
    "x" * 512,
]


async def everything_in(service: Service) -> str:
    """Every value of every table, as text."""
    tables = {
        "sqlite": "SELECT name FROM sqlite_master WHERE type = 'table'",
        "postgresql": "SELECT table_name AS name FROM information_schema.tables"
        " WHERE table_schema = current_schema()",
    }
    async with service.db.read() as tx:
        names = [row["name"] for row in await tx.fetch_all(tables[tx.dialect])]
        rows = [row for name in names for row in await tx.fetch_all(f'SELECT * FROM "{name}"')]
    assert {"auth_sessions", "core_jobs", "core_events"} <= set(names)
    values = [row[column] for row in rows for column in row.keys()]
    return "\n".join(
        value.decode("latin-1") if isinstance(value, bytes) else str(value) for value in values
    )


def forms_of(secret: str) -> list[str]:
    """Ways in which a secret could stand somewhere all the same."""
    return [secret, secret[:-3], quote(secret, safe=""), secret.encode().hex(), secret[::-1]]


@dataclass
class SignedIn:
    """What came of a sign-in whose bot has not been able to say so yet."""

    client: httpx2.AsyncClient
    service: Service
    session_id: str
    token: str
    code: str
    seal: str


@pytest.fixture
async def signed_in(
    make_service: ServiceFactory, make_tenant: Callable[..., Awaitable[Tenant]]
) -> AsyncIterator[SignedIn]:
    """Ann pressed Yes; the edit of her message, with the way back and its code, waits for its turn."""
    before = await make_service(extra_plugins=[("auth", plugin)])
    client = (await make_tenant(before)).client
    link = {"slug": "shop", "name": "Shop", "callback_url": CALLBACK}
    await client.post("/v1/auth/links", json=link)
    answer = await client.post(
        "/v1/auth/session",
        json={"state": "xyz", "callback_url": CALLBACK},
        headers={"Idempotency-Key": "sign-in-0001"},
    )
    session = answer.json()
    ann = Person(before, "messenger_a", ChannelUser("1001", "Ann", "ann_k", "en"))
    question = await ann.open(session["links"]["messenger_a"])
    await before.stop()
    service = await make_service(
        extra_plugins=[("auth", plugin)],
        database_url=before.settings.database_url,
        jobs={"runner": "none"},
    )
    data = ann.button(question, "Yes").data or ""
    await service.inbound.receive("messenger_a", ann.pressing(data, question.message_ref))
    token, seal = data.split(":")[2:]
    async with httpx2.AsyncClient(
        transport=httpx2.ASGITransport(app=service.app),
        base_url=client.base_url,
        headers=client.headers,
    ) as client_now:
        path = f"/v1/auth/session/{session['session_id']}/status"
        code = (await client_now.get(path)).json()["code"]
        yield SignedIn(client_now, service, session["session_id"], token, code, seal)


async def test_the_database_holds_no_code_while_it_can_be_used_nor_afterwards(
    signed_in: SignedIn,
) -> None:
    waiting = await everything_in(signed_in.service)
    verified = await signed_in.client.post(
        "/v1/auth/verify",
        json={"code": signed_in.code},
        headers={"Idempotency-Key": "verify-0001"},
    )
    later = await everything_in(signed_in.service)

    assert verified.status_code == 200, verified.text
    # The search finds what is there: the session's id is stored as it is.
    assert signed_in.session_id in waiting
    for form in forms_of(signed_in.code):
        assert form not in waiting
        assert form not in later


async def test_the_database_holds_no_token_of_a_link_and_no_seal_of_a_button(
    signed_in: SignedIn,
) -> None:
    stored = await everything_in(signed_in.service)

    for secret in (signed_in.token, signed_in.seal):
        for form in forms_of(secret):
            assert form not in stored


async def test_the_database_holds_no_key_of_the_api(signed_in: SignedIn) -> None:
    stored = await everything_in(signed_in.service)
    key = signed_in.client.headers["Authorization"].removeprefix("Bearer ")

    assert key not in stored
    # The visible prefix is what a person tells keys apart by, and no more.
    assert key[:12] in stored
    assert key[:16] not in stored


async def test_the_database_holds_nothing_of_the_hosted_pages_cookie(
    service: Service, link: dict[str, Any], ann: Person
) -> None:
    async with browsing(service) as browser:
        await browser.open()
        await ann.press(await ann.open(browser.link()), "Yes")
        stored = await everything_in(service)
        cookies = [value for value in browser.http.cookies.values() if value]

    secrets = [part for value in cookies for part in value.split(".") if len(part) > 10]
    assert len(secrets) >= 2
    for secret in secrets:
        assert not any(form in stored for form in forms_of(secret))


@pytest.fixture
def log_lines(caplog: pytest.LogCaptureFixture) -> Any:
    """Everything that is logged, as text, before anything is blanked."""
    caplog.set_level(logging.DEBUG)
    with structlog.testing.capture_logs() as entries:

        def lines() -> str:
            said = [json.dumps(entry, default=_shown) for entry in entries]
            said += [record.getMessage() for record in caplog.records]
            return "\n".join(said)

        yield lines


def _shown(value: Any) -> str:
    if isinstance(value, BaseException):
        return "".join(traceback.format_exception(value))
    return repr(value)


async def test_logs_errors_and_metrics_hold_no_code_and_no_token(
    log_lines: Callable[[], str],
    service: Service,
    client: httpx2.AsyncClient,
    link: dict[str, Any],
    ann: Person,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = (await client.post("/v1/auth/session", json={"callback_url": CALLBACK})).json()
    question = await ann.open(session["links"]["messenger_a"])

    async def fail(*_args: Any, **_kwargs: Any) -> None:
        raise RuntimeError("no events today")

    with monkeypatch.context() as patch:
        # A failure in the midst of a Yes is logged with its trace.
        patch.setattr(service.events, "emit", fail)
        await ann.press(question, "Yes")
    await ann.press(question, "Yes")
    path = f"/v1/auth/session/{session['session_id']}/status"
    code = (await client.get(path)).json()["code"]
    answers = [
        await client.post("/v1/auth/verify", json={"code": code + "x"}),
        await client.post("/v1/auth/verify", json={"code": [code]}),
        await client.post("/v1/auth/verify", json={"codes": code}),
        await client.post("/v1/auth/verify", content=f'{{"code": "{code}"'.encode()),
    ]
    with monkeypatch.context() as patch:
        patch.setattr(service.subscribers, "get_many", fail)
        answers.append(await client.post("/v1/auth/verify", json={"code": code}))
    used = [await client.post("/v1/auth/verify", json={"code": code}) for _ in range(2)]
    answers.append(used[1])
    await settled(service)
    metrics = (await client.get("/metrics")).text
    errors = "".join(answer.text for answer in answers)
    token, seal = (ann.button(question, "Yes").data or "").split(":")[2:]

    assert [answer.status_code for answer in answers] == [400, 400, 400, 400, 500, 409]
    assert "no events today" in log_lines()
    assert "msgsvc_" in metrics
    for secret in (code, token, seal, client.headers["Authorization"][7:]):
        for text in (log_lines(), errors, metrics):
            assert secret not in text
            assert secret[:-3] not in text


async def test_a_log_line_with_a_callback_does_not_show_its_code(
    client: httpx2.AsyncClient, link: dict[str, Any], ann: Person
) -> None:
    await ann.press(await ann.open(link["links"]["messenger_a"]), "Yes")
    url = ann.shown.message.buttons[0][0].url or ""
    code = parse_qs(urlsplit(url).query)["code"][0]
    entries: list[dict[str, Any]] = [
        {"event": f"led to {url}"},
        {"event": "led", "url": url},
        {"event": "led", "headers": {"location": [url.encode()]}},
        {"event": "failed", "error": ValueError(f"can't reach {url}")},
    ]
    logged = [repr(hide_secrets(None, "info", entry)) for entry in entries]

    assert not any(code in line for line in logged)
    assert all("shop.example/back?from=bot&code=[hidden]" in line for line in logged)


@pytest.mark.parametrize("state", HOSTILE, ids=range(len(HOSTILE)))
async def test_a_hostile_state_comes_back_as_it_was_and_breaks_out_of_nothing(
    client: httpx2.AsyncClient, link: dict[str, Any], ann: Person, state: str
) -> None:
    body = {"state": state, "callback_url": CALLBACK}
    session = (await client.post("/v1/auth/session", json=body)).json()
    path = f"/v1/auth/session/{session['session_id']}/status"
    await ann.press(await ann.open(session["links"]["messenger_a"]), "Yes")
    polled = (await client.get(path)).json()
    url = ann.shown.message.buttons[0][0].url or ""
    query = parse_qs(urlsplit(url).query, keep_blank_values=True)
    verified = await client.post("/v1/auth/verify", json={"code": query["code"][0]})
    events = (await client.get("/v1/events?event=auth.completed")).json()["data"]

    assert re.fullmatch(r"https://shop\.example/back\?[A-Za-z0-9_.~%+=&*-]+", url)
    assert query == {"from": ["bot"], "code": [polled["code"]], "state": [state]}
    assert polled["state"] == verified.json()["state"] == events[0]["data"]["state"] == state
    assert state not in ann.shown.message.text


@pytest.mark.parametrize("state", ["\x00", "\ud800", "x" * 513])
async def test_a_state_that_can_t_be_kept_is_refused(
    client: httpx2.AsyncClient, state: str
) -> None:
    answer = await client.post(
        "/v1/auth/session",
        content=json.dumps({"state": state}).encode(),
        headers={"Content-Type": "application/json"},
    )

    assert (answer.status_code, answer.json()["code"]) == (400, "validation_failed")
