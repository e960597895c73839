"""Rotation of the secret keys: all values are brought under the current key while the database is in use."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from msgsvc_core.channels import ChannelUser, Started
from msgsvc_core.db import Tx
from msgsvc_core.security import SecretBox
from msgsvc_core.security.rotation import KeyRotation, Rotated
from msgsvc_core.security.sealed import SealedColumn, find_lost
from msgsvc_core.service import Service
from msgsvc_devkit import RecordingChannel, settled
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from msgsvc_webhooks import store as webhooks_store
from msgsvc_webhooks.service import Webhooks
from tests.api.subscribing import subscribing

OLD, NEW, LOST = "older-key-" * 4, "newer-key-" * 4, "other-key-" * 4

SETTINGS: dict[str, Any] = {"plugins": ("webhooks", "auth")}

#: A table of encrypted values without foreign keys: what they are does not matter to a rotation.
CODES = SealedColumn(
    table="core_start_codes",
    column="sealed",
    key=("digest",),
    holds="{count} code(s)",
    if_lost="nothing",
)


@dataclass(frozen=True, slots=True)
class Used:
    """A database whose values are under the key `OLD`."""

    url: str
    tenant: Tenant
    ann: str
    webhook_id: str
    webhook_secret: str


@pytest.fixture
async def used(make_service: ServiceFactory) -> Used:
    service = await make_service(secret_keys=(OLD,), **SETTINGS)
    project = await service.projects.create("Shop")
    _, key = await service.projects.create_key(project.project_id, "site", ("*",))
    async with client_of(service, key) as client:
        tenant = Tenant(project, key, client)
        ann = await subscribing(service, tenant)("Ann", external_id="ann")
        hook = await client.post("/v1/webhooks", json={"url": "https://shop.example/hooks"})
        made = await client.post("/v1/channels", json={"name": "own_bot", "plugin": "recording"})
        assert made.status_code == 201, made.text
    async with service.db.transaction() as tx:
        await service.contacts.record(
            tx, project.project_id, ann, kind="phone", value="+12025550123", source="telegram"
        )
    await settled(service)
    await service.stop()
    webhook = hook.json()
    return Used(
        service.settings.database_url, tenant, ann, webhook["webhook_id"], webhook["secret"]
    )


def client_of(service: Service, key: str) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(
        transport=httpx2.ASGITransport(app=service.app),
        base_url="http://msgsvc.test",
        headers={"Authorization": f"Bearer {key}"},
    )


def rotation_of(service: Service, columns: Sequence[SealedColumn] | None = None) -> KeyRotation:
    return KeyRotation(
        secrets=service.secrets,
        columns=service.declared.sealed if columns is None else columns,
        read=service.db.read,
        transaction=service.db.transaction,
    )


def unseen(_column: SealedColumn, _count: int) -> None:
    """Progress that nobody looks at."""


async def fill(service: Service, keys: Sequence[str], count: int) -> None:
    """Codes under a key, in the order of their digests."""
    box = SecretBox(keys)
    async with service.db.transaction() as tx:
        rows = [
            {
                "digest": f"{number:05}",
                "sealed": box.encrypt(f"code {number}"),
                "expires_at_ms": 2**53,
            }
            for number in range(count)
        ]
        await tx.insert_many("core_start_codes", rows)


async def codes(service: Service) -> dict[str, str]:
    async with service.db.read() as tx:
        rows = await tx.fetch_all("SELECT digest, sealed FROM core_start_codes ORDER BY digest")
    return {row["digest"]: row["sealed"] for row in rows}


async def test_everything_works_with_the_new_key_alone_after_a_rotation(
    used: Used, make_service: ServiceFactory
) -> None:
    both = await make_service(database_url=used.url, secret_keys=(NEW, OLD), **SETTINGS)
    await fill(both, [OLD], 3)
    rotated = await rotation_of(both).run(unseen)
    await both.stop()
    alone = await make_service(database_url=used.url, secret_keys=(NEW,), **SETTINGS)
    async with client_of(alone, used.tenant.key) as client:
        own = await client.get("/v1/channels/own_bot")
    async with alone.db.read() as tx:
        project_id = used.tenant.project.project_id
        _, sealed = await webhooks_store.find_with_secrets(
            tx, project_id, used.webhook_id, alone.clock.now_ms()
        )
        contacts = await alone.contacts.find(tx, project_id, used.ann)
        holders = await alone.contacts.find_holders(tx, project_id, "phone", "+12025550123")

    [new_id] = SecretBox([NEW]).key_ids
    assert rotated.renewed["webhooks_secrets.encrypted"] == 1
    assert rotated.renewed["core_channels.settings"] == 1
    assert rotated.renewed["core_subscriber_contacts.value"] == 1
    assert rotated.renewed["core_start_codes.sealed"] == 3
    assert not rotated.unreadable.total()
    assert {key_id for use in rotated.uses for key_id in use.by_key} == {new_id}
    assert alone.get(Webhooks).unseal(used.webhook_id, sealed) == [used.webhook_secret]
    assert own.json()["status"] == "working"
    assert contacts.phone == "+12025550123"
    assert holders == [used.ann]
    assert not alone.keys_are_lost


@pytest.mark.database_file
@pytest.mark.parametrize("writes", ["new first", "old first"])
async def test_processes_in_a_rolling_restart_read_what_the_others_write(
    used: Used, make_service: ServiceFactory, writes: str
) -> None:
    """Each knows both keys by then, and half of them have the new one first."""
    orders = [(NEW, OLD), (OLD, NEW)] if writes == "new first" else [(OLD, NEW), (NEW, OLD)]
    settings = {**SETTINGS, "database_url": used.url}
    writer = await make_service(secret_keys=orders[0], jobs={"runner": "none"}, **settings)
    reader = await make_service(secret_keys=orders[1], **settings)
    key = {"Idempotency-Key": "tag-vip-2026"}
    async with client_of(writer, used.tenant.key) as client:
        session = (await client.post("/v1/auth/session", json={"state": "s"})).json()
        first = await client.post("/v1/tags", json={"name": "vip"}, headers=key)
        made = await client.post("/v1/channels", json={"name": "later", "plugin": "recording"})
        assert (first.status_code, made.status_code) == (201, 201)
    payload = session["links"]["messenger_a"].partition("start=")[2]
    ann = ChannelUser("user-Ann", "Ann", "ann", "en")
    await reader.inbound.receive(
        "messenger_a", Started(update_id="1", chat_id="chat-Ann", user=ann, payload=payload)
    )
    await settled(reader)
    async with client_of(reader, used.tenant.key) as client:
        again = await client.post("/v1/tags", json={"name": "vip"}, headers=key)
        later = await client.get("/v1/channels/later")

    channel = reader.channels["messenger_a"]
    assert isinstance(channel, RecordingChannel)
    assert channel.sent[-1].message.buttons[0][0].text == "Yes"
    assert (again.status_code, again.content) == (201, first.content)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert later.json()["status"] == "working"


async def test_a_second_rotation_finds_nothing_to_do(
    used: Used, make_service: ServiceFactory
) -> None:
    service = await make_service(database_url=used.url, secret_keys=(NEW, OLD), **SETTINGS)
    await rotation_of(service).run(unseen)
    again = await rotation_of(service).run(unseen)

    assert not again.renewed.total()


async def test_what_changes_meanwhile_is_not_overwritten(
    make_service: ServiceFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("msgsvc_core.security.rotation.STEP", 4)
    service = await make_service(secret_keys=(NEW, OLD))
    await fill(service, [OLD], 10)
    changed: dict[str, str] = {
        # By a process that has the new key first, and by one that has only been told of it.
        "00001": SecretBox([NEW, OLD]).encrypt("changed 1"),
        "00002": SecretBox([OLD, NEW]).encrypt("changed 2"),
    }

    @asynccontextmanager
    async def changing() -> AsyncIterator[Tx]:
        """Other processes are quicker than the first step's writing."""
        async with service.db.transaction() as tx:
            while changed:
                digest, sealed = changed.popitem()
                await tx.execute(
                    "UPDATE core_start_codes SET sealed = :sealed WHERE digest = :digest",
                    {"sealed": sealed, "digest": digest},
                )
            await tx.execute("DELETE FROM core_start_codes WHERE digest = '00003'")
        async with service.db.transaction() as tx:
            yield tx

    rotation = KeyRotation(
        secrets=service.secrets, columns=[CODES], read=service.db.read, transaction=changing
    )
    rotated = await rotation.run(unseen)
    alone = SecretBox([NEW])
    texts = {digest: alone.decrypt(sealed) for digest, sealed in (await codes(service)).items()}

    assert texts.pop("00001") == "changed 1"
    assert texts.pop("00002") == "changed 2"
    assert "00003" not in texts
    assert texts == {f"{n:05}": f"code {n}" for n in (0, 4, 5, 6, 7, 8, 9)}
    # Not those that another process had brought under the key, or deleted.
    assert rotated.renewed == {"core_start_codes.sealed": 8}


async def test_values_of_a_lost_key_stay_and_are_told(
    make_service: ServiceFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("msgsvc_core.security.rotation.STEP", 2)
    service = await make_service(secret_keys=(NEW, OLD))
    await fill(service, [LOST], 5)
    before = await codes(service)
    rotation = rotation_of(service, [CODES])
    [lost] = await rotation.lost(await rotation.uses())
    rotated = await rotation.run(unseen)

    assert (lost.count, lost.is_least) == (5, False)
    assert lost.key_ids == SecretBox([LOST]).key_ids
    assert lost.text.startswith("no key reads the 5 code(s) (core_start_codes), which need key ")
    assert rotated.unreadable == {"core_start_codes.sealed": 5}
    assert await codes(service) == before


async def test_values_that_do_not_name_their_key_are_sampled(
    make_service: ServiceFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("msgsvc_core.security.sealed.SAMPLE", 2)
    service = await make_service(secret_keys=(NEW, OLD))
    # As an earlier release encrypted: without the key's id, which is a time then.
    for number, key in enumerate([OLD, LOST, OLD, OLD, OLD]):
        box = SecretBox([key])
        box._id_as_time = 1_700_000_000
        async with service.db.transaction() as tx:
            values = {"digest": f"{number:05}", "sealed": box.encrypt("x"), "expires_at_ms": 2**53}
            await tx.insert("core_start_codes", values)
    rotation = rotation_of(service, [CODES])
    [use] = await rotation.uses()
    async with service.db.read() as tx:
        lost = await find_lost(tx, use, service.secrets)
    rotated = await rotation.run(unseen)

    assert (use.unnamed, use.by_key) == (5, {})
    assert lost is not None
    assert (lost.count, lost.is_least) == (1, True)
    assert "at least 1 code(s)" in lost.text
    assert isinstance(rotated, Rotated)
    assert rotated.renewed == {"core_start_codes.sealed": 4}
    assert rotated.unreadable == {"core_start_codes.sealed": 1}


async def test_every_declared_column_is_one_of_the_database(make_service: ServiceFactory) -> None:
    service = await make_service(plugins=("webhooks", "oidc", "auth", "dashboard"))

    # It reads each, by its primary key and what its values are bound to.
    assert not (await rotation_of(service).run(unseen)).unreadable.total()
    async with service.db.read() as tx:
        for column in service.declared.sealed:
            names = ", ".join({column.column, *column.key, *column.bound_to})
            await tx.fetch_all(f"SELECT {names} FROM {column.table} LIMIT 1")
            assert column.holds
            assert column.if_lost
