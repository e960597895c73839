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

from .conftest import AddPeople, ended, give, recipients, take

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


async def test_the_size_of_an_audience_tells_who_is_left_out_and_leads_to_their_lists(
    service: Service, tenant: Tenant, people: AddPeople
) -> None:
    ids = await people(3)
    await people(2, first=10, status="blocked")
    await people(1, first=20, channel="messenger_b", bot="messenger_b")
    for key in ("sale", "news"):
        await tenant.client.post("/v1/permissions", json={"key": key, "title": "Sale"})
        await tenant.client.put(f"/v1/subscribers/{ids[0]}/permissions/{key}")
    await tenant.client.put(f"/v1/subscribers/{ids[1]}/permissions/news")
    admin = await visitor(service, tenant.project.project_id, "admin")
    some = {"to": "some", "channels": "messenger_a"}

    everybody = await admin.get("/broadcasts/reach", to="all")
    with_both = await admin.get(
        "/broadcasts/reach", **some, audience_permission="news", permission="sale"
    )
    review = await admin.post("/broadcasts/review", {"text": "Hi", **some, "permission": "sale"})

    assert "4 people" in everybody.text
    assert listed_by(everybody) == ["status=active", "status=blocked"]
    assert "1 person" in with_both.text
    assert said(with_both) == [
        "2 blocked the bot",
        "1 on another messenger",
        "2 without the permission: not granted, or withdrawn",
    ]
    assert listed_by(with_both) == ["status=blocked", "channel=messenger_b&status=active"]
    assert "2 without the permission: not granted, or withdrawn" in said(review)


def said(page: Any) -> list[str]:
    """Who is left out, in words."""
    part = page.text.partition('class="left-out"')[2].partition("</ul>")[0]
    plain = [re.sub("<[^>]+>", "", each) for each in re.findall("<li>(.*?)</li>", part, re.DOTALL)]
    return [" ".join(each.split()) for each in plain]


def listed_by(page: Any) -> list[str]:
    """The filters of the lists of subscribers that a page leads to."""
    found = re.findall(r'/subscribers\?([^"]+)"', page.text)
    return ["&".join(sorted(each.replace("&amp;", "&").split("&"))) for each in found]


async def test_the_preview_shows_each_messenger_and_what_it_refuses_and_sends_nothing(
    service: Service, tenant: Tenant, people: AddPeople
) -> None:
    await people(1)
    admin = await visitor(service, tenant.project.project_id, "admin")
    viewer = await visitor(service, tenant.project.project_id, "viewer")
    typed = {"text": "Hi **{{ first_name }}**", "format": "markdown", "to": "all", "name": "Sale"}

    async def fragment(**fields: str) -> str:
        by_htmx = {"HX-Request": "true", "HX-Target": "preview"}
        answer = await admin.post("/broadcasts/preview", {**typed, **fields}, headers=by_htmx)
        assert answer.status_code == 200
        assert "<html" not in answer.text
        return answer.text

    live = await fragment()
    empty = await fragment(text="")
    long = await fragment(text="x" * 5000)
    wrong = await fragment(text="Hi {{ attributes.city }}")
    hostile = await fragment(text=HOSTILE)
    whole = await admin.post("/broadcasts/preview", typed)
    refused = await viewer.post("/broadcasts/preview", typed)
    listed = await tenant.client.get("/v1/broadcast")

    assert '<span class="mark-bold">Alex</span>' in live
    assert "as you type" in empty
    assert "notice" in long
    assert "attributes.city" in wrong
    assert "<script>alert" not in hostile
    assert '<span class="mark-bold">Alex</span>' in whole.text
    assert 'value="Sale"' in whole.text
    assert "Hi **{{ first_name }}**</textarea>" in whole.text
    assert refused.status_code == 403
    assert listed.json()["data"] == []


async def test_a_broadcast_is_titled_by_its_name_and_else_by_its_text(
    service: Service, tenant: Tenant, people: AddPeople
) -> None:
    await people(1)
    admin = await visitor(service, tenant.project.project_id, "admin")
    typed = {"text": "The sale begins", "to": "all", "name": "Spring sale"}
    look = await admin.post("/broadcasts/review", typed)
    sent = await admin.post("/broadcasts", hidden(look))
    named = sent.headers["location"].rpartition("/")[2]
    unnamed = await take(tenant.client, text="No name at all")
    hostile = await take(tenant.client, name=HOSTILE[:90])
    jobs = [named, unnamed, hostile]
    for each in jobs:
        await ended(tenant.client, each)

    pages = [await admin.get(f"/broadcasts/{each}") for each in jobs]
    listed = await admin.get("/broadcasts")
    like = await admin.get("/broadcasts/new", like=hostile)
    long = await admin.post("/broadcasts/review", {**typed, "name": "x" * 101})

    assert "Spring sale" in look.text
    titles = ("Spring sale", "No name at all", "&lt;script&gt;alert(1)")
    for page, title in zip([*pages, listed], (*titles, titles[2]), strict=True):
        assert "<script>alert" not in page.text
        assert title in listed.text
    for page, title in zip(pages, titles, strict=True):
        assert title in page.text.partition("<h1")[2].partition("</h1>")[0]
    assert 'name="name" type="text" value="&lt;script&gt;' in like.text
    assert f"/broadcasts/{unnamed}/recipients?status=sent" in pages[1].text
    assert long.status_code == 400
    assert "name" in long.text


@pytest.mark.both_databases
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


async def test_a_report_tells_each_outcome_apart_with_reasons_and_the_lists_of_them(
    service: Service, tenant: Tenant, people: AddPeople, channel: RecordingChannel
) -> None:
    ids = await people(6)
    channel.failures += [
        DeliveryError(Reason.PLATFORM_UNAVAILABLE, "lost", in_doubt=True),
        DeliveryError(Reason.INVALID_MESSAGE, "no"),
        DeliveryError(Reason.CHAT_NOT_FOUND, "gone"),
    ]
    await people(1, first=10, status="blocked")
    admin = await visitor(service, tenant.project.project_id, "admin")
    viewer = await visitor(service, tenant.project.project_id, "viewer")
    named = {"subscriber_ids": [*ids, "sub_a0000010", "sub_none"]}
    job_id = await take(tenant.client, audience=named)
    await ended(tenant.client, job_id)
    here = f"/broadcasts/{job_id}"

    report = await admin.get(here)
    seen = await viewer.get(here)
    gone = await admin.get(f"{here}/recipients", status="failed", reason="chat_not_found")
    by_reason = [
        await recipients(tenant.client, job_id, reason=each)
        for each in ("chat_not_found", "invalid_message", "rate_limited", "user_blocked_bot")
    ]

    assert sections(report) == {
        "Failed": [
            ("1", "status=failed&reason=chat_not_found"),
            ("1", "status=failed&reason=invalid_message"),
        ],
        "Unknown outcome": [("1", "status=unknown&reason=unknown")],
        "Skipped": [("1", "status=skipped"), ("1", "status=skipped")],
    }
    assert "They have blocked the bot." in report.text
    assert "not reached before it was cancelled, or were erased" in report.text
    assert "If a second copy is better than none" in report.text
    assert "/resend" not in seen.text
    assert gone.text.count("/messages/msg_") == 1
    assert "The chat no longer exists" in gone.text
    assert [len(each) for each in by_reason] == [1, 1, 0, 1]


def sections(page: Any) -> dict[str, list[tuple[str, str]]]:
    """Numbers and filters of the lists of recipients, by the heading above them."""
    found: dict[str, list[tuple[str, str]]] = {}
    for part in page.text.split("<h2")[1:]:
        title = re.sub("<[^>]+>", "", part.partition(">")[2].partition("</h2>")[0]).strip()
        link = r'/recipients\?([^"]+)"><b class="number">(\d+)</b>'
        if links := re.findall(link, part):
            found[title] = [(number, filters.replace("&amp;", "&")) for filters, number in links]
    return found


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

    assert ">Отменить</button>" in shown.text
    assert "Не удалось</a>" in people.text
    assert "Отправлено <b" in shown.text


@pytest.mark.both_databases
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


@pytest.mark.both_databases
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
