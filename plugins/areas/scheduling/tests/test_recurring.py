"""A message that comes again: made, sent, changed, paused, ended. It is Thursday, 2026-01-15T12:00Z."""

from typing import Any

import httpx2
import pytest

from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, RecordingChannel

from .conftest import AddPeople, events, get, pass_time, post, refusal, told

HOUR = 3600


async def test_each_run_is_sent_once_and_told(
    service: Service,
    client: httpx2.AsyncClient,
    ann: str,
    channel: RecordingChannel,
    clock: FakeClock,
) -> None:
    made = await post(client, "/v1/recurring", subscriber_id=ann, cron="0 * * * *")
    assert (made["status"], made["next_run_at"]) == ("active", "2026-01-15T13:00:00.000Z")

    for _ in range(3):
        await pass_time(service, clock, HOUR + 1)

    sent = await events(client, "recurring.sent")
    assert channel.texts == ["Hi"] * 3
    assert {one["recurring_id"] for one in sent} == {made["recurring_id"]}
    assert len({one["message_id"] for one in sent}) == 3
    shown = await get(client, f"/v1/recurring/{made['recurring_id']}")
    assert shown["message_id"] == sent[-1]["message_id"]
    assert shown["last_run_at"] == sent[-1]["occurred_at"]
    assert shown["next_run_at"] == "2026-01-15T16:00:00.000Z"


async def test_each_run_to_an_audience_is_a_mailing_of_its_own(
    service: Service,
    client: httpx2.AsyncClient,
    people: AddPeople,
    channel: RecordingChannel,
    clock: FakeClock,
) -> None:
    ids = await people(2)
    await post(client, "/v1/recurring", audience={"subscriber_ids": ids}, every={"hours": 1})

    for _ in range(2):
        await pass_time(service, clock, HOUR + 1)

    assert channel.texts == ["Hi"] * 4
    jobs = {one["job_id"] for one in await events(client, "recurring.sent")}
    assert len(jobs) == 2
    assert {one["job_id"] for one in await events(client, "delivery.success")} == jobs


async def test_what_was_kept_with_an_id_that_is_none_skips_that_one_and_reaches_the_others(
    service: Service,
    client: httpx2.AsyncClient,
    people: AddPeople,
    channel: RecordingChannel,
    clock: FakeClock,
) -> None:
    ids = await people(2)
    made = await post(client, "/v1/recurring", audience={"subscriber_ids": ids}, every={"hours": 1})
    async with service.db.transaction() as tx:
        await tx.execute(
            "UPDATE scheduling_records SET audience = replace(audience, :known, 'nonsense')",
            {"known": ids[1]},
        )

    await pass_time(service, clock, HOUR + 1)

    shown = await get(client, f"/v1/recurring/{made['recurring_id']}")
    assert (shown["status"], shown["reason"], channel.texts) == ("active", None, ["Hi"])
    assert shown["delivery"]["skipped"] == 1
    assert [event for event, _ in await told(client)] == ["recurring.sent"]


async def test_it_ends_after_its_last_run(
    service: Service,
    client: httpx2.AsyncClient,
    ann: str,
    channel: RecordingChannel,
    clock: FakeClock,
) -> None:
    made = await post(
        client,
        "/v1/recurring",
        subscriber_id=ann,
        every={"hours": 1},
        starts_at="2026-01-15T15:00",
        ends_at="2026-01-15T16:30",
        timezone="Europe/Berlin",
    )
    assert made["next_run_at"] == "2026-01-15T14:00:00.000Z"

    await pass_time(service, clock, 2 * HOUR + 1)
    await pass_time(service, clock, HOUR)

    shown = await get(client, f"/v1/recurring/{made['recurring_id']}")
    assert (shown["status"], shown["next_run_at"]) == ("completed", None)
    assert (await get(client, "/v1/recurring?status=completed"))["data"] == [shown]
    assert channel.texts == ["Hi"] * 2
    path = f"/v1/recurring/{made['recurring_id']}"
    for answer in (
        await client.patch(path, json={"text": "Late"}),
        await client.post(f"{path}/pause"),
        await client.post(f"{path}/resume"),
        await client.post(f"{path}/cancel"),
    ):
        assert refusal(answer) == (409, "conflict")


async def test_run_that_fails_or_is_skipped_leaves_the_next_ones(
    service: Service,
    client: httpx2.AsyncClient,
    ann: str,
    channel: RecordingChannel,
    clock: FakeClock,
) -> None:
    await client.post("/v1/templates", json={"key": "hello", "text": "Hi"})
    made = await post(
        client, "/v1/recurring", subscriber_id=ann, template="hello", cron="0 * * * *"
    )

    await client.delete("/v1/templates/hello")
    await pass_time(service, clock, HOUR + 1)
    failed = await get(client, f"/v1/recurring/{made['recurring_id']}")
    await client.post("/v1/templates", json={"key": "hello", "text": "Again"})
    await pass_time(service, clock, HOUR)
    await client.delete(f"/v1/subscribers/{ann}")
    await pass_time(service, clock, HOUR)

    assert (failed["status"], failed["reason"]) == ("active", "not_found")
    assert await told(client) == [
        ("scheduled.failed", "not_found"),
        ("recurring.sent", None),
        ("scheduled.skipped", "unsubscribed"),
    ]
    skipped = (await events(client, "scheduled.skipped"))[0]
    assert (skipped["recurring_id"], "scheduled_id" in skipped) == (made["recurring_id"], False)
    assert channel.texts == ["Again"]


@pytest.mark.both_databases
async def test_paused_one_leaves_out_what_comes_meanwhile(
    service: Service,
    client: httpx2.AsyncClient,
    ann: str,
    channel: RecordingChannel,
    clock: FakeClock,
) -> None:
    made = await post(client, "/v1/recurring", subscriber_id=ann, cron="0 * * * *")
    path = f"/v1/recurring/{made['recurring_id']}"

    paused = (await client.post(f"{path}/pause")).json()
    again = await client.post(f"{path}/pause")
    await pass_time(service, clock, 2.5 * HOUR)
    assert channel.texts == []
    resumed = (await client.post(f"{path}/resume")).json()
    twice = await client.post(f"{path}/resume")
    await pass_time(service, clock, HOUR)

    assert (paused["status"], paused["next_run_at"]) == ("paused", None)
    assert (refusal(again), refusal(twice)) == ((409, "conflict"), (409, "conflict"))
    assert (resumed["status"], resumed["next_run_at"]) == ("active", "2026-01-15T15:00:00.000Z")
    assert channel.texts == ["Hi"]


async def test_one_that_is_resumed_after_its_end_has_ended(
    client: httpx2.AsyncClient, ann: str, clock: FakeClock
) -> None:
    made = await post(
        client,
        "/v1/recurring",
        subscriber_id=ann,
        cron="0 * * * *",
        ends_at="2026-01-15T13:30:00Z",
    )
    path = f"/v1/recurring/{made['recurring_id']}"
    await client.post(f"{path}/pause")
    clock.advance(2 * HOUR)

    assert (await client.post(f"{path}/resume")).json()["status"] == "completed"


async def test_changes_of_times_and_message(
    service: Service,
    client: httpx2.AsyncClient,
    ann: str,
    channel: RecordingChannel,
    clock: FakeClock,
) -> None:
    made = await post(
        client,
        "/v1/recurring",
        subscriber_id=ann,
        cron="0 14 * * *",
        quiet_hours={"from": "22:00", "to": "08:00"},
    )
    path = f"/v1/recurring/{made['recurring_id']}"

    text = (await client.patch(path, json={"text": "New"})).json()
    zoned = (await client.patch(path, json={"timezone": "Europe/Berlin"})).json()
    every = (await client.patch(path, json={"every": {"hours": 2}, "quiet_hours": None})).json()
    await pass_time(service, clock, 2 * HOUR + 1)

    assert text["next_run_at"] == "2026-01-15T14:00:00.000Z"
    assert zoned["next_run_at"] == "2026-01-15T13:00:00.000Z"
    assert (zoned["message"], zoned["quiet_hours"]) == (
        {"text": "New"},
        {"from": "22:00", "to": "08:00"},
    )
    assert (every["cron"], every["every"], every["quiet_hours"]) == (None, {"hours": 2}, None)
    assert every["next_run_at"] == "2026-01-15T14:00:00.000Z"
    assert channel.texts == ["New"]


async def test_cancelled_one_comes_no_more(
    service: Service,
    client: httpx2.AsyncClient,
    ann: str,
    channel: RecordingChannel,
    clock: FakeClock,
) -> None:
    made = await post(client, "/v1/recurring", subscriber_id=ann, cron="* * * * *")

    answer = await client.post(f"/v1/recurring/{made['recurring_id']}/cancel")
    await pass_time(service, clock, HOUR)

    listed = (await get(client, "/v1/recurring?status=cancelled"))["data"]
    assert (answer.status_code, answer.json()["status"]) == (200, "cancelled")
    assert answer.json() == listed[0]
    assert [one["recurring_id"] for one in listed] == [made["recurring_id"]]
    assert channel.texts == []


@pytest.mark.shared_service
@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({}, "cron"),
        ({"cron": "0 9 * * *", "every": {"hours": 1}}, "cron, every"),
        ({"cron": "0 9 * *"}, "cron"),
        ({"cron": "0 0 31 2 *"}, "cron"),
        ({"every": {}}, "every"),
        ({"every": {"hours": 1, "days": 1}}, "every"),
        ({"every": {"hours": 0}}, "every.hours"),
        ({"every": {"days": 366}}, "every.days"),
        ({"cron": "0 9 * * *", "timezone": "Mars/Base"}, "timezone"),
        ({"cron": "0 9 * * *", "quiet_hours": {"from": "9:00", "to": "10:00"}}, "quiet_hours"),
        ({"cron": "0 9 * * *", "quiet_hours": {"from": "09:00", "to": "09:00"}}, "quiet_hours"),
        ({"cron": "0 9 * * *", "quiet_hours": {"from": "09:00"}}, "quiet_hours"),
        ({"cron": "0 9 * * *", "starts_at": "soon"}, "starts_at"),
        ({"cron": "0 9 * * *", "starts_at": "0001-01-01T00:00:00Z"}, "starts_at"),
        ({"cron": "0 9 * * *", "ends_at": "2026-01-16T08:59:00Z"}, "ends_at"),
    ],
)
async def test_what_can_not_recur_is_refused(
    client: httpx2.AsyncClient, ann: str, body: dict[str, Any], named: str
) -> None:
    answer = await client.post("/v1/recurring", json={"subscriber_id": ann, "text": "Hi", **body})

    assert refusal(answer) == (400, "validation_failed")
    assert named in answer.json()["error"]


async def test_ids_of_one_kind_are_unknown_to_the_other(
    client: httpx2.AsyncClient, ann: str
) -> None:
    recurring = await post(client, "/v1/recurring", subscriber_id=ann, cron="0 9 * * *")
    scheduled = await post(
        client, "/v1/scheduled", subscriber_id=ann, send_at="2026-02-01T00:00:00Z"
    )

    for path in (
        f"/v1/scheduled/{recurring['recurring_id']}",
        f"/v1/recurring/{scheduled['scheduled_id']}",
    ):
        assert refusal(await client.get(path)) == (404, "not_found")
        assert refusal(await client.post(f"{path}/cancel")) == (404, "not_found")


@pytest.mark.parametrize("field", ["cron", "every", "timezone"])
async def test_what_a_recurring_message_cannot_be_without_cannot_be_taken_away(
    client: httpx2.AsyncClient, ann: str, field: str
) -> None:
    made = await post(client, "/v1/recurring", subscriber_id=ann, cron="0 9 * * *")

    answer = await client.patch(f"/v1/recurring/{made['recurring_id']}", json={field: None})

    assert refusal(answer) == (400, "validation_failed")
    assert field in answer.json()["error"]


@pytest.mark.both_databases
@pytest.mark.parametrize("change", ["end", "pause"])
async def test_what_quiet_hours_have_put_off_comes_though_the_record_is_changed_meanwhile(
    service: Service,
    client: httpx2.AsyncClient,
    ann: str,
    channel: RecordingChannel,
    clock: FakeClock,
    change: str,
) -> None:
    quiet = {"from": "10:00", "to": "14:00"}
    made = await post(
        client, "/v1/recurring", subscriber_id=ann, cron="30 12 * * *", quiet_hours=quiet
    )
    path = f"/v1/recurring/{made['recurring_id']}"
    clock.advance(HOUR)

    if change == "end":
        changed = (await client.patch(path, json={"ends_at": "2027-01-01T00:00:00Z"})).json()
    else:
        await client.post(f"{path}/pause")
        changed = (await client.post(f"{path}/resume")).json()
    await pass_time(service, clock, HOUR + 1)

    assert changed["next_run_at"] == made["next_run_at"] == "2026-01-15T14:00:00.000Z"
    assert channel.texts == ["Hi"]
    assert (await get(client, path))["next_run_at"] == "2026-01-16T14:00:00.000Z"


async def test_another_interval_counts_from_a_start_that_is_ahead(
    client: httpx2.AsyncClient, ann: str
) -> None:
    start = "2026-01-20T09:00:00.000Z"
    made = await post(
        client, "/v1/recurring", subscriber_id=ann, every={"days": 1}, starts_at=start
    )
    path = f"/v1/recurring/{made['recurring_id']}"

    ahead = (await client.patch(path, json={"every": {"days": 2}})).json()
    without = (await client.patch(path, json={"starts_at": None})).json()

    assert (ahead["next_run_at"], ahead["starts_at"]) == (start, start)
    assert (without["next_run_at"], without["starts_at"]) == ("2026-01-17T12:00:00.000Z", None)
