"""The pages of schedules: made, shown in words, changed, held and ended."""

from dataclasses import replace

import pytest

from msgsvc_core.kernel.i18n import Texts
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock
from msgsvc_devkit.dashboard import visitor
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from msgsvc_scheduling import plugin
from msgsvc_scheduling.dashboard.labels import in_words, why_not_sent
from msgsvc_scheduling.models import Record
from msgsvc_scheduling.recurrence import Rule

from .conftest import get, pass_time, post

#: A message to Anna, as it is kept.
TO_ANNA = Record(
    project_id="prj_1",
    record_id="sch_1",
    kind="scheduled",
    status="scheduled",
    message={"text": "Hello"},
    subscriber_id="sub_1",
    audience=None,
    timezone=None,
    send_at_ms=0,
    due_at_ms=0,
    message_id=None,
    job_id=None,
    reason=None,
    error=None,
    created_at_ms=0,
    finished_at_ms=None,
)

HOSTILE = '<script>alert(1)</script>"><img src=x onerror=alert(1)>'


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    dashboard = pytest.importorskip("msgsvc_dashboard.plugin", reason="shows the pages")
    return await make_service(extra_plugins=[("scheduling", plugin), ("dashboard", dashboard)])


async def test_a_message_to_one_person_is_scheduled_changed_and_sent(
    service: Service, tenant: Tenant, ann: str, clock: FakeClock
) -> None:
    admin = await visitor(service, tenant.project.project_id, "admin")
    typed = {
        "kind": "scheduled",
        "text": HOSTILE,
        "receiver": "person",
        "person": ann,
        "send_at": "2026-01-15T16:00",
        "timezone": "Europe/Moscow",
    }

    empty = await admin.get("/schedules")
    refused = await admin.post("/schedules", {**typed, "send_at": "2020-01-01T10:00"})
    made = await admin.post("/schedules", typed)
    here = made.headers["location"]
    record_id = here.rpartition("/")[2]
    form = await admin.get(f"{here}/edit")
    changed = await admin.post(f"{here}/edit", {**typed, "text": "Hello", "silent": "1"})
    kept = await get(tenant.client, f"/v1/scheduled/{record_id}")
    listed = await admin.get("/schedules", status="scheduled")
    await pass_time(service, clock, 3600)
    over = await admin.get(here)
    conflict = await admin.post(f"{here}/cancel")

    assert "Create the first one" in empty.text
    assert refused.status_code == 400
    assert "in the past" in refused.text
    assert "&lt;script&gt;alert(1)" in refused.text
    assert "<script>alert" not in refused.text + form.text + listed.text
    assert 'value="2026-01-15T16:00"' in form.text
    assert changed.status_code == 303
    assert kept["message"] == {"text": "Hello", "format": "plain", "buttons": [], "silent": True}
    assert kept["send_at"] == "2026-01-15T13:00:00.000Z"
    assert record_id in listed.text
    assert "Sent" in over.text
    assert "/messages/msg_" in over.text
    assert conflict.status_code == 409


async def test_a_change_in_the_dashboard_keeps_what_its_form_does_not_have(
    service: Service, tenant: Tenant, ann: str
) -> None:
    route = {"name": "All", "steps": [{"channel": "messenger_a"}]}
    route_id = (await tenant.client.post("/v1/routes", json=route)).json()["route_id"]
    await tenant.client.patch(f"/v1/subscribers/{ann}", json={"external_id": "ann"})
    made = await post(
        tenant.client,
        "/v1/scheduled",
        external_id="ann",
        route_id=route_id,
        text="Hello",
        metadata={"order": 1},
        silent=True,
        send_at="2026-01-15T16:00:00Z",
    )
    admin = await visitor(service, tenant.project.project_id, "admin")
    changed = await admin.post(
        f"/schedules/{made['scheduled_id']}/edit",
        {"text": "Bye", "send_at": "2026-01-15T16:00", "timezone": "UTC"},
    )
    await admin.client.aclose()

    assert changed.status_code == 303
    kept = await get(tenant.client, f"/v1/scheduled/{made['scheduled_id']}")
    assert (kept["route_id"], kept["message"]["metadata"]) == (route_id, {"order": 1})
    assert kept["message"]["text"] == "Bye"
    assert "silent" not in kept["message"]


async def test_a_message_is_previewed_on_the_messengers_of_its_audience(
    service: Service, tenant: Tenant, ann: str
) -> None:
    project_id = tenant.project.project_id
    admin = await visitor(service, project_id, "admin")
    viewer = await visitor(service, project_id, "viewer")
    typed = {"text": "Hi **{{ first_name }}**", "format": "markdown", "kind": "recurring"}
    times = {"rhythm": "days", "every": "3", "timezone": "Europe/Berlin"}
    by_b = {"to": "some", "channels": "messenger_b"}
    made = await admin.post("/schedules", {**typed, **times, **by_b})
    here = made.headers["location"]

    async def fragment(path: str, **fields: str) -> str:
        by_htmx = {"HX-Request": "true", "HX-Target": "preview"}
        answer = await admin.post(f"{path}/preview", {**typed, **fields}, headers=by_htmx)
        assert answer.status_code == 200
        assert "<html" not in answer.text
        return answer.text

    everywhere = [
        await fragment("/schedules"),
        await fragment("/schedules", receiver="person", person=ann, **by_b),
    ]
    by_one = [await fragment("/schedules", **by_b), await fragment(here)]
    empty = await fragment("/schedules", text="")
    wrong = await fragment(here, text="Hi {{ attributes.city }}")
    hostile = await fragment("/schedules", text=HOSTILE)
    whole = [
        await admin.post("/schedules/preview", {**typed, **times}),
        await admin.post(f"{here}/preview", {**typed, **times, "text": "Ho {{ first_name }}"}),
    ]
    refused = await viewer.post(f"{here}/preview", typed)
    kept = await get(tenant.client, f"/v1/recurring/{here.rpartition('/')[2]}")

    assert '<span class="mark-bold">Alex</span>' in everywhere[0]
    assert [("messenger_a" in each, "messenger_b" in each) for each in everywhere] == [
        (True, True),
        (True, True),
    ]
    assert [("messenger_a" in each, "messenger_b" in each) for each in by_one] == [
        (False, True),
        (False, True),
    ]
    assert "as you type" in empty
    assert "attributes.city" in wrong
    assert "<script>alert" not in hostile
    assert "Hi **{{ first_name }}**</textarea>" in whole[0].text
    assert "Ho {{ first_name }}</textarea>" in whole[1].text
    for page in whole:
        assert "Alex" in page.text
        assert 'value="3"' in page.text
    assert refused.status_code == 403
    assert kept["message"]["text"] == "Hi **{{ first_name }}**"


async def test_a_recurring_message_shows_its_next_times_and_is_held_and_ended(
    service: Service, tenant: Tenant, ann: str
) -> None:
    project_id = tenant.project.project_id
    admin = await visitor(service, project_id, "admin")
    viewer = await visitor(service, project_id, "viewer")
    stranger = await visitor(service, (await service.projects.create("Other")).project_id, "admin")
    times = {
        "rhythm": "cron",
        "cron": "30 9 * * MON-FRI",
        "timezone": "Europe/Berlin",
        "quiet_from": "08:00",
        "quiet_to": "10:00",
    }

    runs = await admin.get("/schedules/runs", **times)
    wrong = await admin.get("/schedules/runs", **{**times, "cron": "every day"})
    made = await admin.post("/schedules", {"kind": "recurring", "text": "Hi", **times})
    here = made.headers["location"]
    record_id = here.rpartition("/")[2]
    shown = await viewer.get(here)
    renamed = await admin.post(f"{here}/edit", {"text": "Hello", **times})
    kept = await get(tenant.client, f"/v1/recurring/{record_id}")
    refusals = [
        (await viewer.post(f"{here}/pause")).status_code,
        (await viewer.get(f"{here}/edit")).status_code,
        (await stranger.get(f"/schedules/{record_id}")).status_code,
        (await stranger.post(f"/schedules/{record_id}/cancel")).status_code,
    ]
    paused = await admin.post(f"{here}/pause")
    listed = await admin.get("/schedules", kind="recurring", status="paused")
    resumed = await admin.post(f"{here}/resume")
    cancelled = await admin.post(f"{here}/cancel")

    assert "Monday to Friday at 09:30" in runs.text
    assert runs.text.count("<time") == 5
    assert "2026-01-16T09:00:00.000Z" in runs.text
    # By the clock of the rule, whatever the reader's is.
    for page in (runs, shown):
        assert "(Europe/Berlin)" in page.text
        assert "16 Jan 2026, 10:00" in page.text
    assert "five fields" in wrong.text
    assert "Monday to Friday at 09:30" in shown.text
    assert shown.text.count("<li><time") == 5
    assert "/pause" not in shown.text
    assert renamed.status_code == 303
    assert kept["message"]["text"] == "Hello"
    assert kept["quiet_hours"] == {"from": "08:00", "to": "10:00"}
    assert refusals == [403, 403, 404, 404]
    assert paused.status_code == resumed.status_code == cancelled.status_code == 303
    assert record_id in listed.text


async def test_another_text_leaves_an_interval_as_it_was_counted(
    service: Service, tenant: Tenant, ann: str, clock: FakeClock
) -> None:
    admin = await visitor(service, tenant.project.project_id, "admin")
    made = await post(
        tenant.client, "/v1/recurring", every={"hours": 5}, timezone="UTC", subscriber_id=ann
    )
    here = f"/schedules/{made['recurring_id']}"
    clock.advance(3600)

    await admin.post(
        f"{here}/edit", {"text": "Ho", "rhythm": "hours", "every": "5", "timezone": "UTC"}
    )
    kept = await get(tenant.client, f"/v1/recurring/{made['recurring_id']}")

    assert kept["message"]["text"] == "Ho"
    assert kept["next_run_at"] == made["next_run_at"]


@pytest.mark.parametrize("every", ["now and then", "²", "9" * 5000])
async def test_a_rhythm_that_is_no_number_is_refused(
    service: Service, tenant: Tenant, every: str
) -> None:
    admin = await visitor(service, tenant.project.project_id, "admin")
    times = {"rhythm": "hours", "every": every, "timezone": "UTC"}
    refused = await admin.post("/schedules", {"kind": "recurring", "text": "Hi", **times})

    assert refused.status_code == 400
    assert "every" in refused.text


def test_a_rhythm_is_said_in_words() -> None:
    _ = Texts([], "en").into("en")
    said = {
        cron: in_words(Rule("UTC", 0, cron=cron), _)
        for cron in (
            "0 9 * * *",
            "5 9,18 * * SAT,0",
            "0 12 1,15 * *",
            "*/10 * * * *",
            "7 * * * *",
            "0 0 1 1 *",
        )
    }

    assert list(said.values()) == [
        "Every day at 09:00",
        "Saturdays, Sundays at 09:05, 18:05",
        "On day 1, 15 of each month at 12:00",
        "Every 10 minutes",
        "Every hour, 07 past",
        "Cron: 0 0 1 1 *",
    ]


@pytest.mark.parametrize(
    ("status", "reason", "error", "shown"),
    [
        ("scheduled", None, None, ("", "")),
        (
            "skipped",
            "blocked",
            "the subscriber is blocked",
            ("The subscriber has blocked the bot.", ""),
        ),
        (
            "failed",
            "internal_error",
            "ValueError; the service's log has more",
            ("Something went wrong on our side; the service's log has more.", ""),
        ),
        (
            "failed",
            "validation_failed",
            "text: is too long",
            ("The last run failed. Check the message and its recipients.", "text: is too long"),
        ),
    ],
)
def test_why_it_was_not_sent_is_said_in_words(
    status: str, reason: str | None, error: str | None, shown: tuple[str, str]
) -> None:
    record = replace(TO_ANNA, status=status, reason=reason, error=error)

    assert why_not_sent(record, Texts([], "en").into("en")) == shown
