"""The pages in the dashboard: a webhook's life, its journal, and who may do what."""

import re
from typing import Any

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
    journal = await owner.get(path, status="failed")
    (delivery,) = set(re.findall(r'href="([^"]+/deliveries/whd_\w+)"', journal.text))
    failed = await owner.get(delivery)
    again = await owner.post(f"{delivery}/redeliver")
    await settled(service)
    delivered = await owner.get(delivery)

    assert secret is not None
    assert secret[0] not in journal.text
    assert "The receiver answered 404" in journal.text
    assert "Failed" in failed.text
    assert again.status_code == 303
    assert "Delivered" in delivered.text
    assert len(receiver.received) == 2
    for page in (journal, failed, delivered):
        assert "<script>alert" not in page.text


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

    assert "Retry now" in waiting.text
    assert "Retry now" not in looked_at.text
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
