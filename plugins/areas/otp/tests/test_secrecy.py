"""A code is known to the person alone: not to the database, the log, the events or the answers."""

from typing import Any

import httpx2
import pytest

from msgsvc_core.service import Service
from msgsvc_devkit import settled
from msgsvc_devkit.conformance.tables import all_tables
from msgsvc_otp import plugin
from msgsvc_otp.codes import CodeHashes

from .conftest import ann_of

#: Settings under which a code has so many digits that nothing else holds it by chance.
LONG = {"length": 32, "most_length": 32}

OLD_KEY = "the-key-before-the-key-before-the-key-before"
NEW_KEY = "the-key-of-today-the-key-of-today-the-key-of"


async def everything(service: Service) -> str:
    """All that the database holds, as text."""
    found: list[str] = []
    for table in sorted(await all_tables(service.db)):
        async with service.db.read() as tx:
            rows = await tx.fetch_all(f"SELECT * FROM {table}")
        found += [f"{table}.{name}={row[name]!r}" for row in rows for name in row.keys()]
    return "\n".join(found)


async def test_code_is_nowhere_in_the_database_before_or_after_it_was_sent_and_used(
    make_service: Any, make_tenant: Any, caplog: Any, capsys: Any
) -> None:
    idle = await make_service(extra_plugins=[("otp", plugin)], otp=LONG, jobs={"runner": "none"})
    tenant = await make_tenant(idle)
    url = idle.settings.database_url
    service = await make_service(extra_plugins=[("otp", plugin)], otp=LONG, database_url=url)
    person = ann_of(service)
    body = {"subscriber_id": await person.subscribe(tenant.client)}
    key = {"Idempotency-Key": "send-0001"}

    sent = await tenant.client.post("/v1/otp/send", json=body, headers=key)
    texts = [await everything(service), sent.text]
    await settled(service)
    code = person.messages[-1].message.text.splitlines()[2]
    texts.append(await everything(service))
    wrong = await tenant.client.post("/v1/otp/verify", json={**body, "code": "1" + code})
    used = await tenant.client.post(
        "/v1/otp/verify", json={**body, "code": code}, headers={"Idempotency-Key": "verify-0001"}
    )
    shown = await tenant.client.get(f"/v1/otp/{sent.json()['otp_id']}")
    feed = await tenant.client.get("/v1/events?limit=100")
    texts += [await everything(service), wrong.text, used.text, shown.text, feed.text]
    printed = capsys.readouterr()

    assert len(code) == 32
    assert code.isdecimal()
    assert used.status_code == 200
    assert not any(code in text for text in (*texts, caplog.text, printed.out, printed.err))


async def test_token_of_a_link_is_nowhere_in_the_database(
    service: Service, client: httpx2.AsyncClient
) -> None:
    asked = (await client.post("/v1/otp/request", json={})).json()
    token = asked["links"]["messenger_a"].rpartition("otp_")[2]

    assert len(token) == 22
    assert token not in await everything(service)


async def test_code_of_an_older_secret_key_is_still_good(
    make_service: Any, make_tenant: Any
) -> None:
    before = await make_service(extra_plugins=[("otp", plugin)], secret_keys=(OLD_KEY,))
    tenant = await make_tenant(before)
    person = ann_of(before)
    body = {"subscriber_id": await person.subscribe(tenant.client)}
    await tenant.client.post("/v1/otp/send", json=body)
    await settled(before)
    code = person.code
    await before.stop()

    after = await make_service(
        extra_plugins=[("otp", plugin)],
        secret_keys=(NEW_KEY, OLD_KEY),
        database_url=before.settings.database_url,
    )
    async with httpx2.AsyncClient(
        transport=httpx2.ASGITransport(app=after.app),
        base_url="http://msgsvc.test",
        headers={"Authorization": f"Bearer {tenant.key}"},
    ) as client:
        answer = await client.post("/v1/otp/verify", json={**body, "code": code})

    assert answer.status_code == 200


async def test_equal_codes_of_two_people_look_different_at_rest(service: Service) -> None:
    hashes = CodeHashes(service.secrets)

    assert hashes.hash("otp_1", "123456") != hashes.hash("otp_2", "123456")
    assert hashes.match("otp_1", "123456", hashes.hash("otp_1", "123456"))
    assert not hashes.match("otp_2", "123456", hashes.hash("otp_1", "123456"))


@pytest.mark.parametrize("named", ["otp_id", "subscriber_id"])
async def test_code_of_another_project_is_refused_and_not_consumed(
    service: Service,
    make_tenant: Any,
    ann: Any,
    ann_id: str,
    send: Any,
    verify: Any,
    named: str,
) -> None:
    other = await make_tenant(service, "Other")
    otp_id = await send()
    body = {"otp_id": otp_id} if named == "otp_id" else {"subscriber_id": ann_id}

    foreign = await other.client.post("/v1/otp/verify", json={**body, "code": ann.code})
    own = await verify(**body, code=ann.code)

    assert foreign.status_code == 404
    assert own.status_code == 200
    assert (await other.client.get(f"/v1/otp/{otp_id}")).status_code == 404
