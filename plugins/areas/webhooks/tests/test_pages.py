"""The pages in the dashboard: a webhook's life, its journal, and who may do what."""

import html
import json
import re
from typing import Any

import pytest

from msgsvc_devkit import settled
from msgsvc_devkit.dashboard import visitor

WITH_DASHBOARD = {"core": {"plugins": ("dashboard",)}}

#: What somebody might try to have a page run.
HOSTILE = "<script>alert(1)</script>\"'{{7*7}}"


async def test_a_failed_delivery_is_found_and_sent_again(
    make_webhook_service: Any, receiver: Any
) -> None:
    service = await make_webhook_service(**WITH_DASHBOARD)
    project = await service.projects.create("Shop")
    owner = await visitor(service, project.project_id)
    made = await owner.post(
        "/webhooks/new", {"url": receiver.url, "which": "all", "description": HOSTILE}
    )
    secret = re.search(r"whsec_[\w+/=]+", made.text)
    receiver.then(receiver.answer(404, HOSTILE))
    async with service.db.transaction() as tx:
        await service.events.emit(tx, project.project_id, "subscription.created", {"source": "api"})
    await settled(service)
    (path,) = set(
        re.findall(r'href="([^"]+/webhooks/whe_\w+)"', (await owner.get("/webhooks")).text)
    )
    listed = await owner.get("/webhooks")
    journal = await owner.get(path, status="failed")
    (delivery,) = set(re.findall(r'href="([^"]+/deliveries/whd_\w+)"', journal.text))
    failed = await owner.get(delivery)
    again = await owner.post(f"{delivery}/redeliver")
    await settled(service)
    delivered = await owner.get(delivery)

    assert secret is not None
    assert secret[0] not in journal.text
    assert "The receiver answered 404" in journal.text
    assert "Failing since" in listed.text
    assert "The receiver answered 404, after 1 attempt" in listed.text
    assert "Failing since" not in (await owner.get("/webhooks")).text
    assert "Failed" in failed.text
    assert again.status_code == 303
    assert "Delivered" in delivered.text
    assert len(receiver.received) == 2
    for page in (journal, failed, delivered):
        assert "<script>alert" not in page.text


async def test_the_overview_tells_which_webhook_fails(
    make_webhook_service: Any, receiver: Any
) -> None:
    service = await make_webhook_service(**WITH_DASHBOARD)
    project = await service.projects.create("Shop")
    owner = await visitor(service, project.project_id)
    none = await owner.get("")
    for url in (receiver.url, f"{receiver.url}/other"):
        await owner.post("/webhooks/new", {"url": url, "which": "all"})
    well = await owner.get("")
    receiver.then(receiver.answer(410))
    async with service.db.transaction() as tx:
        await service.events.emit(tx, project.project_id, "subscription.created", {"source": "api"})
    await settled(service)
    failed = await owner.get("")
    await owner.client.aclose()

    assert "Failing webhooks" not in none.text
    assert re.search(r'Failing webhooks</a></h2>\s*<p class="figure">0</p>', well.text)
    assert re.search(r'Failing webhooks</a></h2>\s*<p class="figure">1</p>', failed.text)
    assert "of 2" in failed.text
    assert "A webhook was disabled because it failed." in failed.text


async def test_what_waits_to_be_retried_is_tried_now(
    make_webhook_service: Any, receiver: Any
) -> None:
    service = await make_webhook_service(**WITH_DASHBOARD)
    project = await service.projects.create("Shop")
    owner = await visitor(service, project.project_id)
    viewer = await visitor(service, project.project_id, "viewer")
    made = await owner.post("/webhooks/new", {"url": receiver.url, "which": "all"})
    path = re.search(r'href="([^"]+/webhooks/whe_\w+)"', made.text)
    assert path is not None
    receiver.then(receiver.answer(500))
    async with service.db.transaction() as tx:
        await service.events.emit(tx, project.project_id, "subscription.created", {"source": "api"})
    await settled(service)
    journal = await owner.get(path[1])
    (delivery,) = set(re.findall(r'href="([^"]+/deliveries/whd_\w+)"', journal.text))
    waiting = await owner.get(delivery)
    looked_at = await viewer.get(delivery)
    tried = await owner.post(f"{delivery}/redeliver")
    await settled(service)

    assert "Try now" in waiting.text
    assert "Try now" not in looked_at.text
    assert tried.status_code == 303
    assert "Delivered" in (await owner.get(delivery)).text


async def test_what_was_typed_is_shown_again_after_a_refusal(make_webhook_service: Any) -> None:
    service = await make_webhook_service(**WITH_DASHBOARD)
    project = await service.projects.create("Shop")
    owner = await visitor(service, project.project_id)

    refused = await owner.post(
        "/webhooks/new",
        {
            "url": "https://user:word@example.com/hook",
            "description": HOSTILE,
            "which": "some",
            "events": ["otp.sent", "auth.completed"],
        },
    )

    assert refused.status_code == 400
    assert 'role="alert"' in refused.text
    assert "https://user:word@example.com/hook" in refused.text
    assert "&lt;script&gt;" in refused.text


@pytest.mark.both_databases
async def test_a_webhook_is_changed_switched_off_and_deleted(
    make_webhook_service: Any, receiver: Any
) -> None:
    service = await make_webhook_service(**WITH_DASHBOARD)
    project = await service.projects.create("Shop")
    owner = await visitor(service, project.project_id)
    made = await owner.post("/webhooks/new", {"url": receiver.url, "which": "all"})
    path = re.search(r'href="([^"]+/webhooks/whe_\w+)"', made.text)
    assert path is not None
    tested = await owner.post(f"{path[1]}/test")
    await settled(service)
    await owner.post(
        f"{path[1]}/edit",
        {"url": receiver.url, "which": "some", "events": ["subscription.created"]},
    )
    rotated = await owner.post(f"{path[1]}/secret")
    await owner.post(f"{path[1]}/status", {"status": "disabled"})
    shown = await owner.get(path[1])
    refused = await owner.post(f"{path[1]}/test")
    deleted = await owner.post(f"{path[1]}/delete")

    assert tested.headers["location"].endswith(
        receiver.received[0].headers["X-Service-Delivery-Id"]
    )
    assert "whsec_" in rotated.text
    assert "Disabled" in shown.text
    assert "subscription.created" in shown.text
    assert refused.status_code == 409
    assert deleted.headers["location"].endswith("/webhooks")
    assert (await owner.get(path[1])).status_code == 404


async def test_a_webhook_for_some_events_of_which_none_is_chosen_gets_none_of_them(
    make_webhook_service: Any, receiver: Any
) -> None:
    service = await make_webhook_service(**WITH_DASHBOARD)
    project = await service.projects.create("Shop")
    owner = await visitor(service, project.project_id)
    refused = await owner.post("/webhooks/new", {"url": receiver.url, "which": "some"})
    listed = await owner.get("/webhooks")

    assert refused.status_code == 400
    assert "at least one event" in refused.text
    assert receiver.url not in listed.text


async def test_a_viewer_looks_on_and_an_agent_sees_no_webhooks(
    make_webhook_service: Any, receiver: Any
) -> None:
    service = await make_webhook_service(**WITH_DASHBOARD)
    project = await service.projects.create("Shop")
    owner = await visitor(service, project.project_id)
    viewer = await visitor(service, project.project_id, "viewer")
    agent = await visitor(service, project.project_id, "agent")
    await owner.post("/webhooks/new", {"url": receiver.url, "which": "all"})

    looked = await viewer.get("/webhooks")
    forbidden = await viewer.post("/webhooks/new", {"url": receiver.url, "which": "all"})
    hidden = await agent.get("/webhooks")

    assert receiver.url in looked.text
    assert "/webhooks/new" not in looked.text
    assert (forbidden.status_code, hidden.status_code) == (403, 403)


async def test_an_attempt_is_shown_as_it_was_sent_and_answered_and_never_its_secret(
    make_webhook_service: Any, receiver: Any
) -> None:
    service = await make_webhook_service(**WITH_DASHBOARD)
    project = await service.projects.create("Shop")
    owner = await visitor(service, project.project_id)
    made = await owner.post("/webhooks/new", {"url": receiver.url, "which": "all"})
    secret = re.search(r"whsec_[\w+/=]+", made.text)
    path = re.search(r'href="([^"]+/webhooks/whe_\w+)"', made.text)
    assert path is not None
    assert secret is not None
    receiver.then(
        receiver.answer(500, HOSTILE, X_Trace=HOSTILE, Set_Cookie="session=of-the-receiver")
    )
    async with service.db.transaction() as tx:
        await service.events.emit(tx, project.project_id, "subscription.created", {"source": "api"})
    await settled(service)
    journal = await owner.get(path[1])
    (delivery,) = set(re.findall(r'href="([^"]+/deliveries/whd_\w+)"', journal.text))
    shown = await owner.get(delivery)

    sent = receiver.received[0].headers
    signature = sent["X-Service-Signature"]
    assert f"<dt>X-Service-Signature</dt><dd>{signature}</dd>" in shown.text
    assert sent["webhook-signature"] in shown.text.replace("&#43;", "+").replace("&#61;", "=")
    assert "<dt>Content-Type</dt><dd>application/json</dd>" in shown.text
    assert "<dt>X-Trace</dt>" in shown.text
    assert "Try now" in shown.text
    assert "of-the-receiver" not in shown.text
    for page in (journal, shown):
        assert secret[0] not in page.text
        assert secret[0].removeprefix("whsec_") not in page.text
        assert "<script>alert" not in page.text


async def test_a_whole_group_of_events_is_chosen_without_scripts(
    make_webhook_service: Any, receiver: Any
) -> None:
    service = await make_webhook_service(**WITH_DASHBOARD)
    project = await service.projects.create("Shop")
    owner = await visitor(service, project.project_id)
    made = await owner.post(
        "/webhooks/new",
        {
            "url": receiver.url,
            "which": "some",
            "groups": ["sending"],
            "events": ["button.clicked", "delivery.failed"],
        },
    )
    path = re.search(r'href="([^"]+/webhooks/whe_\w+)"', made.text)
    assert path is not None
    shown = await owner.get(path[1])
    edited = await owner.get(f"{path[1]}/edit")
    none = await owner.post(
        "/webhooks/new", {"url": receiver.url, "which": "some", "groups": ["nothing"]}
    )

    events = re.search(r"<dt>Events</dt><dd>([^<]*)</dd>", shown.text)
    assert events is not None
    assert events[1] == (
        "batch.completed, button.clicked, delivery.delivered, delivery.failed, delivery.read,"
        " delivery.success"
    )
    checked = set(re.findall(r'name="groups" value="(\w+)" checked', edited.text))
    assert checked == {"sending"}
    assert none.status_code == 400


@pytest.mark.parametrize("lang", ["en", "ru"])
async def test_each_event_is_explained_with_an_example(
    make_webhook_service: Any, lang: str
) -> None:
    service = await make_webhook_service(**WITH_DASHBOARD)
    project = await service.projects.create("Shop")
    owner = await visitor(service, project.project_id)
    owner.client.headers["Accept-Language"] = lang
    shown = html.unescape((await owner.get("/webhooks/events")).text)

    found = re.findall(r'<details id="([\w.]+)">(.*?)</details>', shown, re.DOTALL)
    assert {name for name, _ in found} == set(service.events.catalogue)
    for name, inside in found:
        example = re.search(r"<pre[^>]*><code>(.*?)</code>", inside, re.DOTALL)
        assert example is not None
        body = json.loads(example[1])
        assert body["event"] == name
        assert {"event_id", "occurred_at"} <= set(body["data"])
        meaning = inside.partition("</summary>")[0].partition("muted")[2]
        assert bool(re.search("[а-я]", meaning)) is (lang == "ru"), name
