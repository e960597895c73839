"""Questions and codes end on time, also when the service is stopped and started in between."""

from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from msgsvc_auth import plugin

LATE = "This sign-in request is no longer valid. Please start again on the site."


class Restarted:
    """The service after a restart, with a client and the person who was there before."""

    def __init__(self, service, client, person):
        self.client = client
        self.person = replace(person, service=service)

    async def status(self, session_id):
        return (await self.client.get(f"/v1/auth/session/{session_id}/status")).json()

    async def verify(self, code):
        answer = await self.client.post("/v1/auth/verify", json={"code": code})
        return answer.status_code, answer.json().get("code")


@pytest.fixture
async def restart(service, make_service, client, ann):
    """`await restart()` stops the service, and starts another on its database with its keys."""
    clients = []

    async def restart():
        await service.stop()
        again = await make_service(
            extra_plugins=[("auth", plugin)], database_url=service.settings.database_url
        )
        transport = httpx2.ASGITransport(app=again.app)
        clients.append(
            httpx2.AsyncClient(
                transport=transport, base_url=client.base_url, headers=client.headers
            )
        )
        return Restarted(again, clients[-1], ann)

    yield restart
    for each in clients:
        await each.aclose()


@pytest.fixture
async def session(client, link):
    body = {"state": "xyz", "callback_url": link["callback_url"]}
    return (await client.post("/v1/auth/session", json=body)).json()


@pytest.mark.parametrize(
    ("seconds", "polled", "verified"),
    [
        (299, ("confirmed", 1), (200, None)),
        (301, ("expired", 0), (400, "auth_code_expired")),
    ],
)
async def test_a_code_ends_after_300_seconds_over_a_restart(
    restart, sign_in, ann, clock, seconds, polled, verified
):
    signed_in = await sign_in(ann)
    clock.advance(seconds)

    after = await restart()

    status = await after.status(signed_in["session_id"])
    assert (status["status"], status["expires_in"]) == polled
    assert status.get("code") == (signed_in["code"] if seconds < 300 else None)
    assert await after.verify(signed_in["code"]) == verified


@pytest.mark.parametrize(
    ("seconds", "status", "said"),
    [(599, "confirmed", "You are signed in to Shop."), (601, "expired", LATE)],
)
async def test_a_question_ends_after_600_seconds_over_a_restart(
    restart, session, ann, clock, seconds, status, said
):
    question = await ann.open(session["links"]["messenger_a"])
    clock.advance(seconds)

    after = await restart()
    await after.person.press_data(ann.button(question, "Yes").data, question.message_ref)

    assert (await after.status(session["session_id"]))["status"] == status
    [edit] = after.person.channel.edited
    assert (edit.message_ref, edit.message.text) == (question.message_ref, said)


@pytest.mark.parametrize(("seconds", "status"), [(599, "pending"), (601, "expired")])
async def test_a_question_that_nobody_opened_ends_as_well(
    restart, session, ann, clock, seconds, status
):
    clock.advance(seconds)

    after = await restart()
    await after.person.open(session["links"]["messenger_a"])

    assert (await after.status(session["session_id"]))["status"] == status
    asked = after.person.shown.message.text.startswith("Sign in to Shop?")
    assert asked == (status == "pending")


async def test_a_code_lives_from_its_yes_and_not_from_the_question(restart, session, ann, clock):
    question = await ann.open(session["links"]["messenger_a"])
    clock.advance(599)
    await ann.press(question, "Yes")
    [[back]] = ann.shown.message.buttons
    code = parse_qs(urlsplit(back.url).query)["code"][0]
    clock.advance(299)

    after = await restart()

    assert (await after.status(session["session_id"]))["code"] == code
    assert await after.verify(code) == (200, None)
    assert await after.verify(code) == (409, "auth_code_used")


async def test_numbers_to_pick_from_are_the_same_after_a_restart(restart, client, ann):
    session = (await client.post("/v1/auth/session", json={"number_matching": True})).json()
    before = await ann.open(session["links"]["messenger_a"])

    after = await restart()
    again = await after.person.open(session["links"]["messenger_a"])

    labels = [
        [button.text for button in question.message.buttons[0]] for question in (before, again)
    ]
    assert labels[0] == labels[1]
