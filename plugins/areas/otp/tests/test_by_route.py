"""Codes by a route: the same code on one channel after another, until it is given."""

from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import pytest

from msgsvc_core.channels import Capabilities, ChannelUser, DeliveryError, Reason
from msgsvc_core.jobs import NewJob
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, RecordingChannel, settled
from msgsvc_devkit.fixtures import Tenant
from msgsvc_otp import store

from .conftest import Person, refusal, shown

A, B = "messenger_a", "messenger_b"
STEPS = [{"channel": A, "within_seconds": 60}, {"channel": B}]


@pytest.fixture
def ann_b(service: Service) -> Person:
    """Ann on the second messenger."""
    return Person(service, B, ChannelUser("2001", "Ann", "ann_k", "en"))


@pytest.fixture
async def ids(
    client: httpx2.AsyncClient, service: Service, ann: Person, ann_b: Person
) -> list[str]:
    """The subscribers that Ann is, on both messengers."""
    found = [await ann.subscribe(client), await ann_b.subscribe(client)]
    for each in found:
        answer = await client.patch(f"/v1/subscribers/{each}", json={"external_id": "ann"})
        assert answer.status_code == 200, answer.text
    return found


Ask = Callable[..., Awaitable[httpx2.Response]]


@pytest.fixture
async def ask(client: httpx2.AsyncClient, service: Service, ids: list[str]) -> Ask:
    """`await ask()` has a code sent to Ann by a route."""

    async def post(
        steps: list[dict[str, Any]] = STEPS, *, name: str = "Codes", **body: Any
    ) -> httpx2.Response:
        made = await client.post("/v1/routes", json={"name": name, "steps": steps})
        routes = (await client.get("/v1/routes")).json()["data"]
        assert made.status_code in {201, 409}, made.text
        route_id = next(each["route_id"] for each in routes if each["name"] == name)
        answer = await client.post(
            "/v1/otp/send", json={"external_id": "ann", "route_id": route_id, **body}
        )
        await settled(service)
        return answer

    return post


def channel_of(service: Service, name: str) -> RecordingChannel:
    channel = service.channels[name]
    assert isinstance(channel, RecordingChannel)
    return channel


def number(person: Person) -> int:
    """How many codes they got."""
    return sum("code for" in each.message.text for each in person.messages)


async def wait(service: Service, clock: FakeClock, seconds: float) -> None:
    clock.advance(seconds)
    await settled(service)


async def sealed(service: Service, otp_id: str) -> Any:
    async with service.db.read() as tx:
        return await tx.fetch_val(
            "SELECT sealed FROM otp_codes WHERE otp_id = :otp_id", {"otp_id": otp_id}
        )


@pytest.mark.both_databases
async def test_the_same_code_goes_to_the_next_channel_after_the_step_s_time(
    client: httpx2.AsyncClient,
    service: Service,
    clock: FakeClock,
    ann: Person,
    ann_b: Person,
    ids: list[str],
    ask: Ask,
    seen: Any,
) -> None:
    answer = await ask()
    otp_id = answer.json()["otp_id"]
    await wait(service, clock, 59)
    before = (number(ann), number(ann_b))
    is_kept = await sealed(service, otp_id) is not None
    await wait(service, clock, 2)

    assert answer.status_code == 202
    assert answer.json()["route_id"].startswith("rte_")
    assert before == (1, 0)
    assert (number(ann), number(ann_b)) == (1, 1)
    assert ann.code == ann_b.code
    assert (await shown(client, otp_id))["subscriber_id"] == ids[1]
    assert (await shown(client, otp_id))["route_id"] == answer.json()["route_id"]
    assert is_kept
    assert await sealed(service, otp_id) is None
    assert await seen() == [("otp.sent", 3), ("otp.sent", 3)]


@pytest.mark.both_databases
async def test_a_code_that_was_given_ends_the_route(
    service: Service,
    clock: FakeClock,
    ann: Person,
    ann_b: Person,
    ids: list[str],
    ask: Ask,
    verify: Any,
) -> None:
    otp_id = (await ask()).json()["otp_id"]

    verified = await verify(external_id="ann", code=ann.code)
    await wait(service, clock, 61)

    assert verified.status_code == 200, verified.text
    assert verified.json()["subscriber_id"] == ids[0]
    assert (number(ann), number(ann_b)) == (1, 0)
    assert await sealed(service, otp_id) is None


@pytest.mark.both_databases
@pytest.mark.parametrize("reason", [Reason.USER_BLOCKED_BOT, Reason.INVALID_MESSAGE])
async def test_a_failure_goes_on_at_once(
    client: httpx2.AsyncClient,
    service: Service,
    ann: Person,
    ann_b: Person,
    ids: list[str],
    ask: Ask,
    reason: Reason,
) -> None:
    channel_of(service, A).failures.append(DeliveryError(reason, "no"))

    otp_id = (await ask()).json()["otp_id"]

    assert (number(ann), number(ann_b)) == (0, 1)
    state = await shown(client, otp_id)
    assert (state["status"], state["reason"], state["subscriber_id"]) == ("sent", None, ids[1])
    person = (await client.get(f"/v1/subscribers/{ids[0]}")).json()
    is_blocked = reason is Reason.USER_BLOCKED_BOT
    assert person["status"] == ("blocked" if is_blocked else "active")


async def test_a_failure_on_every_channel_is_told_of(
    client: httpx2.AsyncClient, service: Service, ids: list[str], ask: Ask
) -> None:
    for name in (A, B):
        channel_of(service, name).failures.append(DeliveryError(Reason.INVALID_MESSAGE, "no"))

    otp_id = (await ask()).json()["otp_id"]

    state = await shown(client, otp_id)
    assert (state["status"], state["reason"]) == ("failed", "invalid_message")
    assert await sealed(service, otp_id) is None


async def test_a_step_that_does_not_reach_the_person_is_passed_over(
    client: httpx2.AsyncClient, ann: Person, ann_b: Person, ids: list[str], ask: Ask
) -> None:
    await client.delete(f"/v1/subscribers/{ids[0]}")
    first = await ask()
    await client.delete(f"/v1/subscribers/{ids[1]}")

    second = await ask(purpose="pay")

    assert first.status_code == 202
    assert (number(ann), number(ann_b)) == (0, 1)
    assert refusal(second) == (409, "conflict")
    reasons = "messenger_a (unsubscribed), messenger_b (unsubscribed)"
    assert second.json()["error"].endswith(reasons)


@pytest.mark.both_databases
async def test_guesses_are_counted_over_all_channels_of_the_person(
    make_service: Any, ids: list[str], ask: Ask, verify: Any, ann_b: Person, ann: Person
) -> None:
    await ask(max_attempts=10)

    first = [await verify(subscriber_id=ids[0], code=ann.wrong) for _ in range(10)]
    # Another code, to the other messenger alone: only the first guess at it is taken.
    await ask([{"channel": B}], name="Other", purpose="pay", max_attempts=10)
    second = [await verify(subscriber_id=ids[1], purpose="pay", code=ann_b.wrong) for _ in range(2)]

    assert [refusal(each) for each in first] == [(400, "otp_invalid")] * 10
    assert [refusal(each) for each in second] == [(400, "otp_invalid"), (429, "otp_rate_limited")]


@pytest.mark.both_databases
async def test_codes_are_counted_over_all_channels_of_the_person(
    client: httpx2.AsyncClient, ids: list[str], ask: Ask
) -> None:
    await ask()

    again = await ask([{"channel": B}], name="Other")
    alone = await client.post("/v1/otp/send", json={"subscriber_id": ids[1]})
    others = [await ask(purpose=f"p{number}") for number in range(5)]

    assert refusal(again) == (425, "too_early")
    assert refusal(alone) == (425, "too_early")
    assert [each.status_code for each in others] == [202, 202, 202, 202, 429]


@pytest.mark.both_databases
async def test_a_newer_code_on_any_channel_ends_the_route(
    client: httpx2.AsyncClient,
    service: Service,
    clock: FakeClock,
    ann: Person,
    ann_b: Person,
    ids: list[str],
    ask: Ask,
) -> None:
    otp_id = (await ask()).json()["otp_id"]
    await wait(service, clock, 31)

    newer = await client.post("/v1/otp/send", json={"subscriber_id": ids[1]})
    await settled(service)
    await wait(service, clock, 61)

    assert newer.status_code == 202
    assert (await shown(client, otp_id))["status"] == "superseded"
    assert (number(ann), number(ann_b)) == (1, 1)


@pytest.mark.parametrize(("seconds", "is_verified"), [(0, True), (61, False)])
async def test_an_address_is_verified_by_a_code_that_went_out_there_alone(
    service: Service,
    client: httpx2.AsyncClient,
    tenant: Tenant,
    clock: FakeClock,
    ann_b: Person,
    seconds: int,
    is_verified: bool,
    verify: Any,
) -> None:
    channel = channel_of(service, A)
    channel.capabilities = Capabilities(addresses=True, identity="mailbox", buttons="pages")
    body = {"channel": A, "address": "ann@example.com", "external_id": "ann"}
    by_mail = (await client.post("/v1/subscribers", json=body)).json()["subscriber_id"]
    other = await ann_b.subscribe(client)
    await client.patch(f"/v1/subscribers/{other}", json={"external_id": "ann"})
    route = await client.post("/v1/routes", json={"name": "Codes", "steps": STEPS})
    asked = {"external_id": "ann", "route_id": route.json()["route_id"]}
    await client.post("/v1/otp/send", json=asked)
    await settled(service)
    await wait(service, clock, seconds)
    code = channel.sent[-1].message.text.splitlines()[2]

    answer = await verify(external_id="ann", code=code)

    assert answer.status_code == 200, answer.text
    async with service.db.read() as tx:
        contacts = await service.contacts.find(tx, tenant.project.project_id, by_mail)
    assert (contacts.email == "ann@example.com") is is_verified
    assert answer.json()["proves"] == ("mailbox" if is_verified else None)


async def test_an_address_that_did_not_get_the_code_is_not_verified(
    service: Service,
    client: httpx2.AsyncClient,
    tenant: Tenant,
    clock: FakeClock,
    ann_b: Person,
    verify: Any,
) -> None:
    channel = channel_of(service, A)
    channel.capabilities = Capabilities(addresses=True, identity="mailbox", buttons="pages")
    body = {"channel": A, "address": "ann@example.com", "external_id": "ann"}
    by_mail = (await client.post("/v1/subscribers", json=body)).json()["subscriber_id"]
    other = await ann_b.subscribe(client)
    await client.patch(f"/v1/subscribers/{other}", json={"external_id": "ann"})
    steps = [{"channel": B, "within_seconds": 60}, {"channel": A}]
    route = await client.post("/v1/routes", json={"name": "Codes", "steps": steps})
    await client.post(
        "/v1/otp/send", json={"external_id": "ann", "route_id": route.json()["route_id"]}
    )
    await settled(service)
    channel.failures = [DeliveryError(Reason.INVALID_MESSAGE, "no such mailbox")]
    await wait(service, clock, 61)

    answer = await verify(external_id="ann", code=ann_b.code)

    assert answer.status_code == 200, answer.text
    async with service.db.read() as tx:
        contacts = await service.contacts.find(tx, tenant.project.project_id, by_mail)
    assert contacts.email is None


async def test_a_job_that_runs_twice_or_late_sends_nothing_again(
    service: Service, clock: FakeClock, ann: Person, ann_b: Person, ids: list[str], ask: Ask
) -> None:
    otp_id = (await ask([*STEPS[:1], {"channel": B, "within_seconds": 60}])).json()["otp_id"]
    async with service.db.read() as tx:
        project_id = await tx.fetch_val("SELECT project_id FROM otp_codes", {})
    payload = {"project_id": project_id, "otp_id": otp_id, "step": 0}
    for _ in range(2):
        async with service.db.transaction() as tx:
            await service.jobs.enqueue(tx, NewJob("otp.step", payload))
        await settled(service)
    await wait(service, clock, 61)

    assert (number(ann), number(ann_b)) == (1, 1)


async def test_a_code_that_ran_out_is_sent_nowhere_and_not_kept(
    service: Service, clock: FakeClock, ann_b: Person, ids: list[str], ask: Ask
) -> None:
    steps = [{"channel": A, "within_seconds": 600}, {"channel": B}]
    otp_id = (await ask(steps, ttl_minutes=1)).json()["otp_id"]

    await wait(service, clock, 61)

    assert number(ann_b) == 0
    assert await sealed(service, otp_id) is None


async def test_erasing_one_subscriber_leaves_the_code_of_the_others(
    client: httpx2.AsyncClient,
    service: Service,
    clock: FakeClock,
    ann: Person,
    ids: list[str],
    ask: Ask,
    verify: Any,
) -> None:
    otp_id = (await ask()).json()["otp_id"]

    await client.delete(f"/v1/subscribers/{ids[1]}?erase=true")
    await wait(service, clock, 61)

    assert (await shown(client, otp_id))["status"] == "sent"
    assert (await verify(otp_id=otp_id, code=ann.code)).status_code == 200


async def test_a_route_that_is_changed_or_deleted_is_still_gone_to_its_end(
    client: httpx2.AsyncClient, service: Service, clock: FakeClock, ann_b: Person, ask: Ask
) -> None:
    route_id = (await ask()).json()["route_id"]

    await client.delete(f"/v1/routes/{route_id}")
    await wait(service, clock, 61)

    assert number(ann_b) == 1


@pytest.mark.parametrize("other", [{"channel": A}, {"channel": A, "address": "ann@example.com"}])
async def test_a_route_stands_beside_no_channel(ask: Ask, other: dict[str, str]) -> None:
    answer = await ask(**other)

    assert refusal(answer) == (400, "validation_failed")
    assert answer.json()["error"].startswith("channel: can't be combined with route")


async def test_a_route_of_nobody_is_not_found(
    client: httpx2.AsyncClient, ids: list[str], ask: Ask
) -> None:
    unknown = {"external_id": "ann", "route_id": "rte_0000000000000000000000"}
    nobody = await ask(external_id="nobody")

    assert refusal(await client.post("/v1/otp/send", json=unknown)) == (404, "not_found")
    assert refusal(nobody) == (404, "subscriber_not_found")


@pytest.mark.database_file
async def test_two_workers_that_go_on_at_once_send_one_message(
    service: Service, ids: list[str], ask: Ask
) -> None:
    """The conditional UPDATE: the second of two finds the code moved."""
    otp_id = (await ask()).json()["otp_id"]
    async with service.db.transaction() as tx:
        project_id = await tx.fetch_val("SELECT project_id FROM otp_codes", {})
        code = await store.find(tx, project_id, otp_id)
        assert code is not None
        now_ms = service.clock.now_ms()
        moves = [
            await store.move(tx, code, step=1, subscriber_id=ids[1], is_last=True, now_ms=now_ms)
            for _ in range(2)
        ]

    assert [move is not None for move in moves] == [True, False]
