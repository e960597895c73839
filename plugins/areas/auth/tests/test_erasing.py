"""A person who is erased takes their sign-ins along."""

import asyncio
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from msgsvc_auth.service import SignIn
from msgsvc_core.channels import ChannelUser
from msgsvc_core.db import Tx
from msgsvc_core.service import Service
from msgsvc_devkit import settled
from msgsvc_devkit.fixtures import Tenant

#: Seconds, far beyond what a busy machine takes.
PATIENCE_S = 30


async def somebody_waits(tx: Tx) -> None:
    """Returns once another transaction of this database waits for a lock."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            if await tx.fetch_val(
                "SELECT COUNT(*) FROM pg_stat_activity"
                " WHERE datname = current_database() AND wait_event_type = 'Lock'"
            ):
                return
            await asyncio.sleep(0.01)


async def test_sign_ins_of_an_erased_person_are_gone_and_their_code_is_worth_nothing(
    service: Service, client: httpx2.AsyncClient, ann: Any, sign_in: Any
) -> None:
    eve = replace(ann, user=ChannelUser("1003", "Eve", None, "en"))
    theirs, others = await sign_in(ann), await sign_in(eve)
    people = (await client.get("/v1/subscribers")).json()["data"]
    ann_id = next(person["subscriber_id"] for person in people if person["first_name"] == "Ann")

    answer = await client.delete(f"/v1/subscribers/{ann_id}?erase=true")
    await settled(service)

    assert answer.status_code == 204
    status = await client.get(f"/v1/auth/session/{theirs['session_id']}/status")
    assert status.json()["code"] == "not_found"
    refused = await client.post("/v1/auth/verify", json={"code": theirs["code"]})
    assert refused.json()["code"] == "auth_code_invalid"
    verified = await client.post("/v1/auth/verify", json={"code": others["code"]})
    assert verified.json()["first_name"] == "Eve"


async def test_the_feed_keeps_a_sign_in_without_the_person_and_the_state(
    service: Service, client: httpx2.AsyncClient, ann: Any, sign_in: Any
) -> None:
    session = await sign_in(ann)
    person = (await client.get("/v1/subscribers")).json()["data"][0]["subscriber_id"]
    await client.delete(f"/v1/subscribers/{person}?erase=true")
    await settled(service)

    feed = (await client.get("/v1/events?event=auth.completed")).json()["data"]
    assert [(event["data"]["session_id"], event["data"]["state"]) for event in feed] == [
        (session["session_id"], "")
    ]
    assert feed[0]["data"]["first_name"] == ""


@pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
async def test_who_presses_while_the_one_who_said_yes_is_erased_is_told_that_it_is_too_late(
    service: Service, client: httpx2.AsyncClient, tenant: Tenant, ann: Any, bob: Any
) -> None:
    """On SQLite, where one transaction writes at a time, the press finds the session or doesn't."""
    session = (await client.post("/v1/auth/session", json={"lang": "en"})).json()
    bobs = await bob.open(session["links"]["messenger_a"])
    sign_in, project_id = service.get(SignIn), tenant.project.project_id
    async with service.db.transaction() as tx:
        asked = await sign_in.get(project_id, session["session_id"], tx)
        yes = await sign_in.confirm(tx, asked, "messenger_a", ann.user, ann.chat_id)
        assert yes is not None
        await service.subscribers.erase(tx, project_id, yes.subscriber.subscriber_id)
        press = asyncio.create_task(bob.press(bobs, "Yes"))
        await somebody_waits(tx)
    await press

    assert "no longer valid" in bob.shown.message.text
