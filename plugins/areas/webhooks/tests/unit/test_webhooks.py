"""What a project may do with its webhooks and their deliveries."""

from dataclasses import replace
from typing import Any

import pytest

from msgsvc_core.events import Event
from msgsvc_core.jobs import URGENT
from msgsvc_core.kernel.clock import DAY_MS
from msgsvc_core.kernel.errors import Conflict, InvalidUrl, NotFound, ValidationFailed
from msgsvc_devkit.fakes import PROJECT, FakeTx
from msgsvc_webhooks.events import TEST
from msgsvc_webhooks.models import CreateWebhookBody, UpdateWebhookBody
from msgsvc_webhooks.retries import LAST_STEP
from msgsvc_webhooks.service import DELIVER, MAX_VALID_SECRETS
from plugins.areas.webhooks.tests.unit.parts import (
    DELIVERY,
    NOW_MS,
    URL,
    WEBHOOK,
    Plugin,
    job_of,
    row_of,
)


async def test_a_webhook_is_made_with_a_secret_that_only_its_project_reads() -> None:
    hooks, tx = Plugin().webhooks(), FakeTx(answers=[[{"count": 0}]])
    body = CreateWebhookBody(url=URL, events=["event.tracked", "event.tracked"])
    webhook, secret = await hooks.create(tx, PROJECT, body)

    assert webhook.events == ("event.tracked",)
    [kept] = tx.rows["webhooks_secrets"]
    assert secret not in kept["encrypted"]
    assert hooks.unseal(webhook.webhook_id, [kept["encrypted"]]) == [secret]


@pytest.mark.parametrize(
    ("fields", "refusal", "match"),
    [
        ({"url": "http://shop.example/hook"}, InvalidUrl, "allow_http"),
        ({"url": "https://127.0.0.1/"}, InvalidUrl, "allow_cidrs"),
        ({"url": URL, "events": ["event.tracked", "x.y"]}, ValidationFailed, r"events\[1\]"),
    ],
)
async def test_what_can_not_be_called_or_never_happens_is_refused(
    fields: dict[str, Any], refusal: type[Exception], match: str
) -> None:
    with pytest.raises(refusal, match=match):
        await Plugin().webhooks().create(FakeTx(), PROJECT, CreateWebhookBody(**fields))


async def test_a_project_has_a_limited_number_of_webhooks() -> None:
    hooks = Plugin(endpoints_per_project=2).webhooks()

    with pytest.raises(Conflict, match="at most 2"):
        await hooks.create(FakeTx(answers=[[{"count": 2}]]), PROJECT, CreateWebhookBody(url=URL))


@pytest.mark.parametrize(
    ("change", "is_fresh"),
    [({"url": URL}, True), ({"status": "active"}, True), ({"events": []}, False)],
)
async def test_a_new_address_begins_with_a_clean_record(
    change: dict[str, Any], is_fresh: bool
) -> None:
    tx = FakeTx(answers=[1, [row_of(WEBHOOK)]])
    await Plugin().webhooks().update(tx, PROJECT, "whe_1", UpdateWebhookBody(**change))

    assert ("failing_since_ms" in tx.statements[0][1]) is is_fresh
    with pytest.raises(NotFound):
        await (
            Plugin()
            .webhooks()
            .update(FakeTx(answers=[0]), PROJECT, "whe_1", UpdateWebhookBody(**change))
        )


async def test_a_rotated_secret_signs_for_another_day_and_there_are_never_too_many() -> None:
    hooks = Plugin().webhooks()
    tx = FakeTx(answers=[1, [{"encrypted": "x"}], 0, 1])
    secret, until_ms = await hooks.rotate_secret(tx, PROJECT, "whe_1")

    assert until_ms == NOW_MS + DAY_MS
    assert hooks.unseal("whe_1", [tx.rows["webhooks_secrets"][0]["encrypted"]]) == [secret]
    many = [{"encrypted": "x"}] * MAX_VALID_SECRETS
    with pytest.raises(Conflict, match="valid secrets"):
        await hooks.rotate_secret(FakeTx(answers=[1, many]), PROJECT, "whe_1")


async def test_an_event_goes_to_those_who_want_it_with_one_body_and_a_job_each() -> None:
    shop, tx = Plugin(), FakeTx()
    wants = {"whe_1": (), "whe_2": ("event.tracked",), "whe_3": ("otp.verified",)}
    hooks = [replace(WEBHOOK, webhook_id=one, events=names) for one, names in wants.items()]
    tx = FakeTx(answers=[[row_of(each) for each in hooks]])
    event = Event("evt_1", PROJECT, "event.tracked", {"n": 1}, NOW_MS)
    await shop.webhooks().queue_deliveries(tx, [event])

    rows = tx.rows["webhooks_deliveries"]
    assert [row["webhook_id"] for row in rows] == ["whe_1", "whe_2"]
    assert {row["body"] for row in rows} == {
        '{"event":"event.tracked","data":{"event_id":"evt_1","n":1}}'
    }
    assert [job.lane for job in shop.core.jobs.named(DELIVER)] == ["webhook:whe_1", "webhook:whe_2"]


async def test_a_test_goes_out_at_once_in_one_attempt_to_an_active_webhook() -> None:
    shop, tx = Plugin(), FakeTx(answers=[[row_of(WEBHOOK)]])
    delivery = await shop.webhooks().send_test(tx, PROJECT, "whe_1")
    disabled = FakeTx(answers=[[row_of(replace(WEBHOOK, status="disabled"))]])

    assert (delivery.event, delivery.step) == (TEST, LAST_STEP)
    assert [job.priority for job in shop.core.jobs.named(DELIVER)] == [URGENT]
    with pytest.raises(Conflict, match="disabled"):
        await shop.webhooks().send_test(disabled, PROJECT, "whe_1")


async def test_a_redelivery_brings_forward_or_begins_anew_but_never_doubles() -> None:
    shop = Plugin()
    found = [[row_of(DELIVERY)], [], [row_of(WEBHOOK)], [row_of(WEBHOOK)]]
    again = [[row_of(DELIVERY)], []]
    ended = FakeTx(answers=[*found, [{"delivery_id": "whd_1"}], *again])
    await shop.webhooks().redeliver(ended, PROJECT, "whd_1")
    assert len(shop.core.jobs.enqueued) == 1

    # Its job is due now, so it is at work or about to be.
    with pytest.raises(Conflict, match="about to be"):
        await shop.webhooks().redeliver(FakeTx(answers=[*found, []]), PROJECT, "whd_1")
    assert len(shop.core.jobs.enqueued) == 1


@pytest.mark.parametrize(
    ("found", "why"),
    [
        ([[]], "no longer kept"),
        ([[row_of(replace(DELIVERY, status="delivered"))]], "succeeded"),
        ([[row_of(DELIVERY)], []], "deleted"),
        ([[row_of(DELIVERY)], *[[row_of(WEBHOOK)]] * 2, [{"job_id": "job_2"}]], "about to be"),
    ],
)
async def test_a_dead_job_is_not_restarted_where_nothing_would_be_sent(
    found: Any, why: str
) -> None:
    with pytest.raises(Conflict, match=why):
        await Plugin().webhooks().restart(FakeTx(answers=found), job_of())
