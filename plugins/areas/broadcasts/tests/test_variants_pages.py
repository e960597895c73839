"""Variants on pages: written, previewed, reviewed, compared, and one of them chosen."""

import re
from typing import Any

import pytest

from msgsvc_broadcasts import plugin
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, RecordingChannel, settled
from msgsvc_devkit.dashboard import visitor
from msgsvc_devkit.fixtures import ServiceFactory, Tenant

from .conftest import AddPeople, ended
from .test_dashboard import hidden
from .test_variants import experiment, press, state, texts, waiting

TYPED = {"to": "all", "variants": "2", "text": "Text of A", "b_text": "Text of B"}


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    dashboard = pytest.importorskip("msgsvc_dashboard.plugin", reason="shows the pages")
    return await make_service(extra_plugins=[("broadcasts", plugin), ("dashboard", dashboard)])


def areas(page: Any) -> list[str]:
    """The fields of texts in English, by name."""
    return re.findall(r'<textarea id="f-\w*text" name="(\w*text)"', page.text)


async def test_a_button_adds_a_variant_and_another_removes_the_last_without_scripts(
    service: Service, tenant: Tenant
) -> None:
    admin = await visitor(service, tenant.project.project_id, "admin")
    first = await admin.get("/broadcasts/new")
    typed = {"text": "Hi", "to": "all", "variants": "1", "change_variants": "add"}
    two = await admin.post("/broadcasts/new", typed)
    four = await admin.post("/broadcasts/new", {**typed, "variants": "3", "b_text": "Ho"})
    three = await admin.post(
        "/broadcasts/new", {**typed, "variants": "4", "b_text": "Ho", "change_variants": "remove"}
    )
    odd = await admin.post("/broadcasts/new", {**typed, "variants": "\u00b2"})

    assert areas(first) == ["text"]
    assert "Comparison" not in first.text
    assert areas(two) == areas(odd) == ["text", "b_text"]
    assert "Hi</textarea>" in two.text
    assert 'name="share_percent" type="number" value="20"' in two.text
    assert areas(four) == ["text", "b_text", "c_text", "d_text"]
    assert "Add a variant" not in four.text
    assert areas(three) == ["text", "b_text", "c_text"]
    assert "Ho</textarea>" in three.text


async def test_variants_are_previewed_tested_reviewed_sent_and_copied(
    service: Service, tenant: Tenant, people: AddPeople, channel: RecordingChannel
) -> None:
    [ann, *_] = await people(10)
    admin = await visitor(service, tenant.project.project_id, "admin")
    typed = {
        **TYPED,
        "b_variant_name": "short",
        "b_button_text_1": "Yes",
        "b_button_data_1": "yes",
        "share_percent": "40",
        "winner": "manual",
        "after_seconds": "3600",
        "permission": "",
    }
    preview = await admin.post("/broadcasts/preview", {**typed, "b_text": "x" * 5000})
    tested = await admin.post("/broadcasts/test", {**typed, "test_to": ann, "test_variant": "b_"})
    await settled(service)
    got = texts(channel)
    review = await admin.post("/broadcasts/review", typed)
    refused = await admin.post("/broadcasts/review", {**typed, "share_percent": "0"})
    sent = await admin.post("/broadcasts", hidden(review))
    job_id = sent.headers["location"].rpartition("/")[2]
    held = await waiting(tenant.client, job_id)
    copy = await admin.get("/broadcasts/new", like=job_id)

    shown = preview.text.partition('id="preview"')[2]
    assert "Text of A" in shown
    assert "Variant short" in shown
    assert "notice warn" in shown
    assert tested.status_code == 200
    assert got == {"Text of B": 1}
    assert "Variant A" in review.text
    assert "Variant short" in review.text
    assert "40% get the variants; the rest waits until you choose" in review.text
    assert refused.status_code == 400
    assert "share_percent" in refused.text
    assert (held["share_percent"], held["winner"], held["variants"]) == (
        40,
        "manual",
        ["A", "short"],
    )
    assert areas(copy) == ["text", "b_text"]
    assert "Text of B</textarea>" in copy.text
    assert 'name="b_variant_name" type="text" value="short"' in copy.text
    assert 'name="b_button_data_1" type="text" value="yes"' in copy.text
    assert 'name="share_percent" type="number" value="40"' in copy.text


async def test_the_report_compares_variants_and_a_member_chooses_one(
    service: Service, tenant: Tenant, people: AddPeople, channel: RecordingChannel
) -> None:
    await people(20)
    admin = await visitor(service, tenant.project.project_id, "admin")
    viewer = await visitor(service, tenant.project.project_id, "viewer")
    job_id = await experiment(tenant.client, share_percent=50)
    await waiting(tenant.client, job_id)
    of_b = [each.chat_id for each in channel.sent if each.message.text == "Text of B"]
    await press(service, channel, *of_b[:2])
    before = await admin.get(f"/broadcasts/{job_id}")
    fragment = await admin.get(f"/broadcasts/{job_id}/variants")
    looked = await viewer.get(f"/broadcasts/{job_id}")
    forbidden = await viewer.post(f"/broadcasts/{job_id}/winner", {"variant": "B"})
    chosen = await admin.post(f"/broadcasts/{job_id}/winner", {"variant": "B"})
    again = await admin.post(f"/broadcasts/{job_id}/winner", {"variant": "A"})
    await ended(tenant.client, job_id)
    after = await admin.get(f"/broadcasts/{job_id}")

    assert (
        rows(before) == rows(fragment) == [["A", "5", "0", "0", "0%"], ["B", "5", "0", "2", "40%"]]
    )
    assert "All variants were sent. Clicks decide" in before.text
    assert "Waiting for the winner" in before.text
    assert "Choose B" in before.text
    assert "Choose B" not in looked.text
    assert forbidden.status_code == 403
    assert chosen.status_code == 303
    assert again.status_code == 409
    assert (await state(tenant.client, job_id))["chosen_by"] == "member"
    assert "A member chose variant B" in after.text
    assert rows(after) == [["A", "5", "0", "0", "0%"], ["B Winner", "5", "0", "2", "40%"]]
    assert "Choose B" not in after.text
    assert texts(channel) == {"Text of A": 5, "Text of B": 15}


async def test_the_report_says_that_there_were_no_clicks_and_keeps_its_figures(
    service: Service, tenant: Tenant, people: AddPeople, clock: FakeClock
) -> None:
    await people(4)
    job_id = await experiment(tenant.client, share_percent=50)
    await waiting(tenant.client, job_id)
    clock.advance(3601)
    await ended(tenant.client, job_id)
    clock.advance((service.settings.limits.recipient_days + 1) * 24 * 3600)
    await settled(service)
    admin = await visitor(service, tenant.project.project_id, "admin")
    report = await admin.get(f"/broadcasts/{job_id}")

    assert "There were no clicks: the first variant, A, went to the rest" in report.text
    assert rows(report) == [["A Winner", "1", "0", "0", "0%"], ["B", "1", "0", "0", "0%"]]


def rows(page: Any) -> list[list[str]]:
    part = page.text.partition('id="variants"')[2].partition("</table>")[0]
    found = [
        [
            " ".join(re.sub("<[^>]+>", "", cell).split())
            for cell in re.findall(r"(<td.*?)</td>", row, re.DOTALL)
        ]
        for row in part.split("<tr>")
    ]
    return [row for row in found if row]
