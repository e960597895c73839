"""A person's own data, exported on request: all of it, and nothing of others."""

import re
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import pytest

from msgsvc_core.config.settings import Settings
from msgsvc_core.db.personal_data import NotExported, PersonalTable
from msgsvc_core.service import Service
from msgsvc_core.subscribers.personal_data import PersonalDataExport
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from msgsvc_devkit.services import SECRET_KEY
from tests.api.conftest import CheckError, Subscribe
from tests.api.resources import PLUGINS, SETTINGS, MiniAppPlugin, resources_of
from tests.api.subscribing import subscribing

pytestmark = pytest.mark.both_databases

PATH = "/v1/people/export"

#: Every plugin with tables, also those that hold nothing of people.
ALL = (*PLUGINS, "billing", "dashboard")


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    settings = {**SETTINGS, "plugins": ALL}
    return await make_service(extra_plugins=[("mini_app", MiniAppPlugin())], **settings)


async def exported(client: httpx2.AsyncClient, **who: str) -> dict[str, Any]:
    answer = await client.get(PATH, params=who)
    assert answer.status_code == 200, answer.text
    assert answer.headers["Content-Type"] == "application/json"
    found: dict[str, Any] = answer.json()
    return found


@pytest.fixture
async def ann(
    service: Service, tenant: Tenant, subscribe: Subscribe, client: httpx2.AsyncClient
) -> dict[str, str]:
    """Ann, of whom there is a row of every kind that the API makes."""
    own = await resources_of(service, tenant, subscribe, "Ann")
    subscriber_id = own["subscriber_id"]
    project_id = tenant.project.project_id
    of_her = {"project_id": project_id, "subscriber_id": subscriber_id}
    sent = {"subscriber_id": subscriber_id, "text": "Planned", "send_at": "2026-02-01T00:00:00Z"}
    assert (await client.post("/v1/scheduled", json=sent)).is_success
    async with service.db.transaction() as tx:
        await service.contacts.record(
            tx, project_id, subscriber_id, kind="phone", value="+12025550123", source="telegram"
        )
        await tx.execute(
            "UPDATE forms_submissions SET subscriber_id = :subscriber_id"
            " WHERE project_id = :project_id",
            of_her,
        )
        await tx.execute(
            "UPDATE core_files SET subscriber_id = :subscriber_id WHERE project_id = :project_id",
            of_her,
        )
        await tx.execute(
            "UPDATE auth_sessions SET subscriber_id = :subscriber_id, client_ip = '192.0.2.7'"
            " WHERE project_id = :project_id",
            of_her,
        )
    return own


async def test_every_table_that_names_subscribers_is_declared(service: Service) -> None:
    declared = {one.table for one in service.get(PersonalDataExport).declared}
    async with service.db.read() as tx:
        if tx.dialect == "sqlite":
            rows = await tx.fetch_all(
                "SELECT m.name AS t FROM sqlite_master m JOIN pragma_table_info(m.name) c"
                " WHERE m.type = 'table' AND c.name IN ('subscriber_id', 'subscriber_ids')"
            )
        else:
            rows = await tx.fetch_all(
                "SELECT table_name AS t FROM information_schema.columns WHERE table_schema = 'public'"
                " AND column_name IN ('subscriber_id', 'subscriber_ids')"
            )
    named = {row["t"] for row in rows}

    assert len(named) > 20
    assert named - declared == set()
    assert all(
        one.reason
        for one in service.get(PersonalDataExport).declared
        if isinstance(one, NotExported)
    )


async def test_no_table_and_no_section_is_declared_twice(service: Service) -> None:
    declared = service.get(PersonalDataExport).declared
    sections = [one.section for one in declared if isinstance(one, PersonalTable)]

    assert len({one.table for one in declared}) == len(declared)
    assert len(set(sections)) == len(sections)


async def test_no_secret_is_declared(service: Service) -> None:
    wrong = re.compile(r"hash|digest|token|sealed|secret|nonce|challenge|key_mark")
    columns = {
        f"{one.table}.{column}"
        for one in service.get(PersonalDataExport).declared
        if isinstance(one, PersonalTable)
        for column in one.columns
    }
    encrypted = {column.name for column in service.declared.sealed}

    assert [name for name in sorted(columns) if wrong.search(name)] == []
    assert columns & encrypted == set()


async def test_a_person_gets_what_is_stored_in_every_area(
    client: httpx2.AsyncClient, ann: dict[str, str]
) -> None:
    found = await exported(client, external_id="ann-customer")
    [subscriber] = found["subscribers"]
    profile, data = subscriber["profile"], subscriber["data"]
    filled = {section for section, rows in data.items() if rows}

    assert (profile["subscriber_id"], profile["first_name"]) == (ann["subscriber_id"], "Ann")
    assert (profile["user_id"], profile["tags"]) == ("user-Ann", ["ann-tag"])
    assert profile["verified_contacts"][0]["value"] == "+12025550123"
    assert filled >= {
        "chats",
        "drip_campaigns",
        "events",
        "files",
        "form_submissions",
        "member_accounts",
        "messages",
        "one_time_codes",
        "permissions",
        "scheduled_messages",
        "sign_ins",
        "ticket_blocklist",
        "ticket_entries",
        "tickets",
    }
    assert data["messages"][0]["content"]["text"] == "Hi"
    assert data["form_submissions"][0]["answers"][0]["value"] == "Ann"
    assert [entry["text"] for entry in data["ticket_entries"]] == ["Hi"]
    assert {code["otp_id"] for code in data["one_time_codes"]} == {ann["otp_id"]}
    assert data["sign_ins"][0]["client_ip"] == "192.0.2.7"
    assert data["permissions"] == [
        {"permission": "ann-news", "granted_at": "2026-01-15T12:00:00.000Z"}
    ]


async def test_every_declared_column_can_be_read(
    client: httpx2.AsyncClient, service: Service, ann: dict[str, str]
) -> None:
    [subscriber] = (await exported(client, subscriber_id=ann["subscriber_id"]))["subscribers"]
    sections = {
        one.section
        for one in service.get(PersonalDataExport).declared
        if isinstance(one, PersonalTable)
    }

    assert set(subscriber["data"]) == sections


async def test_all_channels_of_a_person_are_there_and_nobody_else(
    service: Service,
    client: httpx2.AsyncClient,
    subscribe: Subscribe,
    make_tenant: Callable[..., Awaitable[Tenant]],
    check_error: CheckError,
) -> None:
    ann = await subscribe("Ann", external_id="u/1")
    anna = await subscribe("Anna", channel="messenger_b")
    await client.patch(f"/v1/subscribers/{anna}", json={"external_id": "u/1"})
    bob = await subscribe("Bob")
    for subscriber_id, text in ((ann, "To Ann"), (anna, "To Anna"), (bob, "To Bob")):
        await client.post("/v1/send", json={"subscriber_id": subscriber_id, "text": text})
    other = await make_tenant(service, "Other")
    theirs = await subscribing(service, other)("Ann")

    found = await exported(client, external_id="u/1")
    texts = [
        message["content"]["text"]
        for each in found["subscribers"]
        for message in each["data"]["messages"]
    ]
    assert [each["profile"]["subscriber_id"] for each in found["subscribers"]] == [ann, anna]
    assert texts == ["To Ann", "To Anna"]
    assert bob not in str(found)
    for who in ({"subscriber_id": theirs}, {"external_id": "u/2"}):
        check_error(await client.get(PATH, params=who), 404, "subscriber_not_found")
    check_error(await client.get(PATH), 400, "validation_failed")
    both = {"subscriber_id": ann, "external_id": "u/1"}
    check_error(await client.get(PATH, params=both), 400, "mutually_exclusive_identifiers")


async def test_a_key_needs_the_scope_of_its_own(
    service: Service,
    make_tenant: Callable[..., Awaitable[Tenant]],
    check_error: CheckError,
) -> None:
    tenant = await make_tenant(service, "Shop", ("subscribers",))
    ann = await subscribing(service, tenant)("Ann")

    answer = await tenant.client.get(PATH, params={"subscriber_id": ann})
    check_error(answer, 403, "forbidden")


def test_the_core_alone_declares_no_plugins_table() -> None:
    """A service without plugins exports too."""
    settings = {
        "secret_keys": (SECRET_KEY,),
        "plugins": ("sandbox",),
        "channels": {"messenger_a": {"plugin": "sandbox"}},
    }
    service = Service(Settings.model_validate(settings))

    assert {one.table.partition("_")[0] for one in service.get(PersonalDataExport).declared} == {
        "core"
    }
