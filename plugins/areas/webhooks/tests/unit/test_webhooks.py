"""What a project may do with its webhooks and their deliveries."""

import pytest

from msgsvc_core.db import Tx
from msgsvc_core.jobs import URGENT
from msgsvc_core.kernel.errors import Conflict, NotFound
from msgsvc_core.security import DecryptionError
from msgsvc_devkit.core import PROJECT, MemoryCore
from msgsvc_webhooks.events import TEST
from msgsvc_webhooks.models import CreateWebhookBody, DeliveryQuery, UpdateWebhookBody
from msgsvc_webhooks.retries import LAST_STEP
from msgsvc_webhooks.service import DELIVER, Webhooks
from plugins.areas.webhooks.tests.unit.parts import (
    NOW_MS,
    URL,
    add_delivery,
    add_webhook,
    happened,
)


async def test_a_webhook_is_made_with_a_secret_that_is_bound_to_it(
    core: MemoryCore, tx: Tx
) -> None:
    webhooks = core.get(Webhooks)
    webhook, secret = await webhooks.create(tx, PROJECT, CreateWebhookBody(url=URL))
    sealed = await tx.fetch_val("SELECT encrypted FROM webhooks_secrets")

    assert secret not in sealed
    assert webhooks.unseal(webhook.webhook_id, [sealed]) == [secret]
    with pytest.raises(DecryptionError):
        webhooks.unseal("whe_other", [sealed])


@pytest.mark.parametrize("core", [{"endpoints_per_project": 2}], indirect=True)
async def test_a_project_has_a_limited_number_of_webhooks(core: MemoryCore, tx: Tx) -> None:
    for _ in range(2):
        await add_webhook(core, tx)

    with pytest.raises(Conflict, match="at most 2"):
        await core.get(Webhooks).create(tx, PROJECT, CreateWebhookBody(url=URL))


@pytest.mark.parametrize(
    ("body", "is_fresh"),
    [
        (UpdateWebhookBody(url=URL), True),
        (UpdateWebhookBody(status="active"), True),
        (UpdateWebhookBody(events=[]), False),
    ],
)
async def test_a_new_address_begins_with_a_clean_record(
    core: MemoryCore, tx: Tx, body: UpdateWebhookBody, is_fresh: bool
) -> None:
    webhook = await add_webhook(core, tx, failing_since_ms=NOW_MS)
    after = await core.get(Webhooks).update(tx, PROJECT, webhook.webhook_id, body)

    assert (after.failing_since_ms is None) is is_fresh
    with pytest.raises(NotFound):
        await core.get(Webhooks).update(tx, PROJECT, "whe_gone", body)


async def test_an_event_goes_to_those_who_want_it_with_one_body_and_a_job_each(
    core: MemoryCore, tx: Tx
) -> None:
    webhooks, ids = core.get(Webhooks), list[str]()
    for names in ([], ["event.tracked"], ["subscription.created"]):
        body = CreateWebhookBody(url=URL, events=names)
        ids.append((await webhooks.create(tx, PROJECT, body))[0].webhook_id)
    [event] = await happened(core, tx)
    queued = [await webhooks.deliveries(tx, PROJECT, each, DeliveryQuery()) for each in ids]

    bodies = [[delivery.body for delivery, _attempts in each] for each in queued]
    start = f'{{"event":"event.tracked","data":{{"event_id":"{event.event_id}",'
    assert [len(each) for each in bodies] == [1, 1, 0]
    assert bodies[0] == bodies[1]
    assert bodies[0][0].startswith(start)
    lanes = [job.lane for job in await core.jobs_named(tx, DELIVER)]
    assert lanes == [f"webhook:{each}" for each in ids[:2]]


async def test_a_test_goes_out_at_once_in_one_attempt_to_an_active_webhook(
    core: MemoryCore, tx: Tx
) -> None:
    webhook, disabled = await add_webhook(core, tx), await add_webhook(core, tx, status="disabled")
    delivery = await core.get(Webhooks).send_test(tx, PROJECT, webhook.webhook_id)

    assert (delivery.event, delivery.step) == (TEST, LAST_STEP)
    assert [job.priority for job in await core.jobs_named(tx, DELIVER)] == [URGENT]
    with pytest.raises(Conflict, match="disabled"):
        await core.get(Webhooks).send_test(tx, PROJECT, disabled.webhook_id)


async def test_a_redelivery_begins_anew_but_never_doubles(core: MemoryCore, tx: Tx) -> None:
    delivery = await add_delivery(core, tx, await add_webhook(core, tx), status="failed")
    again, _attempts = await core.get(Webhooks).redeliver(tx, PROJECT, delivery.delivery_id)

    assert again.status == "pending"
    # Its job is due now, so it is at work or about to be.
    with pytest.raises(Conflict, match="about to be"):
        await core.get(Webhooks).redeliver(tx, PROJECT, delivery.delivery_id)
    assert len(await core.jobs_named(tx, DELIVER)) == 1
