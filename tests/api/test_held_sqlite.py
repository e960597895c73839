"""A SQLite file that another process keeps: everybody is told so in time, and it is over when it is free."""

import asyncio
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx2
import pytest

from msgsvc_core.channels import OutgoingMessage
from msgsvc_core.db.database import sqlite_path
from msgsvc_core.db.errors import FileLocked
from msgsvc_core.jobs.lane import Lane
from msgsvc_core.service import Service
from msgsvc_devkit import RecordingChannel, settled, until
from msgsvc_devkit.deadlines import patient
from msgsvc_devkit.fixtures import Tenant
from tests.api.subscribing import Subscribe

pytestmark = [
    pytest.mark.parametrize("backend", ["sqlite"], indirect=True),
    pytest.mark.database_file,
]

#: Seconds that who writes waits for others in these tests.
WAIT_S = 4.0

#: Seconds until the last answer: the wait, and what a busy machine takes. Three that waited one after the
#: other would take longer.
SOON_S = patient(10.0)

HOLDER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def held(service: Service) -> Iterator[None]:
    """Another process writes to the service's file, and does not end."""
    path = sqlite_path(service.settings.database_url)
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        try:
            yield
        finally:
            process.kill()


@pytest.fixture
async def impatient(service: Service, subscribe: Subscribe) -> str:
    """A subscriber's id; from now on nobody waits long."""
    made = await subscribe("Ann")
    service.db.write_wait_s = WAIT_S
    return made


def is_told(answer: httpx2.Response) -> bool:
    code = answer.json()["code"]
    return (answer.status_code, code) == (503, "unavailable") and "Retry-After" in answer.headers


async def test_all_who_write_are_told_in_time_that_the_file_is_held(
    service: Service, tenant: Tenant, impatient: str
) -> None:
    async def send(number: int) -> tuple[httpx2.Response, float]:
        await asyncio.sleep(number * WAIT_S / 20)
        headers = {"Idempotency-Key": f"keyed-once-{number}"} if number % 2 else {}
        body = {"subscriber_id": impatient, "text": f"{number}"}
        began = time.monotonic()
        # In turn: a unit of the group, and a transaction of its own.
        path, body = ("/v1/send", body) if number < 8 else ("/v1/subscribers/links", {})
        answer = await tenant.client.post(path, json=body, headers=headers)
        return answer, time.monotonic() - began

    with held(service):
        answers = await asyncio.gather(*map(send, range(16)))
    again = await tenant.client.post(
        "/v1/send",
        json={"subscriber_id": impatient, "text": "1"},
        headers={"Idempotency-Key": "keyed-once-1"},
    )
    sent = (await tenant.client.get("/v1/messages")).json()["data"]

    assert [is_told(answer) for answer, _ in answers] == [True] * 16
    assert max(took_s for _, took_s in answers) < SOON_S
    assert again.status_code == 202
    assert len(sent) == 1


async def test_two_of_one_key_are_told_in_time(
    service: Service, tenant: Tenant, impatient: str
) -> None:
    async def send() -> httpx2.Response:
        return await tenant.client.post(
            "/v1/send",
            json={"subscriber_id": impatient, "text": "once"},
            headers={"Idempotency-Key": "one-and-only"},
        )

    began = time.monotonic()
    with held(service):
        answers = await asyncio.gather(*(send() for _ in range(3)))
    took_s = time.monotonic() - began

    assert [is_told(answer) for answer in answers] == [True] * 3
    assert took_s < SOON_S


@pytest.mark.usefixtures("impatient")
async def test_readiness_tells_that_the_file_is_held_though_nobody_writes(
    service: Service, client: httpx2.AsyncClient
) -> None:
    with held(service):
        during = await client.get("/readyz")
    after = await client.get("/readyz")

    assert (during.status_code, during.json()["status"]) == (503, "failing")
    assert during.json()["checks"]["database"]["ok"] is False
    assert "locked" in during.json()["checks"]["database"]["detail"]
    assert after.status_code == 200


async def test_a_file_that_is_held_for_a_moment_delays_and_refuses_nobody(
    service: Service, tenant: Tenant, impatient: str
) -> None:
    path = sqlite_path(service.settings.database_url)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    body = {"subscriber_id": impatient, "text": "late"}
    sending = asyncio.ensure_future(tenant.client.post("/v1/send", json=body))
    linking = asyncio.ensure_future(tenant.client.post("/v1/subscribers/links", json={}))
    done, _ = await asyncio.wait((sending, linking), timeout=WAIT_S / 3)
    other.execute("COMMIT")
    other.close()
    answers = [(await sending).status_code, (await linking).status_code]

    assert not done
    assert answers == [202, 201]


async def test_what_a_platform_answered_is_written_once_the_file_is_free(
    service: Service,
    tenant: Tenant,
    impatient: str,
    channel: RecordingChannel,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    service.db.write_wait_s = 0.05
    path = sqlite_path(service.settings.database_url)
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    take = channel.send

    async def send_and_hold(chat_id: str, message: OutgoingMessage) -> str:
        answer = await take(chat_id, message)
        # Beside the loop, in which the service may have to end a transaction first.
        await asyncio.to_thread(other.execute, "BEGIN IMMEDIATE")
        return answer

    async def is_not_written() -> bool:
        return service.db.failed_writes > 0

    await settled(service)
    channel.sent.clear()
    monkeypatch.setattr(channel, "send", send_and_hold)
    body = {"subscriber_id": impatient, "text": "once"}
    message_id = (await tenant.client.post("/v1/send", json=body)).json()["message_id"]
    await until(is_not_written)
    other.execute("COMMIT")
    other.close()

    async def is_sent() -> bool:
        message = (await tenant.client.get(f"/v1/messages/{message_id}")).json()
        return message["status"] == "sent"

    await until(is_sent)
    await settled(service)

    assert await is_sent()
    assert channel.texts == ["once"]


@pytest.mark.database_file
async def test_a_claim_that_finds_the_file_locked_ends_no_call_under_way(
    service: Service,
    tenant: Tenant,
    impatient: str,
    channel: RecordingChannel,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await settled(service)
    channel.sent.clear()
    take, claim = channel.send, Lane._claim_and_start
    under_way, locked, answered = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def send_slowly(chat_id: str, message: OutgoingMessage) -> str:
        under_way.set()
        await answered.wait()
        return await take(chat_id, message)

    async def claim_in_vain(lane: Lane) -> int:
        if under_way.is_set() and not locked.is_set():
            locked.set()
            raise FileLocked("database is locked")
        return await claim(lane)

    monkeypatch.setattr(channel, "send", send_slowly)
    monkeypatch.setattr(Lane, "_claim_and_start", claim_in_vain)
    ids = []
    for text in ("first", "second"):
        body = {"subscriber_id": impatient, "text": text}
        ids.append((await tenant.client.post("/v1/send", json=body)).json()["message_id"])
        async with asyncio.timeout(patient(30)):
            await under_way.wait()
    async with asyncio.timeout(patient(30)):
        await locked.wait()
    await asyncio.sleep(0.05)  # a cancelled call would end now
    answered.set()

    async def are_sent() -> bool:
        found = [(await tenant.client.get(f"/v1/messages/{each}")).json() for each in ids]
        return all(each["status"] == "sent" for each in found)

    await until(are_sent, timeout_s=20)
    assert channel.texts == ["first", "second"]
