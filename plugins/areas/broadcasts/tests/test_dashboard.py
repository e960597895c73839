"""The pages of broadcasts: written, looked at, sent, watched, held and ended."""

import re
from typing import Any

import pytest

from msgsvc_broadcasts import plugin
from msgsvc_core.channels.failures import DeliveryError, Reason
from msgsvc_core.service import Service
from msgsvc_dashboard.accounts import Accounts
from msgsvc_devkit.channel import RecordingChannel
from msgsvc_devkit.dashboard import visitor
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from msgsvc_sandbox import plugin as sandbox

from .conftest import AddPeople, ended, give, take

HOSTILE = '<script>alert(1)</script>"><img src=x onerror=alert(1)>\u202e{{ first_name }}'


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    dashboard = pytest.importorskip("msgsvc_dashboard.plugin", reason="shows the pages")
    return await make_service(extra_plugins=[("broadcasts", plugin), ("dashboard", dashboard)])


def hidden(page: Any) -> dict[str, Any]:
    """What the form of the last look sends, with all that was typed."""
    form = page.text.partition("Send to ")[0].rpartition("<form")[2]
    names = re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form)
    return {name: value for name, value in names if name != "_csrf"}


@pytest.mark.parametrize("pace", ["slowly", "²", "9" * 5000])
async def test_a_pace_that_is_no_number_is_refused(
    service: Service, tenant: Tenant, pace: str
) -> None:
    admin = await visitor(service, tenant.project.project_id, "admin")
    refused = await admin.post("/broadcasts/review", {"text": "Hi", "to": "all", "pace": pace})

    assert refused.status_code == 400
    assert "messages_per_minute" in refused.text


async def test_a_broadcast_is_written_looked_at_and_sent_once(
    service: Service, tenant: Tenant, people: AddPeople
) -> None:
    ids = await people(3)
    await give(service, tenant, "vip", ids[:2])
    admin = await visitor(service, tenant.project.project_id, "admin")

    first = await admin.get("/broadcasts")
    form = await admin.get("/broadcasts/new")
    reach = await admin.get("/broadcasts/reach", to="some", tags_any=["vip", "vip"])
    refused = await admin.post("/broadcasts/review", {"text": HOSTILE, "to": "some"})
    typed = {
        "text": "Hi **{{ first_name }}**",
        "format": "markdown",
        "to": "some",
        "tags_any": "vip",
    }
    look = await admin.post("/broadcasts/review", typed)
    again = await admin.post("/broadcasts/new", hidden(look))
    sent = await admin.post("/broadcasts", hidden(look))
    twice = await admin.post("/broadcasts", hidden(look))
    job_id = sent.headers["location"].rpartition("/")[2]
    done = await ended(tenant.client, job_id)
    shown = await admin.get(f"/broadcasts/{job_id}")
    got = await admin.get(f"/broadcasts/{job_id}/recipients", status="sent")
    listed = await admin.get("/broadcasts")
    like = await admin.get("/broadcasts/new", like=job_id)

    assert "Write the first one" in first.text
    assert 'value="vip"' in form.text
    assert "2 people" in reach.text
    assert refused.status_code == 400
    assert "audience" in refused.text
    assert "<script>alert" not in refused.text
    assert "&lt;script&gt;alert(1)" in refused.text
    assert '<span class="mark-bold">Alex</span>' in look.text
    assert "Send to 2 people" in look.text
    assert "Hi **{{ first_name }}**" in again.text
    assert 'value="vip" checked' in again.text
    assert sent.status_code == twice.status_code == 303
    assert twice.headers["location"] == sent.headers["location"]
    assert (done["sent"], done["total"]) == (2, 2)
    assert "Completed" in shown.text
    assert "hx-trigger" not in shown.text.partition('id="progress"')[2].partition("</div>")[0]
    assert got.text.count("/subscribers/sub_") == 2
    assert job_id in listed.text
    assert "Hi **{{ first_name }}**" in like.text


async def test_one_like_another_to_some_by_their_ids_begins_without_an_audience(
    service: Service, tenant: Tenant, people: AddPeople
) -> None:
    ids = await people(4)
    admin = await visitor(service, tenant.project.project_id, "admin")
    some = {"subscriber_ids": ids[:2], "langs": ["en"]}
    job_ids = [await take(tenant.client, audience=each) for each in (some, {"langs": ["en"]})]
    pages = [(await admin.get("/broadcasts/new", like=job_id)).text for job_id in job_ids]

    assert ['value="en" checked' in page for page in pages] == [False, True]
    assert all('value="some" checked' in page for page in pages)


async def test_what_is_uncertain_is_shown_apart_from_what_failed(
    service: Service, tenant: Tenant, people: AddPeople, channel: RecordingChannel
) -> None:
    await people(4)
    channel.failures += [
        DeliveryError(Reason.PLATFORM_UNAVAILABLE, "lost", in_doubt=True),
        DeliveryError(Reason.INVALID_MESSAGE, "no"),
    ]
    admin = await visitor(service, tenant.project.project_id, "admin")
    job_id = await take(tenant.client)
    await ended(tenant.client, job_id)

    shown = await admin.get(f"/broadcasts/{job_id}")
    listed = await admin.get("/broadcasts")
    await admin.post(f"/broadcasts/{job_id}/resend")
    afterwards = await admin.get(f"/broadcasts/{job_id}")

    for page in (shown, listed):
        assert legend(page) == ["4 of 4", "Sent 2", "Failed 1", "Unknown 1"]
    assert "the outcome is unknown" in shown.text
    assert "Resend to recipients with an unknown outcome" in shown.text
    assert "Resend to recipients with an unknown outcome" not in afterwards.text


def legend(page: Any) -> list[str]:
    """What stands below the bar of outcomes."""
    bar = page.text.partition('class="outcomes"')[2].partition("</ul>")[0].partition("<ul>")[2]
    return [re.sub("<[^>]+>", "", each).strip() for each in re.findall("<li.*?</li>", bar)]


async def test_pages_speak_with_the_texts_of_their_area_and_the_frame_with_its_own(
    make_service: ServiceFactory, make_tenant: Any
) -> None:
    """`Cancel` and `Failed` are other words in other plugins, whichever is loaded first."""
    dashboard = pytest.importorskip("msgsvc_dashboard.plugin", reason="shows the pages")
    plugins = [("sandbox", sandbox), ("dashboard", dashboard), ("broadcasts", plugin)]
    service = await make_service(extra_plugins=plugins)
    tenant = await make_tenant(service)
    job_id = await take(tenant.client, send_at="2027-01-01T10:00:00Z", audience={"langs": ["en"]})
    admin = await visitor(service, tenant.project.project_id, "admin")
    admin.client.headers["Accept-Language"] = "ru"

    shown = await admin.get(f"/broadcasts/{job_id}")
    people = await admin.get(f"/broadcasts/{job_id}/recipients")

    assert ">Отменить</summary>" in shown.text
    assert "Не удалось</a>" in people.text
    assert "Отправлено <b" in shown.text


async def test_a_scheduled_broadcast_says_when_it_goes_out_by_the_clock_of_who_reads(
    service: Service, tenant: Tenant, people: AddPeople
) -> None:
    await people(1)
    admin = await visitor(service, tenant.project.project_id, "admin")
    async with service.db.transaction() as tx:
        await service.get(Accounts).change(tx, admin.account_id, timezone="Europe/Berlin")
    job_id = await take(tenant.client, send_at="2026-01-15T15:00:00Z")

    pages = [await admin.get("/broadcasts"), await admin.get(f"/broadcasts/{job_id}")]

    for page in pages:
        said = " ".join(re.sub("<[^>]+>", "", page.text).split())
        assert re.search("Scheduled for ?15 Jan 2026, 16:00 Europe/Berlin", said)
        assert "Scheduled" in said


async def test_the_id_of_a_broadcast_is_good_for_its_own_project_alone(
    service: Service, tenant: Tenant, make_tenant: Any, people: AddPeople
) -> None:
    await people(1)
    other = await make_tenant(service)
    admin = await visitor(service, tenant.project.project_id, "admin")
    elsewhere = await visitor(service, other.project.project_id, "admin")
    look = await admin.post("/broadcasts/review", {"text": "Hi", "to": "all"})
    typed = hidden(look)
    made_up = {**typed, "job_id": f"job_{'0' * 22}"}
    refused = [
        await elsewhere.post("/broadcasts", typed),
        await admin.post("/broadcasts", made_up),
        await admin.post("/broadcasts", {**typed, "job_id": ""}),
    ]
    sent = await admin.post("/broadcasts", typed)

    assert [each.status_code for each in refused] == [400] * 3
    for each in refused:
        assert "review the broadcast again" in each.text
    assert sent.status_code == 303


async def test_a_broadcast_is_held_and_ended_by_who_may(
    service: Service, tenant: Tenant, people: AddPeople
) -> None:
    await people(1)
    project_id = tenant.project.project_id
    admin = await visitor(service, project_id, "admin")
    viewer = await visitor(service, project_id, "viewer")
    agent = await visitor(service, project_id, "agent")
    stranger = await visitor(service, (await service.projects.create("Other")).project_id, "admin")
    job_id = await take(tenant.client, text=HOSTILE, send_at="2027-01-01T10:00:00Z")
    here = f"/broadcasts/{job_id}"

    seen = await viewer.get(here)
    refusals = [
        (await viewer.post(f"{here}/pause")).status_code,
        (await viewer.get("/broadcasts/new")).status_code,
        (await agent.get("/broadcasts")).status_code,
        (await stranger.get(here)).status_code,
        (await stranger.post(f"{here}/cancel")).status_code,
    ]
    paused = await admin.post(f"{here}/pause")
    fragment = await admin.get(f"{here}/progress")
    conflict = await admin.post(f"{here}/pause")
    resumed = await admin.post(f"{here}/resume")
    cancelled = await admin.post(f"{here}/cancel")
    over = await admin.get(here)

    assert seen.status_code == 200
    assert "<script>alert" not in seen.text
    assert "/pause" not in seen.text
    assert refusals == [403, 403, 403, 404, 404]
    assert paused.status_code == resumed.status_code == cancelled.status_code == 303
    assert "Paused" in fragment.text
    assert "<html" not in fragment.text
    assert conflict.status_code == 409
    assert "it is paused" in conflict.text
    assert "Cancelled" in over.text


async def test_a_time_is_by_the_clock_of_who_sends(
    service: Service, tenant: Tenant, people: AddPeople
) -> None:
    await people(1)
    admin = await visitor(service, tenant.project.project_id, "admin")
    async with service.db.transaction() as tx:
        await tx.execute("UPDATE dashboard_accounts SET timezone = 'Asia/Yekaterinburg'")
    typed = {"text": "Hi", "to": "all", "when": "later", "send_at": "2027-01-01T10:00"}

    look = await admin.post("/broadcasts/review", typed)
    sent = await admin.post("/broadcasts", hidden(look))
    taken = await tenant.client.get(f"/v1/broadcast/{sent.headers['location'].rpartition('/')[2]}")

    assert "2027-01-01T05:00:00.000Z" in look.text
    assert taken.json()["send_at"] == "2027-01-01T05:00:00.000Z"
