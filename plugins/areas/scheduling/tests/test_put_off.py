"""A message that comes again, put off by quiet hours, whose record is changed or paused meanwhile.

It is Thursday, 2026-01-15T12:00Z.
"""

from typing import Any

import httpx2
import pytest

from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, RecordingChannel

from .conftest import pass_time, post

HOUR = 3600

QUIET = {"from": "10:00", "to": "14:00"}


@pytest.mark.parametrize(
    ("quiet", "sent_by"),
    [(None, "2026-01-15T12:30:00.000Z"), (QUIET, "2026-01-15T14:00:00.000Z")],
    ids=["in time", "put off"],
)
async def test_what_was_sent_today_does_not_come_again_with_other_quiet_hours(
    service: Service,
    client: httpx2.AsyncClient,
    ann: str,
    channel: RecordingChannel,
    clock: FakeClock,
    quiet: dict[str, str] | None,
    sent_by: str,
) -> None:
    made = await post(
        client, "/v1/recurring", subscriber_id=ann, cron="30 12 * * *", quiet_hours=quiet
    )
    path = f"/v1/recurring/{made['recurring_id']}"
    await pass_time(service, clock, 2 * HOUR + 1)

    later = {"from": "10:00", "to": "16:00"}
    changed = (await client.patch(path, json={"quiet_hours": later})).json()
    await client.post(f"{path}/pause")
    resumed = (await client.post(f"{path}/resume")).json()

    assert (made["next_run_at"], channel.texts) == (sent_by, ["Hi"])
    assert changed["next_run_at"] == resumed["next_run_at"] == "2026-01-16T16:00:00.000Z"


@pytest.mark.parametrize(
    "change",
    [
        {"quiet_hours": {"from": "10:00", "to": "15:00"}},
        {"starts_at": None},
        {"cron": "30 12 * * *", "timezone": "UTC"},
        {"timezone": "Europe/London"},
    ],
    ids=["longer", "no start", "same", "elsewhere"],
)
async def test_what_is_put_off_still_comes_when_other_fields_change(
    client: httpx2.AsyncClient, ann: str, clock: FakeClock, change: dict[str, Any]
) -> None:
    made = await post(
        client, "/v1/recurring", subscriber_id=ann, cron="30 12 * * *", quiet_hours=QUIET
    )
    clock.advance(HOUR)

    path = f"/v1/recurring/{made['recurring_id']}"
    changed = (await client.patch(path, json=change)).json()

    hour = 15 if "quiet_hours" in change else 14
    assert changed["next_run_at"] == f"2026-01-15T{hour}:00:00.000Z"


async def test_another_cron_begins_with_the_change_as_that_of_a_new_one_does(
    client: httpx2.AsyncClient, ann: str, clock: FakeClock
) -> None:
    fields: dict[str, Any] = {"subscriber_id": ann, "quiet_hours": QUIET}
    made = await post(client, "/v1/recurring", cron="0 9 * * *", **fields)
    clock.advance(HOUR)

    path = f"/v1/recurring/{made['recurring_id']}"
    changed = (await client.patch(path, json={"cron": "30 12 * * *"})).json()
    new = await post(client, "/v1/recurring", cron="30 12 * * *", **fields)

    assert changed["next_run_at"] == new["next_run_at"] == "2026-01-16T14:00:00.000Z"


@pytest.mark.parametrize(
    ("until_s", "expected"), [(1.5 * HOUR, "2026-01-15"), (2.5 * HOUR, "2026-01-16")]
)
async def test_what_is_put_off_into_a_pause_is_left_out_and_what_comes_after_it_is_not(
    service: Service,
    client: httpx2.AsyncClient,
    ann: str,
    channel: RecordingChannel,
    clock: FakeClock,
    until_s: float,
    expected: str,
) -> None:
    made = await post(
        client, "/v1/recurring", subscriber_id=ann, cron="30 12 * * *", quiet_hours=QUIET
    )
    path = f"/v1/recurring/{made['recurring_id']}"
    await client.post(f"{path}/pause")
    await pass_time(service, clock, until_s)

    resumed = (await client.post(f"{path}/resume")).json()
    await pass_time(service, clock, HOUR)

    assert resumed["next_run_at"] == f"{expected}T14:00:00.000Z"
    assert channel.texts == (["Hi"] if expected == "2026-01-15" else [])
