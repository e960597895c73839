"""A message at a time: taken, changed, cancelled, sent, and what is told of it. It is 2026-01-15T12:00Z."""

from typing import Any

import httpx2
import pytest

from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, RecordingChannel, until

from .conftest import AddPeople, events, get, pass_time, post, refusal, told

LATER = "2026-01-15T13:00:00Z"


async def test_message_is_sent_at_its_time_and_not_before(
    service: Service,
    client: httpx2.AsyncClient,
    ann: str,
    channel: RecordingChannel,
    clock: FakeClock,
) -> None:
    made = await post(client, "/v1/scheduled", subscriber_id=ann, send_at=LATER)

    await pass_time(service, clock, 3599)
    assert (channel.texts, made["status"]) == ([], "scheduled")
    await pass_time(service, clock, 2)

    assert channel.texts == ["Hi"]
    shown = await get(client, f"/v1/scheduled/{made['scheduled_id']}")
    assert (shown["status"], shown["send_at"]) == ("sent", "2026-01-15T13:00:00.000Z")
    [event] = await events(client, "scheduled.sent")
    assert event["scheduled_id"] == made["scheduled_id"]
    assert event["message_id"] == shown["message_id"]
    assert (event["subscriber_id"], "job_id" in event) == (ann, False)
    message = await get(client, f"/v1/messages/{shown['message_id']}")
    assert message["status"] == "sent"


@pytest.mark.both_databases
async def test_audience_is_looked_up_at_the_time(
    service: Service,
    client: httpx2.AsyncClient,
    people: AddPeople,
    channel: RecordingChannel,
    clock: FakeClock,
) -> None:
    made = await post(
        client,
        "/v1/scheduled",
        audience={"all": True},
        text="Hi {{ first_name }}",
        send_at=LATER,
    )
    await people(3)

    await pass_time(service, clock, 3601)

    assert sorted(channel.texts) == ["Hi P0", "Hi P1", "Hi P2"]
    shown = await get(client, f"/v1/scheduled/{made['scheduled_id']}")
    [event] = await events(client, "scheduled.sent")
    assert event["job_id"] == shown["job_id"]
    assert {sent["job_id"] for sent in await events(client, "delivery.success")} == {
        shown["job_id"]
    }


async def test_external_id_names_the_subscriber_of_the_call(
    service: Service,
    client: httpx2.AsyncClient,
    people: AddPeople,
    channel: RecordingChannel,
    clock: FakeClock,
) -> None:
    [subscriber_id] = await people(1)
    await client.patch(f"/v1/subscribers/{subscriber_id}", json={"external_id": "ann-1"})

    made = await post(client, "/v1/scheduled", external_id="ann-1", send_at=LATER)
    await pass_time(service, clock, 3601)

    assert made["subscriber_id"] == subscriber_id
    assert channel.texts == ["Hi"]


async def test_template_is_rendered_as_it_is_at_the_time(
    service: Service,
    client: httpx2.AsyncClient,
    ann: str,
    channel: RecordingChannel,
    clock: FakeClock,
) -> None:
    await client.post("/v1/templates", json={"key": "hello", "text": "Before"})
    await post(client, "/v1/scheduled", subscriber_id=ann, template="hello", send_at=LATER)

    await client.patch("/v1/templates/hello", json={"text": "After"})
    await pass_time(service, clock, 3601)

    assert channel.texts == ["After"]


@pytest.mark.parametrize("who", ["one", "all"])
async def test_template_that_is_gone_fails_it(
    service: Service, client: httpx2.AsyncClient, ann: str, clock: FakeClock, who: str
) -> None:
    await client.post("/v1/templates", json={"key": "hello", "text": "Hi"})
    to: dict[str, Any] = {"subscriber_id": ann} if who == "one" else {"audience": {"all": True}}
    made = await post(client, "/v1/scheduled", **to, template="hello", send_at=LATER)

    await client.delete("/v1/templates/hello")
    await pass_time(service, clock, 3601)

    assert await told(client) == [("scheduled.failed", "not_found")]
    shown = await get(client, f"/v1/scheduled/{made['scheduled_id']}")
    assert (shown["status"], shown["reason"]) == ("failed", "not_found")
    assert "hello" in shown["error"]
    assert (shown["message_id"], shown["job_id"]) == (None, None)


async def test_who_has_left_is_skipped(
    service: Service,
    client: httpx2.AsyncClient,
    ann: str,
    channel: RecordingChannel,
    clock: FakeClock,
) -> None:
    made = await post(client, "/v1/scheduled", subscriber_id=ann, send_at=LATER)

    await client.delete(f"/v1/subscribers/{ann}")
    await pass_time(service, clock, 3601)

    [event] = await events(client, "scheduled.skipped")
    assert (event["reason"], event["subscriber_id"]) == ("unsubscribed", ann)
    shown = await get(client, f"/v1/scheduled/{made['scheduled_id']}")
    assert (shown["status"], shown["reason"]) == ("skipped", "unsubscribed")
    assert channel.texts == []


async def test_who_is_erased_takes_it_along(
    service: Service, client: httpx2.AsyncClient, ann: str, clock: FakeClock
) -> None:
    made = await post(client, "/v1/scheduled", subscriber_id=ann, send_at=LATER)

    await client.delete(f"/v1/subscribers/{ann}?erase=true")
    await pass_time(service, clock, 3601)

    answer = await client.get(f"/v1/scheduled/{made['scheduled_id']}")
    assert answer.status_code == 404
    assert await told(client) == []


async def test_changed_message_and_time_are_what_counts(
    service: Service,
    client: httpx2.AsyncClient,
    ann: str,
    channel: RecordingChannel,
    clock: FakeClock,
) -> None:
    made = await post(
        client, "/v1/scheduled", subscriber_id=ann, send_at=LATER, silent=True, format="html"
    )
    path = f"/v1/scheduled/{made['scheduled_id']}"

    changed = await client.patch(
        path, json={"text": "New", "format": None, "send_at": "2026-01-15T15:00:00+01:00"}
    )
    await pass_time(service, clock, 3601)
    assert channel.texts == []
    await pass_time(service, clock, 3600)

    assert changed.json()["message"] == {"text": "New", "silent": True}
    assert changed.json()["send_at"] == "2026-01-15T14:00:00.000Z"
    assert channel.texts == ["New"]


async def test_rich_text_is_shown_as_lines_by_a_messenger_without_blocks(
    service: Service,
    client: httpx2.AsyncClient,
    ann: str,
    channel: RecordingChannel,
    clock: FakeClock,
) -> None:
    text = "<h2>Order</h2><table><tr><td>a</td><td>b</td></tr></table>"
    made = await post(
        client, "/v1/scheduled", subscriber_id=ann, send_at=LATER, text=text, format="rich"
    )
    await pass_time(service, clock, 7200)

    assert (made["message"]["text"], made["message"]["format"]) == (text, "rich")
    assert channel.texts == ["<b>Order</b>\n\na | b"]


async def test_template_takes_the_place_of_a_text_and_the_other_way_round(
    client: httpx2.AsyncClient, ann: str
) -> None:
    await client.post("/v1/templates", json={"key": "hello", "text": "Hi {{ name }}"})
    made = await post(client, "/v1/scheduled", subscriber_id=ann, send_at=LATER, format="html")
    path = f"/v1/scheduled/{made['scheduled_id']}"

    templated = await client.patch(path, json={"template": "hello", "variables": {"name": "Ann"}})
    plain = await client.patch(path, json={"text": "Bye"})

    assert templated.json()["message"] == {"template": "hello", "variables": {"name": "Ann"}}
    assert plain.json()["message"] == {"text": "Bye"}


async def test_cancelled_one_is_not_sent_and_changes_no_more(
    service: Service,
    client: httpx2.AsyncClient,
    ann: str,
    channel: RecordingChannel,
    clock: FakeClock,
) -> None:
    made = await post(client, "/v1/scheduled", subscriber_id=ann, send_at=LATER)
    path = f"/v1/scheduled/{made['scheduled_id']}"

    cancelled = await client.post(f"{path}/cancel")
    assert (cancelled.status_code, cancelled.json()["status"]) == (200, "cancelled")
    await pass_time(service, clock, 3601)

    assert (await get(client, path))["status"] == "cancelled"
    assert channel.texts == []
    assert await told(client) == []
    assert refusal(await client.post(f"{path}/cancel")) == (409, "conflict")
    assert refusal(await client.patch(path, json={"text": "Late"})) == (409, "conflict")


async def test_sent_one_can_be_neither_changed_nor_cancelled(
    service: Service, client: httpx2.AsyncClient, ann: str, clock: FakeClock
) -> None:
    made = await post(client, "/v1/scheduled", subscriber_id=ann, send_at=LATER)
    path = f"/v1/scheduled/{made['scheduled_id']}"
    await pass_time(service, clock, 3601)

    assert refusal(await client.post(f"{path}/cancel")) == (409, "conflict")
    assert refusal(await client.patch(path, json={"send_at": "2026-01-16T00:00:00Z"})) == (
        409,
        "conflict",
    )


@pytest.mark.both_databases
async def test_list_is_newest_first_and_filtered(client: httpx2.AsyncClient, ann: str) -> None:
    made = [
        (await post(client, "/v1/scheduled", subscriber_id=ann, send_at=LATER))["scheduled_id"]
        for _ in range(3)
    ]
    await client.post(f"/v1/scheduled/{made[1]}/cancel")

    first = await get(client, "/v1/scheduled?limit=2")
    second = await get(client, f"/v1/scheduled?limit=2&cursor={first['next_cursor']}")
    cancelled = await get(client, "/v1/scheduled?status=cancelled")

    pages = [[one["scheduled_id"] for one in page["data"]] for page in (first, second)]
    assert pages == [[made[2], made[1]], [made[0]]]
    assert [one["scheduled_id"] for one in cancelled["data"]] == [made[1]]


@pytest.mark.shared_service
@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"send_at": "2026-01-15T11:59:00Z"}, "send_at"),
        ({"send_at": "2026-01-15T14:00"}, "send_at"),
        ({"send_at": "tomorrow"}, "send_at"),
        ({"send_at": "2026-02-30T14:00", "timezone": "UTC"}, "send_at"),
        ({"send_at": "2126-01-15T14:00", "timezone": "UTC"}, "send_at"),
        ({"send_at": "0001-01-01T00:00", "timezone": "Asia/Tokyo"}, "send_at"),
        ({"send_at": "9999-12-31T23:59:59Z"}, "send_at"),
        ({"send_at": "2026-01-16T14:00", "timezone": "Mars/Base"}, "time zone"),
        ({"send_at": "2026-01-16T14:00", "timezone": "../etc/passwd"}, "time zone"),
        ({"send_at": "2026-01-16T14:00", "timezone": "localtime"}, "time zone"),
        ({"send_at": "2026-01-16T14:00", "timezone": "Europe"}, "time zone"),
        ({"text": ""}, "text"),
        ({"text": {"en": "Hi"}}, "text"),
        ({"template": "hello"}, "text"),
        ({"audience": {"all": True}}, "audience"),
        ({"subscriber_id": None}, "subscriber_id"),
        ({"colour": "red"}, "colour"),
    ],
)
async def test_what_can_not_be_sent_is_refused_at_the_call(
    client: httpx2.AsyncClient, ann: str, changes: dict[str, Any], named: str
) -> None:
    body = {"subscriber_id": ann, "text": "Hi", "send_at": LATER, **changes}

    answer = await client.post("/v1/scheduled", json=body)

    assert refusal(answer) == (400, "validation_failed")
    assert named in answer.json()["error"]


async def test_unknown_receiver_or_template_is_refused_at_the_call(
    client: httpx2.AsyncClient, ann: str
) -> None:
    async def ask(**body: Any) -> tuple[int, str]:
        return refusal(await client.post("/v1/scheduled", json={"send_at": LATER, **body}))

    assert await ask(text="Hi", subscriber_id="sub_x") == (404, "subscriber_not_found")
    assert await ask(subscriber_id=ann, template="gone") == (404, "not_found")
    assert await ask(audience={"all": True}, template="gone") == (404, "not_found")
    assert await ask(text="Hi", audience={"tags_any": ["gone"]}) == (400, "validation_failed")
    assert await ask(text="Hi", subscriber_id=ann, external_id="a") == (
        400,
        "mutually_exclusive_identifiers",
    )


async def test_ids_of_an_audience_are_not_kept_when_it_is_over(
    service: Service, client: httpx2.AsyncClient, people: AddPeople, clock: FakeClock
) -> None:
    ids = await people(2)
    made = await post(client, "/v1/scheduled", audience={"subscriber_ids": ids}, send_at=LATER)
    await pass_time(service, clock, 3601)

    async with service.db.read() as tx:
        kept = await tx.fetch_val("SELECT audience FROM scheduling_records")

    assert made["audience"] == {"subscriber_ids_count": 2}
    assert ids[0] not in kept
    assert (await get(client, f"/v1/scheduled/{made['scheduled_id']}"))["audience"] == {
        "subscriber_ids_count": 2
    }


async def test_what_is_over_is_forgotten_after_the_days_of_the_setting(
    service: Service, client: httpx2.AsyncClient, ann: str, clock: FakeClock
) -> None:
    made = await post(client, "/v1/scheduled", subscriber_id=ann, send_at=LATER)
    waiting = await post(client, "/v1/scheduled", subscriber_id=ann, send_at="2026-12-01T00:00:00Z")
    await pass_time(service, clock, 3601)

    await pass_time(service, clock, 31 * 24 * 3600)

    async def forgotten() -> bool:
        answer = await client.get(f"/v1/scheduled/{made['scheduled_id']}")
        return answer.status_code == 404

    # The job is due; what is left is that the runner notices it.
    await until(forgotten, interval_s=0.05)

    assert (await get(client, f"/v1/scheduled/{waiting['scheduled_id']}"))["status"] == "scheduled"


@pytest.mark.parametrize("field", ["send_at", "timezone"])
async def test_time_of_a_message_cannot_be_taken_away(
    client: httpx2.AsyncClient, ann: str, field: str
) -> None:
    made = await post(client, "/v1/scheduled", subscriber_id=ann, send_at=LATER)

    answer = await client.patch(f"/v1/scheduled/{made['scheduled_id']}", json={field: None})

    assert refusal(answer) == (400, "validation_failed")
    assert field in answer.json()["error"]
