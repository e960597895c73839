"""Messages by a route: one message, tried on one channel after the other."""

from dataclasses import replace
from typing import Any

import httpx2
import pytest

from msgsvc_core.channels import (
    Blocked,
    ButtonPressed,
    ChannelHealth,
    ChannelUser,
    DeliveryError,
    DeliveryReported,
    MessageReceived,
    OutgoingMessage,
    Reason,
)
from msgsvc_core.channels.health.outages import ChannelOutages
from msgsvc_core.channels.outbound.gates import OutboundGates
from msgsvc_core.jobs import NewJob
from msgsvc_core.messages.outcomes import MessageOutcomes
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, RecordingChannel, settled
from msgsvc_devkit.contexts import claimed
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from tests.api.conftest import CheckError
from tests.api.reading import events_named
from tests.api.subscribing import Subscribe

pytestmark = pytest.mark.both_databases

CHANNELS = ("messenger_a", "messenger_b", "messenger_c")
PERSON = ChannelUser("user-Ann", "Ann", "ann", "en")


class Stage:
    """Ann on three channels that report, and a project with a route."""

    def __init__(self, service: Service, tenant: Tenant, clock: FakeClock) -> None:
        self.service, self.client, self.clock = service, tenant.client, clock
        self._numbers = 0

    def channel(self, number: int) -> RecordingChannel:
        found = self.service.channels[CHANNELS[number]]
        assert isinstance(found, RecordingChannel)
        return found

    async def route(self, *steps: dict[str, Any]) -> str:
        given = [{"channel": name, **step} for name, step in zip(CHANNELS, steps, strict=False)]
        self._numbers += 1
        body = {"name": f"Route {self._numbers}", "steps": given}
        answer = await self.client.post("/v1/routes", json=body)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["route_id"])

    async def send(self, route: str, **fields: Any) -> str:
        body = {"external_id": "ann", "route_id": route, "text": "Hi", **fields}
        answer = await self.client.post("/v1/send", json=body)
        assert answer.status_code == 202, answer.text
        await settled(self.service)
        return str(answer.json()["message_id"])

    async def shown(self, message_id: str) -> dict[str, Any]:
        return dict((await self.client.get(f"/v1/messages/{message_id}")).json())

    async def wait(self, seconds: int) -> None:
        self.clock.advance(seconds)
        await settled(self.service)

    async def report(self, number: int, state: Any, **fields: Any) -> None:
        channel = self.channel(number)
        self._numbers += 1
        report = DeliveryReported(
            update_id=f"r{self._numbers}",
            message_ref=channel.sent[-1].message_ref,
            state=state,
            **fields,
        )
        await self.service.inbound.receive(channel.key, report)
        await settled(self.service)

    @property
    def texts(self) -> list[list[str]]:
        return [self.channel(number).texts for number in range(len(CHANNELS))]


def refused(reason: Reason = Reason.INVALID_MESSAGE) -> DeliveryError:
    return DeliveryError(reason, "no such thing")


def past(message: dict[str, Any]) -> list[tuple[str, str, str | None]]:
    return [(each["channel"], each["status"], each["reason"]) for each in message["past_steps"]]


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    return await make_service(channels={name: {"plugin": "recording"} for name in CHANNELS})


@pytest.fixture
async def stage(service: Service, tenant: Tenant, clock: FakeClock, subscribe: Subscribe) -> Stage:
    stage = Stage(service, tenant, clock)
    for number, name in enumerate(CHANNELS):
        subscriber_id = await subscribe("Ann", channel=name)
        path = f"/v1/subscribers/{subscriber_id}"
        assert (await tenant.client.patch(path, json={"external_id": "ann"})).status_code == 200
        channel = stage.channel(number)
        channel.sent.clear()
        channel.capabilities = replace(
            channel.capabilities, repeatable=True, reports=frozenset({"delivered", "read"})
        )
    return stage


async def outcomes(stage: Stage) -> list[tuple[str, str]]:
    """The final events: on which channel, and what they say."""
    sent = await events_named(stage.client, "delivery.success")
    failed = await events_named(stage.client, "delivery.failed")
    return [
        *((event["channel"], "sent") for event in sent),
        *((event["channel"], event["status"]) for event in failed),
    ]


async def test_the_first_channel_that_takes_it_ends_the_route(stage: Stage) -> None:
    message_id = await stage.send(route := await stage.route({}, {}, {}))
    message = await stage.shown(message_id)

    assert stage.texts == [["Hi"], [], []]
    assert (message["status"], message["channel"]) == ("sent", "messenger_a")
    assert (message["route_id"], message["waits_for"]) == (route, None)
    assert past(message) == [("messenger_a", "sent", None)]
    assert await outcomes(stage) == [("messenger_a", "sent")]


async def test_a_refused_message_goes_on_at_once_and_remains_one(stage: Stage) -> None:
    stage.channel(0).failures = [refused(Reason.USER_BLOCKED_BOT)]
    stage.channel(1).failures = [refused()]
    message_id = await stage.send(await stage.route({}, {}, {}), metadata={"n": 1})
    message = await stage.shown(message_id)

    assert stage.texts == [[], [], ["Hi"]]
    assert (message["status"], message["channel"]) == ("sent", "messenger_c")
    assert past(message) == [
        ("messenger_a", "failed", "user_blocked_bot"),
        ("messenger_b", "failed", "invalid_message"),
        ("messenger_c", "sent", None),
    ]
    assert await outcomes(stage) == [("messenger_c", "sent")]
    (event,) = await events_named(stage.client, "delivery.success")
    assert (event["message_id"], event["metadata"]) == (message_id, {"n": 1})


async def test_who_blocked_a_bot_is_unsubscribed_there_and_reached_elsewhere(stage: Stage) -> None:
    stage.channel(0).failures = [refused(Reason.USER_BLOCKED_BOT)]
    route = await stage.route({}, {})
    await stage.send(route)
    second = await stage.shown(await stage.send(route))

    assert stage.texts == [[], ["Hi", "Hi"], []]
    assert past(second) == [("messenger_a", "skipped", "blocked"), ("messenger_b", "sent", None)]


async def test_when_every_step_has_failed_the_message_has_with_all_reasons(stage: Stage) -> None:
    for number in range(3):
        stage.channel(number).failures = [refused()]
    message = await stage.shown(await stage.send(await stage.route({}, {}, {})))

    assert (message["status"], message["reason"]) == ("failed", "invalid_message")
    assert message["finished_at"] is not None
    assert message["error"] == "; ".join(f"{name}: no such thing" for name in CHANNELS)
    assert [status for _, status, _ in past(message)] == ["failed"] * 3
    assert await outcomes(stage) == [("messenger_c", "failed")]


async def test_what_is_not_reported_in_its_time_goes_on(stage: Stage) -> None:
    message_id = await stage.send(
        await stage.route(
            {"until": "delivered", "within_seconds": 60},
            {"until": "read", "within_seconds": 60},
            {},
        )
    )
    waiting = await stage.shown(message_id)
    await stage.wait(59)
    before = stage.texts
    await stage.wait(2)
    second = await stage.shown(message_id)
    await stage.report(1, "delivered")
    await stage.wait(61)
    third = await stage.shown(message_id)

    assert (waiting["status"], waiting["waits_for"]) == ("sending", "delivered")
    assert past(waiting) == [("messenger_a", "sent", None)]
    assert before == [["Hi"], [], []]
    assert (second["channel"], second["waits_for"]) == ("messenger_b", "read")
    assert stage.texts == [["Hi"], ["Hi"], ["Hi"]]
    assert (third["status"], third["channel"]) == ("sent", "messenger_c")
    assert third["past_steps"][1]["delivered_at"] is not None
    assert await outcomes(stage) == [("messenger_c", "sent")]


@pytest.mark.parametrize(
    ("until", "state"), [("delivered", "delivered"), ("delivered", "read"), ("read", "read")]
)
async def test_a_report_in_time_ends_the_route(stage: Stage, until: str, state: str) -> None:
    message_id = await stage.send(await stage.route({"until": until, "within_seconds": 60}, {}))
    await stage.report(0, state)
    ended = await stage.shown(message_id)
    await stage.wait(120)

    assert (ended["status"], ended["waits_for"]) == ("sent", None)
    assert ended["delivered_at"] is not None
    assert await stage.shown(message_id) == ended
    assert stage.texts == [["Hi"], [], []]
    assert await outcomes(stage) == [("messenger_a", "sent")]


@pytest.mark.both_databases
async def test_a_report_of_everything_up_to_a_later_message_ends_the_routes_before(
    stage: Stage,
) -> None:
    route = await stage.route({"until": "read", "within_seconds": 600}, {})
    first, second = await stage.send(route), await stage.send(route)
    third = await stage.send(await stage.route({"until": "delivered", "within_seconds": 600}, {}))
    await stage.wait(1)
    of_ann = {"chat_id": "chat-Ann", "user": ChannelUser("user-Ann", "Ann")}
    await stage.report(0, "read", up_to_ms=stage.clock.now_ms(), **of_ann)
    messages = [await stage.shown(message_id) for message_id in (first, second, third)]
    read = await events_named(stage.client, "delivery.read")

    assert [message["status"] for message in messages] == ["sent"] * 3
    assert all(message["past_steps"][0]["read_at"] for message in messages)
    assert sorted(event["message_id"] for event in read) == sorted([first, second, third])


async def test_a_late_report_of_an_earlier_copy_ends_the_route(stage: Stage) -> None:
    wait = {"until": "delivered", "within_seconds": 60}
    message_id = await stage.send(await stage.route(wait, wait, {}))
    await stage.wait(61)
    await stage.report(0, "delivered")
    message = await stage.shown(message_id)
    await stage.wait(120)

    assert stage.texts == [["Hi"], ["Hi"], []]
    assert (message["status"], message["channel"]) == ("sent", "messenger_a")
    assert message["delivered_at"] is not None
    assert past(message) == [("messenger_a", "sent", None), ("messenger_b", "sent", None)]
    assert await stage.shown(message_id) == message
    assert await outcomes(stage) == [("messenger_a", "sent")]


async def test_a_reported_failure_goes_on_before_the_time_is_over(stage: Stage) -> None:
    message_id = await stage.send(
        await stage.route({"until": "delivered", "within_seconds": 60}, {})
    )
    await stage.report(0, "failed", reason=Reason.CHAT_NOT_FOUND, detail="no phone")
    message = await stage.shown(message_id)

    assert stage.texts == [["Hi"], ["Hi"], []]
    assert past(message) == [
        ("messenger_a", "failed", "chat_not_found"),
        ("messenger_b", "sent", None),
    ]
    assert await outcomes(stage) == [("messenger_b", "sent")]


async def test_what_nobody_reports_at_the_end_is_sent_as_it_was(stage: Stage) -> None:
    stage.channel(1).failures = [refused()]
    message_id = await stage.send(await stage.route({"until": "read", "within_seconds": 60}, {}))
    await stage.wait(61)
    message = await stage.shown(message_id)

    assert (message["status"], message["channel"]) == ("sent", "messenger_a")
    assert past(message) == [
        ("messenger_a", "sent", None),
        ("messenger_b", "failed", "invalid_message"),
    ]
    assert await outcomes(stage) == [("messenger_a", "sent")]


@pytest.mark.parametrize("how", ["text", "button"])
async def test_an_answer_ends_the_route(stage: Stage, how: str) -> None:
    message_id = await stage.send(
        await stage.route({"until": "answered", "within_seconds": 60}, {}),
        buttons=[[{"text": "Yes", "data": "yes"}]],
    )
    about: dict[str, Any] = {"update_id": "u1", "chat_id": "chat-Ann", "user": PERSON}
    sent = stage.channel(0).sent[-1]
    update = (
        MessageReceived(**about, text="On my way")
        if how == "text"
        else ButtonPressed(**about, data="yes", message_ref=sent.message_ref, button_ref="b")
    )
    await stage.service.inbound.receive("messenger_a", update)
    await stage.wait(120)
    message = await stage.shown(message_id)

    assert (message["status"], message["channel"]) == ("sent", "messenger_a")
    assert stage.texts[1] == []
    assert len(await events_named(stage.client, "button.clicked")) == (how == "button")


async def test_a_button_of_an_earlier_copy_still_works(stage: Stage) -> None:
    message_id = await stage.send(
        await stage.route(
            {"until": "answered", "within_seconds": 60},
            {"until": "answered", "within_seconds": 60},
            {},
        ),
        buttons=[[{"text": "Yes", "data": "yes"}]],
    )
    await stage.wait(61)
    press = ButtonPressed(
        update_id="u1",
        chat_id="chat-Ann",
        user=PERSON,
        data="yes",
        message_ref=stage.channel(0).sent[-1].message_ref,
        button_ref="b",
    )
    await stage.service.inbound.receive("messenger_a", press)
    await stage.wait(61)
    message = await stage.shown(message_id)

    assert stage.texts[2] == []
    assert (message["status"], message["channel"]) == ("sent", "messenger_a")
    (event,) = await events_named(stage.client, "button.clicked")
    assert (event["message_id"], event["channel"]) == (message_id, "messenger_a")


@pytest.mark.parametrize("on_unknown", ["stop", "continue"])
async def test_a_lost_answer_stops_the_route_unless_it_goes_on(
    stage: Stage, on_unknown: str
) -> None:
    channel = stage.channel(0)
    channel.capabilities = replace(channel.capabilities, repeatable=False)
    channel.failures = [DeliveryError(Reason.PLATFORM_UNAVAILABLE, "lost", in_doubt=True)]
    message = await stage.shown(await stage.send(await stage.route({"on_unknown": on_unknown}, {})))

    if on_unknown == "stop":
        assert (message["status"], message["channel"]) == ("unknown", "messenger_a")
        assert stage.texts == [[], [], []]
    else:
        assert (message["status"], message["channel"]) == ("sent", "messenger_b")
        assert past(message)[0] == ("messenger_a", "unknown", "unknown")
    assert len(await outcomes(stage)) == 1


async def test_what_cannot_be_sent_in_its_time_goes_on_and_is_not_sent_late(stage: Stage) -> None:
    channel = stage.channel(0)
    channel.failures = [DeliveryError(Reason.RATE_LIMITED, "later", 600.0, scope="chat")]
    message_id = await stage.send(await stage.route({"within_seconds": 60}, {}))
    waiting = await stage.shown(message_id)
    await stage.wait(61)
    message = await stage.shown(message_id)
    await stage.wait(1200)

    assert waiting["status"] == "queued"
    assert past(message) == [
        ("messenger_a", "failed", "not_in_time"),
        ("messenger_b", "sent", None),
    ]
    assert stage.texts == [[], ["Hi"], []]
    assert await stage.shown(message_id) == message


async def test_a_step_out_of_its_hours_is_passed_over(stage: Stage) -> None:
    # The clock begins at noon.
    hours = {"hours": {"from": "20:00", "to": "22:00"}}
    message = await stage.shown(await stage.send(await stage.route(hours, {})))

    assert stage.texts == [[], ["Hi"], []]
    assert past(message) == [
        ("messenger_a", "skipped", "outside_hours"),
        ("messenger_b", "sent", None),
    ]


async def test_nobody_is_sent_to_who_left_before_their_step(stage: Stage) -> None:
    message_id = await stage.send(
        await stage.route({"until": "read", "within_seconds": 60}, {}, {})
    )
    left = Blocked(update_id="gone", chat_id="chat-Ann", user=PERSON)
    await stage.service.inbound.receive("messenger_b", left)
    await stage.wait(61)
    message = await stage.shown(message_id)

    assert stage.texts == [["Hi"], [], ["Hi"]]
    assert ("messenger_b", "skipped", "blocked") in past(message)


async def test_a_changed_or_deleted_route_goes_on_as_it_was(stage: Stage) -> None:
    route = await stage.route({"until": "read", "within_seconds": 60}, {})
    message_id = await stage.send(route)
    assert (await stage.client.delete(f"/v1/routes/{route}")).status_code == 204
    await stage.wait(61)

    assert stage.texts == [["Hi"], ["Hi"], []]
    assert (await stage.shown(message_id))["route_id"] == route


async def test_a_batch_goes_by_routes_too_and_each_message_counts_once(stage: Stage) -> None:
    route = await stage.route({}, {})
    stage.channel(0).failures = [refused()]
    one = {"external_id": "ann", "route_id": route, "text": "Hi"}
    body = {"messages": [one, one, {**one, "route_id": "rte_none"}]}
    answer = (await stage.client.post("/v1/send/batch", json=body)).json()
    await settled(stage.service)
    batch = (await stage.client.get(f"/v1/batches/{answer['batch_id']}")).json()

    assert (answer["accepted"], [each["code"] for each in answer["rejected"]]) == (2, ["not_found"])
    assert (batch["sent"], batch["failed"], batch["skipped"]) == (2, 0, 0)
    assert len(await events_named(stage.client, "batch.completed")) == 1
    assert len(await events_named(stage.client, "delivery.success")) == 2
    listed = (await stage.client.get(f"/v1/messages?batch_id={answer['batch_id']}")).json()["data"]
    assert sorted(len(each["past_steps"]) for each in listed) == [1, 2]


@pytest.mark.parametrize(
    ("fields", "status", "code", "said"),
    [
        ({"channel": "messenger_a"}, 400, "validation_failed", "channel"),
        ({"subscriber_id": "sub_1"}, 400, "validation_failed", "subscriber_id"),
        ({"external_id": None}, 400, "validation_failed", "external_id"),
        ({"route_id": "rte_none"}, 404, "not_found", "rte_none"),
        ({"external_id": "nobody"}, 404, "subscriber_not_found", "nobody"),
    ],
)
async def test_a_body_that_no_route_can_take_is_refused(
    stage: Stage, check_error: CheckError, fields: dict[str, Any], status: int, code: str, said: str
) -> None:
    body = {"external_id": "ann", "route_id": await stage.route({}), "text": "Hi", **fields}
    given = {name: value for name, value in body.items() if value is not None}
    error = check_error(await stage.client.post("/v1/send", json=given), status, code)

    assert said in error["error"]


async def test_who_is_reached_by_no_step_now_is_refused_with_the_reasons(
    stage: Stage, check_error: CheckError
) -> None:
    await stage.service.inbound.receive(
        "messenger_a", Blocked(update_id="gone", chat_id="chat-Ann", user=PERSON)
    )
    body = {"external_id": "ann", "route_id": await stage.route({}), "text": "Hi"}
    error = check_error(await stage.client.post("/v1/send", json=body), 409, "conflict")

    assert "messenger_a: blocked" in error["error"]


async def test_a_message_by_a_route_is_cancelled_while_it_is_queued_and_never_edited(
    stage: Stage, client: httpx2.AsyncClient, check_error: CheckError
) -> None:
    stage.channel(0).failures = [DeliveryError(Reason.RATE_LIMITED, "later", 600.0, scope="chat")]
    message_id = await stage.send(route := await stage.route({"within_seconds": 60}, {}))
    path = f"/v1/messages/{message_id}"
    check_error(await client.post(f"{path}/edit", json={"text": "Ho"}), 409, "conflict")
    deleted = (await client.delete(path)).json()
    await stage.wait(700)
    other = await stage.send(route)
    check_error(await client.delete(f"/v1/messages/{other}"), 409, "conflict")

    assert deleted["status"] == "skipped"
    assert stage.texts[1] == []
    assert (await stage.shown(message_id))["status"] == "skipped"


async def test_an_erased_person_has_no_copies(stage: Stage) -> None:
    stage.channel(0).failures = [refused()]
    message_id = await stage.send(await stage.route({}, {}))
    for step in (await stage.shown(message_id))["past_steps"]:
        answer = await stage.client.delete(f"/v1/subscribers/{step['subscriber_id']}?erase=true")
        assert answer.status_code in {202, 204}, answer.text
        await settled(stage.service)
    async with stage.service.db.read() as tx:
        left = await tx.fetch_val("SELECT COUNT(*) AS n FROM core_message_copies", {})

    assert left == 0


async def test_a_person_who_is_erased_while_their_message_waits_is_gone_once_it_ends(
    stage: Stage,
) -> None:
    message_id = await stage.send(
        await stage.route({"until": "delivered", "within_seconds": 60}, {})
    )
    subscriber_id = (await stage.shown(message_id))["subscriber_id"]
    await stage.client.delete(f"/v1/subscribers/{subscriber_id}?erase=true")
    await settled(stage.service)
    await stage.wait(61)
    await stage.wait(3600)
    answer = await stage.client.get(f"/v1/messages/{message_id}")
    async with stage.service.db.read() as tx:
        copies = await tx.fetch_val("SELECT COUNT(*) AS n FROM core_message_copies", {})
        dead = await tx.fetch_val("SELECT COUNT(*) AS n FROM core_jobs WHERE state = 'dead'", {})

    assert answer.status_code == 404
    assert (copies, dead) == (0, 0)
    assert stage.texts == [["Hi"], [], []]


async def test_a_failure_at_a_step_leaves_the_copy_that_was_accepted(stage: Stage) -> None:
    wait = {"until": "delivered", "within_seconds": 60}
    message_id = await stage.send(await stage.route(wait, wait, {}))
    for one in (await stage.client.get("/v1/subscribers?channel=messenger_c")).json()["data"]:
        await stage.client.delete(f"/v1/subscribers/{one['subscriber_id']}")
    await stage.wait(61)
    await stage.report(1, "failed", reason=Reason.USER_BLOCKED_BOT)
    message = await stage.shown(message_id)
    [person] = (await stage.client.get("/v1/subscribers?channel=messenger_b")).json()["data"]

    assert (message["status"], message["channel"]) == ("sent", "messenger_a")
    assert await outcomes(stage) == [("messenger_a", "sent")]
    assert person["status"] == "blocked"


async def test_reports_of_a_copy_name_whom_it_went_to(stage: Stage) -> None:
    wait = {"until": "read", "within_seconds": 60}
    await stage.send(await stage.route(wait, wait, {}))
    await stage.wait(61)
    await stage.report(0, "delivered")

    (event,) = await events_named(stage.client, "delivery.delivered")
    assert event["channel"] == "messenger_a"


async def test_a_dead_letter_goes_on_to_the_next_step(stage: Stage) -> None:
    stage.channel(0).failures = [DeliveryError(Reason.RATE_LIMITED, "later", 600.0, scope="chat")]
    message_id = await stage.send(await stage.route({}, {}))
    message = await stage.shown(message_id)
    payload = {"message_id": message_id, "subscriber_id": message["subscriber_id"], "step": 0}
    async with stage.service.db.transaction() as tx:
        [project] = await stage.service.projects.list_all(tx)
        job = claimed(NewJob("message.deliver", payload, project_id=project.project_id))
        await stage.service.get(MessageOutcomes).settle_dead(tx, job, "it raised")
    await settled(stage.service)
    ended = await stage.shown(message_id)

    assert (ended["status"], ended["channel"]) == ("sent", "messenger_b")
    assert stage.texts == [[], ["Hi"], []]
    assert await outcomes(stage) == [("messenger_b", "sent")]


async def test_what_somebody_has_is_not_cancelled(stage: Stage, check_error: CheckError) -> None:
    message_id = await stage.send(await stage.route({"until": "read", "within_seconds": 60}, {}))
    stage.channel(1).failures = [DeliveryError(Reason.RATE_LIMITED, "later", 600.0, scope="chat")]
    await stage.wait(61)
    assert (await stage.shown(message_id))["status"] == "queued"

    check_error(await stage.client.delete(f"/v1/messages/{message_id}"), 409, "conflict")


async def test_a_deadline_that_comes_during_a_call_is_looked_at_again(stage: Stage) -> None:
    message_id = await stage.send(
        await stage.route({"until": "delivered", "within_seconds": 60}, {})
    )
    async with stage.service.db.transaction() as tx:
        await tx.execute("UPDATE core_messages SET waits_for = NULL")
    await stage.wait(61)
    during = stage.texts
    async with stage.service.db.transaction() as tx:
        await tx.execute("UPDATE core_messages SET waits_for = 'delivered'")
    await stage.wait(6)

    assert during == [["Hi"], [], []]
    assert stage.texts == [["Hi"], ["Hi"], []]
    assert (await stage.shown(message_id))["channel"] == "messenger_b"


async def _becomes_bob(stage: Stage, subscriber_id: str) -> None:
    """Splits a subscriber off, and gives them the id of another person."""
    body = {"subscriber_id": subscriber_id}
    assert (await stage.client.post("/v1/people/split", json=body)).status_code == 200
    answer = await stage.client.patch(
        f"/v1/subscribers/{subscriber_id}", json={"external_id": "bob"}
    )
    assert answer.status_code == 200, answer.text


async def test_a_message_stays_with_its_person_when_a_subscriber_is_split_off(
    stage: Stage, subscribe: Subscribe
) -> None:
    bob = await subscribe("Bob", channel="messenger_b")
    await stage.client.patch(f"/v1/subscribers/{bob}", json={"external_id": "bob"})
    stage.channel(1).sent.clear()
    route = await stage.route({"until": "delivered", "within_seconds": 60}, {}, {})
    message_id = await stage.send(route)
    await _becomes_bob(stage, (await stage.shown(message_id))["subscriber_id"])
    await stage.wait(60)
    message = await stage.shown(message_id)

    assert [sent.chat_id for sent in stage.channel(1).sent] == ["chat-Ann"]
    assert (message["status"], message["channel"]) == ("sent", "messenger_b")
    assert message["subscriber_id"] != bob


async def test_a_message_ends_if_nobody_else_is_left_of_its_person(
    stage: Stage, subscribe: Subscribe
) -> None:
    bob = await subscribe("Bob", channel="messenger_b")
    await stage.client.patch(f"/v1/subscribers/{bob}", json={"external_id": "bob"})
    for person in (await _lookup(stage, "ann"))["addresses"]:
        if person["channel"] != "messenger_a":
            await stage.client.post(
                "/v1/people/split", json={"subscriber_id": person["subscriber_id"]}
            )
    stage.channel(1).sent.clear()
    message_id = await stage.send(
        await stage.route({"until": "delivered", "within_seconds": 60}, {})
    )
    await _becomes_bob(stage, (await stage.shown(message_id))["subscriber_id"])
    await stage.wait(60)

    assert stage.texts == [["Hi"], [], []]
    assert (await stage.shown(message_id))["status"] == "sent"


async def test_a_queued_step_is_passed_over_when_its_subscriber_is_split_off(
    stage: Stage,
) -> None:
    stage.channel(0).failures = [DeliveryError(Reason.RATE_LIMITED, "later", retry_after_s=30)]
    message_id = await stage.send(await stage.route({}, {}))
    ann = (await stage.shown(message_id))["subscriber_id"]
    assert (
        await stage.client.post("/v1/people/split", json={"subscriber_id": ann})
    ).status_code == 200
    await stage.wait(60)

    assert stage.texts == [[], ["Hi"], []]
    assert past(await stage.shown(message_id)) == [
        ("messenger_a", "skipped", "recipient_changed"),
        ("messenger_b", "sent", None),
    ]


async def test_a_message_follows_its_person_into_another(
    stage: Stage, subscribe: Subscribe
) -> None:
    message_id = await stage.send(
        await stage.route({"until": "delivered", "within_seconds": 60}, {})
    )
    other = await _annie(stage, subscribe)
    await _merge(stage)
    await stage.wait(60)
    message = await stage.shown(message_id)

    assert stage.texts == [["Hi"], ["Hi"], []]
    assert (message["status"], message["subscriber_id"]) == ("sent", other)


async def test_a_message_follows_its_person_who_is_merged_during_a_call(
    stage: Stage, subscribe: Subscribe, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = await _annie(stage, subscribe)

    async def send(chat_id: str, message: OutgoingMessage) -> str:
        await _merge(stage)
        raise refused()

    monkeypatch.setattr(stage.channel(0), "send", send)
    message = await stage.shown(await stage.send(await stage.route({}, {})))

    assert stage.texts == [[], ["Hi"], []]
    assert (message["status"], message["subscriber_id"]) == ("sent", other)


async def _annie(stage: Stage, subscribe: Subscribe) -> str:
    """Has Ann's second subscriber split off, and another person there; returns who that is."""
    for person in (await _lookup(stage, "ann"))["addresses"]:
        if person["channel"] == "messenger_b":
            await stage.client.post(
                "/v1/people/split", json={"subscriber_id": person["subscriber_id"]}
            )
    other = await subscribe("Annie", channel="messenger_b")
    await stage.client.patch(f"/v1/subscribers/{other}", json={"external_id": "annie"})
    stage.channel(1).sent.clear()
    return other


async def _merge(stage: Stage) -> None:
    answer = await stage.client.post(
        "/v1/people/merge", json={"external_id": "ann", "into": "annie"}
    )
    assert answer.status_code == 200, answer.text


async def _lookup(stage: Stage, external_id: str) -> dict[str, Any]:
    found = await stage.client.get("/v1/people/lookup", params={"external_id": external_id})
    return dict(found.json())


async def closed(stage: Stage, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The platform of a channel does not answer."""

    async def check() -> ChannelHealth:
        return ChannelHealth(False, "away")

    service, channel = stage.service, stage.channel(number)
    monkeypatch.setattr(channel, "check", check)
    async with service.db.transaction() as tx:
        await service.get(ChannelOutages).start(tx, channel, "away")
    service.get(OutboundGates).outage_changed(channel.key)


async def test_a_step_that_waits_too_long_for_a_channel_without_calls_goes_on(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    await closed(stage, 0, monkeypatch)
    message_id = await stage.send(await stage.route({}, {}))
    await stage.wait(23 * 3600)
    before = await stage.shown(message_id)
    await stage.wait(3600 + 31)
    after = await stage.shown(message_id)

    assert (before["status"], before["channel"]) == ("queued", "messenger_a")
    assert stage.texts == [[], ["Hi"], []]
    assert past(after) == [
        ("messenger_a", "failed", "platform_unavailable"),
        ("messenger_b", "sent", None),
    ]


async def test_a_message_by_a_route_that_expires_while_it_waits_for_a_closed_channel_is_told(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    await closed(stage, 0, monkeypatch)
    message_id = await stage.send(await stage.route({}, {}), expires_in=600)
    await stage.wait(700)
    message = await stage.shown(message_id)

    assert (message["status"], message["reason"]) == ("skipped", "expired")
    assert stage.texts == [[], [], []]
    [event] = await events_named(stage.client, "delivery.failed")
    assert (event["message_id"], event["status"]) == (message_id, "skipped")
    assert event["reason"] == "expired"
