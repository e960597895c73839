"""A confirmation is charged once, in the transaction of the Yes."""

import asyncio
from dataclasses import replace
from functools import partial

import pytest

from msgsvc_auth import plugin
from msgsvc_core.billing import Charge
from msgsvc_core.plugins.hookspecs import hookimpl


class Ledger:
    """Keeps the charges that were committed; `broken` fails to keep any."""

    def __init__(self):
        self.charges = []
        self.broken = False

    @hookimpl
    async def charge(self, tx, charge):
        if self.broken:
            raise RuntimeError("the ledger is broken")
        tx.on_commit(partial(self.charges.append, charge))


@pytest.fixture
def ledger():
    return Ledger()


@pytest.fixture
async def service(make_service, ledger):
    return await make_service(extra_plugins=[("auth", plugin), ("ledger", ledger)])


@pytest.fixture
async def session(client):
    return (await client.post("/v1/auth/session", json={"state": "xyz"})).json()


@pytest.fixture
def charged(tenant, session):
    """The one charge of `session`."""
    return [
        Charge(tenant.project.project_id, "auth.confirmed", session["session_id"], refusable=False)
    ]


async def test_yes_is_charged(session, ledger, ann, charged):
    question = await ann.open(session["links"]["messenger_a"])
    before = list(ledger.charges)

    await ann.press(question, "Yes")

    assert before == []
    assert ledger.charges == charged


async def test_two_presses_of_yes_are_one_charge(session, ledger, ann, charged):
    question = await ann.open(session["links"]["messenger_a"])

    for _ in range(2):
        await ann.press(question, "Yes")

    assert ledger.charges == charged


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_yes_from_two_phones_at_once_is_one_charge(session, ledger, ann, bob, charged):
    elsewhere = replace(ann, channel_name="messenger_b")
    presses = []
    for person in (ann, bob, elsewhere):
        question = await person.open(session["links"][person.channel_name])
        yes = question.message.buttons[0][0].data
        # Each of them on two devices.
        presses += [(person, person.pressing(yes, question.message_ref)) for _ in range(2)]

    await asyncio.gather(*(person.receive(press) for person, press in presses))

    assert ledger.charges == charged


async def test_cancel_costs_nothing(session, ledger, ann):
    await ann.press(await ann.open(session["links"]["messenger_a"]), "Cancel")

    assert ledger.charges == []


async def test_exchanging_the_code_costs_nothing_more(client, session, ledger, ann, charged):
    await ann.press(await ann.open(session["links"]["messenger_a"]), "Yes")
    status = (await client.get(f"/v1/auth/session/{session['session_id']}/status")).json()

    for _ in range(2):
        await client.post("/v1/auth/verify", json={"code": status["code"]})

    assert ledger.charges == charged


async def test_static_link_is_charged_by_its_opening(link, ledger, ann, tenant):
    for _ in range(2):
        await ann.press(await ann.open(link["links"]["messenger_a"]), "Yes")

    assert [charge.operation for charge in ledger.charges] == ["auth.confirmed"] * 2
    assert len({charge.resource_id for charge in ledger.charges}) == 2


async def test_without_its_charge_a_yes_does_not_happen(client, session, ledger, ann, charged):
    question = await ann.open(session["links"]["messenger_a"])
    ledger.broken = True
    await ann.press(question, "Yes")
    path = f"/v1/auth/session/{session['session_id']}/status"
    meanwhile = (await client.get(path)).json()

    ledger.broken = False
    await ann.press(question, "Yes")

    assert meanwhile["status"] == "pending"
    assert (await client.get(path)).json()["status"] == "confirmed"
    assert ledger.charges == charged


async def test_a_yes_that_fails_is_not_charged(client, service, session, ledger, ann, monkeypatch):
    question = await ann.open(session["links"]["messenger_a"])

    async def fail(*_args, **_kwargs):
        raise RuntimeError("no edits today")

    with monkeypatch.context() as patch:
        patch.setattr("msgsvc_core.channels.system_messages.outbox.BotOutbox.edit", fail)
        await ann.press(question, "Yes")

    assert ledger.charges == []
