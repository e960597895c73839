"""A person who used every part of the service leaves nothing of themselves in any table."""

from typing import Any

import pytest

from msgsvc_core.channels import ButtonPressed, ChannelUser, MessageReceived
from msgsvc_core.channels.shelf import Shelf
from msgsvc_core.subscribers.erasure import AGAIN_AFTER_S
from msgsvc_devkit import FakeClock, settled
from msgsvc_devkit.fixtures import ServiceFactory
from tests.api.subscribing import subscribing
from tests.api.test_erasing import tables_with
from tests.hostile.place import furnish

#: A name that none of our texts contains. Ids of the person contain it, too.
NAME = "Zephyrine"

#: Ids that tests give their updates, which are nothing of the person's.
ELSEWHERE = ["core_updates"]

#: A table of each area that knew the person.
AREAS = {
    "core_messages",
    "core_recipients",
    "core_shelf",
    "core_subscribers",
    "drip_enrollments",
    "helpdesk_entries",
    "otp_codes",
    "scheduling_records",
    "webhooks_deliveries",
}

#: Tables in which the id stays, with nothing that leads from it to the person: what happened is still
#: counted, and the event that reports the erasure names it.
WITH_ID = ["core_events", "core_mailing_ways", "helpdesk_tickets", "webhooks_deliveries"]

EMAIL = f"{NAME.lower()}@people.example"


@pytest.mark.both_databases
async def test_nothing_of_a_person_is_left_in_the_tables_of_any_area(
    make_service: ServiceFactory, make_tenant: Any, clock: FakeClock
) -> None:
    place = await furnish(make_service, make_tenant)
    service, tenant = place.service, place.tenant
    person = await subscribing(service, tenant)(
        NAME, external_id=EMAIL, tags=[place.ids["tag"]], permissions=[place.ids["permission"]]
    )
    user = ChannelUser(f"user-{NAME}", NAME, NAME.lower(), "en")
    chat = {"chat_id": f"chat-{NAME}", "user": user}

    async def post(path: str, **body: Any) -> Any:
        answer = await tenant.client.post(path, json=body)
        assert answer.is_success, (path, answer.text)
        return answer.json()

    text = f"Dear {NAME}"
    await post("/v1/send", subscriber_id=person, text=text, metadata={"name": NAME})
    await post("/v1/send/batch", messages=[{"subscriber_id": person, "text": text}])
    await post("/v1/otp/send", subscriber_id=person)
    await post("/v1/tickets", subscriber_id=person, text=f"From {NAME}", subject=NAME)
    await post(f"/v1/drips/{place.ids['drip_id']}/enroll", subscriber_id=person)
    await post("/v1/scheduled", subscriber_id=person, text=text, send_at="2026-02-01T00:00:00Z")
    # Its text is the project's own, whomever it is to.
    await post("/v1/broadcast", audience={"subscriber_ids": [person]}, text="Hello")
    filters = {"external_id": EMAIL}
    await post("/v1/subscribers/bulk-actions", action="add_tag", value="new", filters=filters)
    writes = MessageReceived(update_id="z-1", text=f"I am {NAME}", **chat)
    await service.inbound.receive("messenger_a", writes)
    presses = ButtonPressed(update_id="z-2", data="x", message_ref="m1", button_ref="b1", **chat)
    await service.inbound.receive("messenger_a", presses)
    async with service.db.transaction() as tx:
        failed = MessageReceived(update_id="z-3", text=f"{NAME} again", **chat)
        await service.get(Shelf).put_failed(tx, "messenger_a", failed, RuntimeError())
    await settled(service)
    before = {*await tables_with(service, NAME), *await tables_with(service, person)}

    erased = await tenant.client.delete(f"/v1/subscribers/{person}?erase=true")
    await settled(service)
    clock.advance(AGAIN_AFTER_S)
    await settled(service)
    async with service.db.read() as tx:
        shelved = await tx.fetch_all("SELECT user_id FROM core_shelf WHERE user_id IS NOT NULL")

    assert erased.status_code == 204
    assert before >= AREAS
    assert await tables_with(service, NAME) == ELSEWHERE
    assert await tables_with(service, person) == WITH_ID
    assert shelved == []
