"""`?wait=` holds the status until the person decides."""

import asyncio

import pytest

from msgsvc_auth import changes, plugin
from msgsvc_auth.service import SignIn
from msgsvc_devkit import until


@pytest.fixture
async def session(client):
    return (await client.post("/v1/auth/session", json={})).json()


def held_requests(service, session):
    """How many requests wait for the session."""
    watched = service.get(SignIn)._changes._waiting.items()
    return sum(len(held) for key, held in watched if key[1] == session["session_id"])


async def begin_to_wait(client, session, service):
    """A request that is being held; returns once it is."""
    before = held_requests(service, session)
    path = f"/v1/auth/session/{session['session_id']}/status?wait=25"
    request = asyncio.create_task(client.get(path))

    async def held():
        return held_requests(service, session) > before

    await until(held)
    return request


@pytest.mark.parametrize(("choice", "status"), [("Yes", "confirmed"), ("Cancel", "denied")])
async def test_waiting_request_is_answered_when_the_person_decides(
    service, client, session, ann, monkeypatch, choice, status
):
    # It must be woken: looking again would take longer than the test.
    monkeypatch.setattr(changes, "REREAD_S", 3600)
    question = await ann.open(session["links"]["messenger_a"])
    request = await begin_to_wait(client, session, service)

    await ann.press(question, choice)

    async with asyncio.timeout(20):
        assert (await request).json()["status"] == status


@pytest.mark.database_file
@pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
async def test_waiting_request_is_told_of_a_yes_in_another_process(
    service, make_service, client, session, ann, monkeypatch
):
    # It must be told, as PostgreSQL can: looking again would take longer than the test.
    monkeypatch.setattr(changes, "REREAD_S", 3600)
    elsewhere = await make_service(
        extra_plugins=[("auth", plugin)], database_url=service.settings.database_url
    )
    question = await ann.open(session["links"]["messenger_a"])
    request = await begin_to_wait(client, session, service)
    async with asyncio.timeout(10):
        await service.db._listener.open.wait()
    yes = question.message.buttons[0][0].data

    await elsewhere.inbound.receive("messenger_a", ann.pressing(yes, question.message_ref))

    async with asyncio.timeout(10):
        assert (await request).json()["status"] == "confirmed"


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_waiting_request_hears_of_a_yes_in_another_process(
    service, make_service, client, session, ann, monkeypatch
):
    monkeypatch.setattr(changes, "REREAD_S", 0.05)
    elsewhere = await make_service(
        extra_plugins=[("auth", plugin)], database_url=service.settings.database_url
    )
    question = await ann.open(session["links"]["messenger_a"])
    request = await begin_to_wait(client, session, service)
    yes = question.message.buttons[0][0].data

    await elsewhere.inbound.receive("messenger_a", ann.pressing(yes, question.message_ref))

    async with asyncio.timeout(20):
        assert (await request).json()["status"] == "confirmed"


async def test_waiting_request_hears_of_the_sessions_end(
    service, client, clock, session, monkeypatch
):
    monkeypatch.setattr(changes, "REREAD_S", 0.05)
    request = await begin_to_wait(client, session, service)

    clock.advance(600)

    async with asyncio.timeout(20):
        assert (await request).json()["status"] == "expired"


async def test_waiting_request_is_answered_pending_when_its_time_is_over(service, session, tenant):
    found = await service.get(SignIn).wait(
        tenant.project.project_id, session["session_id"], timeout_s=0.05
    )

    assert found.stored_status == "pending"


async def test_request_for_a_decided_session_does_not_wait(client, ann, sign_in):
    session_id = (await sign_in(ann))["session_id"]

    async with asyncio.timeout(20):
        answer = await client.get(f"/v1/auth/session/{session_id}/status?wait=25")

    assert answer.json()["status"] == "confirmed"


async def test_more_requests_wait_than_there_are_connections(
    service, client, session, ann, monkeypatch
):
    monkeypatch.setattr(changes, "REREAD_S", 3600)
    question = await ann.open(session["links"]["messenger_a"])
    requests = [await begin_to_wait(client, session, service) for _ in range(50)]

    await ann.press(question, "Yes")
    async with asyncio.timeout(20):
        answers = await asyncio.gather(*requests)

    assert {answer.json()["status"] for answer in answers} == {"confirmed"}


async def test_waiting_request_hears_that_its_session_is_gone(
    service, client, session, monkeypatch
):
    monkeypatch.setattr(changes, "REREAD_S", 0.05)
    request = await begin_to_wait(client, session, service)

    async with service.db.transaction() as tx:
        await tx.execute("DELETE FROM auth_sessions")

    async with asyncio.timeout(20):
        assert (await request).status_code == 404


async def test_request_that_is_given_up_leaves_nothing_behind(service, client, session):
    request = await begin_to_wait(client, session, service)

    request.cancel()
    await asyncio.gather(request, return_exceptions=True)

    assert held_requests(service, session) == 0


@pytest.mark.shared_service
@pytest.mark.parametrize("wait", ["26", "-1", "soon", "1.5"])
async def test_wait_beyond_25_seconds_is_refused(client, session, wait):
    response = await client.get(f"/v1/auth/session/{session['session_id']}/status?wait={wait}")

    assert response.status_code == 400
    assert response.json()["error"].startswith("wait: ")
