"""What a form's answers were copied to, by forms and the helpdesk together, is blanked with them."""

from typing import Any

import pytest

from msgsvc_core.channels import ChannelUser, DeliveryError, Reason
from msgsvc_core.service import Service
from msgsvc_core.subscribers.tags import Tags
from msgsvc_devkit import FakeClock, RecordingChannel, settled
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from msgsvc_forms import plugin as forms_plugin
from msgsvc_forms.copies import AGAIN_AFTER_S
from msgsvc_forms.models import NewSubmission
from msgsvc_forms.service import Forms
from msgsvc_forms.submissions import Submissions
from msgsvc_helpdesk import plugin as helpdesk_plugin
from tests.api.test_erasing import tables_with

SECRET = "Allergic to bees"


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    plugins = [("forms", forms_plugin), ("helpdesk", helpdesk_plugin)]
    return await make_service(extra_plugins=plugins)


async def person(service: Service, tenant: Tenant, name: str, *tags: str) -> str:
    async with service.db.transaction() as tx:
        if tags:
            await service.get(Tags).ensure(tx, tenant.project.project_id, tags)
        found = await service.subscribers.ensure(
            tx,
            tenant.project.project_id,
            "messenger_a",
            ChannelUser(f"user-{name}", name, None, "en"),
            f"chat-{name}",
            source="api",
            tags=tags,
        )
    return found.subscriber_id


async def form_to(tenant: Tenant, *targets: dict[str, Any]) -> str:
    """The id of a form that leads there."""
    body = {
        "slug": "visit",
        "title": "Visit",
        "fields": [
            {"key": "name", "type": "text", "label": "Name"},
            {"key": "mail", "type": "email", "label": "E-mail"},
            {"key": "note", "type": "text", "label": "Note"},
        ],
        "rules": [{"to": target} for target in targets],
    }
    answer = await tenant.client.post("/v1/forms", json=body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["form_id"])


async def submit(service: Service, tenant: Tenant, form_id: str, who: str | None) -> str:
    forms, project_id = service.get(Forms), tenant.project.project_id
    async with service.db.transaction() as tx:
        subscriber = None if who is None else await service.subscribers.get(tx, project_id, who)
        kept = await service.get(Submissions).submit(
            tx,
            NewSubmission(
                await forms.get(tx, project_id, form_id),
                "web" if who is None else "messenger",
                {"name": "Ann Secretive", "mail": "ann@secret.example", "note": SECRET},
                "en",
                subscriber=subscriber,
            ),
        )
    return kept.submission_id


async def in_tables(service: Service) -> set[str]:
    """The tables where an answer stands, beside the event feed, which has an age of its own."""
    found: set[str] = set()
    for text in (SECRET, "Ann Secretive", "ann@secret.example"):
        found |= set(await tables_with(service, text))
    return found - {"core_events"}


async def later(service: Service, clock: FakeClock) -> None:
    """When what was under way has ended, and was looked for once more."""
    await settled(service)
    clock.advance(AGAIN_AFTER_S + 1)
    await settled(service)


@pytest.fixture
async def led(service: Service, tenant: Tenant) -> str:
    """A form that leads to Boris, to the staff, which is Cleo, and to a ticket."""
    boris = await person(service, tenant, "Boris")
    await person(service, tenant, "Cleo", "staff")
    return await form_to(
        tenant,
        {"kind": "subscriber", "subscriber_id": boris},
        {"kind": "tag", "tag": "staff"},
        {"kind": "ticket"},
    )


async def test_who_is_erased_leaves_no_copy_of_their_answers(
    service: Service, tenant: Tenant, clock: FakeClock, led: str
) -> None:
    ann = await person(service, tenant, "Ann")
    await submit(service, tenant, led, ann)
    await settled(service)
    before = await in_tables(service)

    await tenant.client.delete(f"/v1/subscribers/{ann}?erase=true")
    await later(service, clock)

    assert before == {
        *("forms_submissions", "core_messages", "core_mailings"),
        *("helpdesk_entries", "helpdesk_tickets"),
    }
    assert await in_tables(service) == set()
    assert await tables_with(service, SECRET) == []
    assert await tables_with(service, "forms.forget_copies") == []


@pytest.mark.both_databases
async def test_a_submission_that_is_deleted_leaves_no_copy_in_its_ticket_either(
    service: Service, tenant: Tenant, clock: FakeClock, led: str
) -> None:
    kept = await submit(service, tenant, led, None)
    await settled(service)
    [ticket] = (await tenant.client.get("/v1/tickets")).json()["data"]
    path = f"/v1/tickets/{ticket['ticket_id']}"
    thanked = await tenant.client.post(f"{path}/customer-reply", json={"text": "Thanks"})
    assert thanked.is_success, thanked.text

    await tenant.client.delete(f"/v1/forms/{led}/submissions/{kept}")
    await later(service, clock)

    now = (await tenant.client.get(path)).json()
    said = (await tenant.client.get(f"{path}/messages")).json()
    assert await in_tables(service) == set()
    # The talk that came of it is the helpdesk's, and goes on.
    assert [one["text"] for one in said["data"]] == ["Thanks", ""]
    assert (now["status"], now["customer_name"]) == ("open", None)


async def test_a_ticket_that_was_merged_gives_up_the_answers_too(
    service: Service, tenant: Tenant, clock: FakeClock, led: str
) -> None:
    first, second = [await submit(service, tenant, led, None) for _ in range(2)]
    tickets = (await tenant.client.get("/v1/tickets")).json()["data"]
    ids = {one["source_id"]: one["ticket_id"] for one in tickets}
    merged = await tenant.client.post(f"/v1/tickets/{ids[first]}/merge", json={"into": ids[second]})
    assert merged.is_success, merged.text

    for kept in (first, second):
        await tenant.client.delete(f"/v1/forms/{led}/submissions/{kept}")
    await later(service, clock)

    assert await in_tables(service) == set()


@pytest.mark.both_databases
async def test_answers_of_a_form_that_is_deleted_stay_in_tickets_alone(
    service: Service, tenant: Tenant, clock: FakeClock, led: str
) -> None:
    await submit(service, tenant, led, None)
    await settled(service)

    await tenant.client.delete(f"/v1/forms/{led}")
    await later(service, clock)

    assert await in_tables(service) <= {"helpdesk_entries", "helpdesk_tickets"}
    [ticket] = (await tenant.client.get("/v1/tickets")).json()["data"]
    now = (await tenant.client.get(f"/v1/tickets/{ticket['ticket_id']}/messages")).json()
    assert SECRET in now["data"][0]["text"]


async def test_a_copy_that_waits_is_not_sent_any_more(
    service: Service, tenant: Tenant, clock: FakeClock, channel: RecordingChannel
) -> None:
    boris = await person(service, tenant, "Boris")
    form_id = await form_to(tenant, {"kind": "subscriber", "subscriber_id": boris})
    channel.failures = [DeliveryError(Reason.PLATFORM_UNAVAILABLE, "502")]
    kept = await submit(service, tenant, form_id, None)
    await settled(service)

    await tenant.client.delete(f"/v1/forms/{form_id}/submissions/{kept}")
    await later(service, clock)

    [message] = (await tenant.client.get("/v1/messages")).json()["data"]
    assert (message["status"], message["text"]) == ("skipped", "")
    assert channel.texts == []
    assert await in_tables(service) == set()


async def test_a_mailing_that_waits_is_cancelled_with_its_submission(
    service: Service, tenant: Tenant, clock: FakeClock, channel: RecordingChannel
) -> None:
    await person(service, tenant, "Cleo", "staff")
    form_id = await form_to(tenant, {"kind": "tag", "tag": "staff"})
    channel.failures = [DeliveryError(Reason.PLATFORM_UNAVAILABLE, "502")] * 3
    kept = await submit(service, tenant, form_id, None)
    await settled(service)

    await tenant.client.delete(f"/v1/forms/{form_id}/submissions/{kept}")
    await later(service, clock)

    async with service.db.read() as tx:
        statuses = [row["status"] for row in await tx.fetch_all("SELECT status FROM core_mailings")]
    assert statuses == ["cancelled"]
    assert channel.texts == []
    assert await in_tables(service) == set()
