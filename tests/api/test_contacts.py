"""Verified contacts in the database: exported, erased with their subscriber, under the current secret key."""

import httpx2
import pytest

from msgsvc_core.db import Tx
from msgsvc_core.jobs.resealing import Resealing
from msgsvc_core.kernel.clock import HOUR_MS
from msgsvc_core.security import SecretBox
from msgsvc_core.security.secret_box import key_id_in
from msgsvc_core.service import Service
from msgsvc_core.subscribers.contacts import Contacts, VerifiedContacts
from msgsvc_core.subscribers.contacts.models import ContactKind
from msgsvc_devkit import FakeClock
from msgsvc_devkit.contexts import JobInTest
from msgsvc_devkit.fixtures import Tenant
from tests.api.conftest import Subscribe
from tests.api.test_export import PATH, rows_of

OLDER, NEWER = "older-key-" * 4, "newer-key-" * 4
PHONE, EMAIL = "+12025550123", "ann@shop.example"


async def record(contacts: VerifiedContacts, service: Service, tenant: Tenant, ann: str) -> None:
    async with service.db.transaction() as tx:
        project_id = tenant.project.project_id
        await contacts.record(tx, project_id, ann, kind="phone", value=PHONE, source="telegram")
        await contacts.record(tx, project_id, ann, kind="email", value=EMAIL, source="code")


async def stored(service: Service) -> list[dict[str, str]]:
    async with service.db.read() as tx:
        rows = await tx.fetch_all("SELECT kind, value, key_mark FROM core_subscriber_contacts")
    return [{name: row[name] for name in ("kind", "value", "key_mark")} for row in rows]


@pytest.mark.both_databases
async def test_verified_contacts_are_exported(
    service: Service, client: httpx2.AsyncClient, tenant: Tenant, subscribe: Subscribe
) -> None:
    ann = await subscribe("Ann")
    await subscribe("Ben")
    await record(service.contacts, service, tenant, ann)

    ben_row, ann_row = rows_of(await client.get(PATH))
    assert (ann_row["phone"], ann_row["email"]) == (f"'{PHONE}", EMAIL)
    assert (ben_row["phone"], ben_row["email"]) == ("", "")
    assert PHONE not in str(await stored(service))


@pytest.mark.both_databases
async def test_contacts_go_with_their_subscriber(
    service: Service, client: httpx2.AsyncClient, tenant: Tenant, ann: str
) -> None:
    await record(service.contacts, service, tenant, ann)
    await client.delete(f"/v1/subscribers/{ann}?erase=true")

    assert await stored(service) == []


async def nobody_lacks_it(_tx: Tx, _key_id: str) -> list[str]:
    return []


async def reseal(service: Service, *keys: str) -> None:
    job = Resealing(
        secrets=SecretBox(keys),
        columns=service.declared.sealed,
        runners_without_key=nobody_lacks_it,
    )
    await job.reseal(JobInTest(service.db), [])


@pytest.mark.both_databases
async def test_contacts_are_encrypted_anew_after_a_rotation(
    service: Service, tenant: Tenant, ann: str, clock: FakeClock
) -> None:
    await record(
        VerifiedContacts(clock=clock, channels=service.channels, secrets=SecretBox([OLDER])),
        service,
        tenant,
        ann,
    )
    await reseal(service, NEWER, OLDER)

    newest = VerifiedContacts(clock=clock, channels=service.channels, secrets=SecretBox([NEWER]))
    async with service.db.read() as tx:
        found = await newest.find(tx, tenant.project.project_id, ann)
    assert (found.phone, found.email) == (PHONE, EMAIL)
    [key_id] = SecretBox([NEWER]).key_ids
    assert {key_id_in(row["value"]) for row in await stored(service)} == {key_id}
    assert {row["key_mark"] for row in await stored(service)} == {key_id}


async def test_contacts_of_a_lost_key_are_unknown_and_left_as_they_are(
    service: Service, tenant: Tenant, ann: str, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("msgsvc_core.security.rotation.STEP", 1)
    await record(
        VerifiedContacts(clock=clock, channels=service.channels, secrets=SecretBox([OLDER])),
        service,
        tenant,
        ann,
    )
    before = await stored(service)
    await reseal(service, NEWER)

    lost = VerifiedContacts(clock=clock, channels=service.channels, secrets=SecretBox([NEWER]))
    async with service.db.read() as tx:
        assert await lost.find(tx, tenant.project.project_id, ann) == Contacts()
    assert await stored(service) == before


def test_the_job_runs_every_hour(service: Service) -> None:
    assert service.get(Resealing).spec.every_s == HOUR_MS / 1000
    assert service.get(Resealing).spec.name in {spec.name for spec in service.job_specs}


async def test_whose_contact_it_is_is_found_by_its_value_whatever_the_key(
    service: Service, tenant: Tenant, subscribe: Subscribe
) -> None:
    ann, ben = await subscribe("Ann"), await subscribe("Ben")
    await record(service.contacts, service, tenant, ann)
    project_id = tenant.project.project_id

    async def holders(kind: ContactKind, value: str, project: str = project_id) -> list[str]:
        async with service.db.read() as tx:
            return await service.contacts.find_holders(tx, project, kind, value)

    assert await holders("phone", "+1 (202) 555-0123") == [ann]
    assert await holders("email", "Ann@Shop.example") == [ann]
    assert await holders("phone", "+12025550124") == []
    assert await holders("phone", PHONE, "prj_other") == []
    async with service.db.transaction() as tx:
        await service.contacts.record(
            tx, project_id, ben, kind="phone", value=PHONE, source="telegram"
        )
    assert set(await holders("phone", PHONE)) == {ann, ben}


async def test_contacts_of_an_earlier_release_are_hashed_by_the_hourly_job(
    service: Service, tenant: Tenant, ann: str
) -> None:
    await record(service.contacts, service, tenant, ann)
    async with service.db.transaction() as tx:
        await tx.execute("UPDATE core_subscriber_contacts SET value_hash = NULL")
    project_id = tenant.project.project_id

    async with service.db.read() as tx:
        assert await service.contacts.find_holders(tx, project_id, "phone", PHONE) == []
    job = Resealing(
        secrets=service.secrets,
        columns=service.declared.sealed,
        runners_without_key=nobody_lacks_it,
    )
    await job.reseal(JobInTest(service.db), [])
    async with service.db.read() as tx:
        assert await service.contacts.find_holders(tx, project_id, "phone", PHONE) == [ann]
