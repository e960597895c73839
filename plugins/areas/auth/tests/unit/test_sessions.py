"""Sessions, their Yes and their code, built from fakes."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from msgsvc_auth.clients import Client
from msgsvc_auth.errors import AuthCodeExpired, AuthCodeInvalid, AuthCodeUsed
from msgsvc_auth.exchange import Presented
from msgsvc_auth.metrics import SignInMetrics
from msgsvc_auth.models import SessionBody
from msgsvc_auth.service import TRIAL
from msgsvc_auth.settings import AuthSettings
from msgsvc_core.channels import ChannelUser
from msgsvc_core.kernel.errors import InvalidUrl, NotFound, RateLimitProject, ValidationFailed
from msgsvc_core.security import digest
from msgsvc_devkit import until
from msgsvc_devkit.fakes import PROJECT, FakeTx
from plugins.areas.auth.tests.unit.signing_in import (
    NOW_MS,
    SESSION_ID,
    Auth,
    confirmed,
    issued,
    pending,
    row_of,
    slot,
)

ANNA = ChannelUser("7", "Anna")


# ---- opening ---------------------------------------------------------------------------------------


async def test_the_database_has_no_token_and_the_id_says_nothing_of_it() -> None:
    shop, tx = Auth(), FakeTx(answers=slot())
    new = await shop.sign_in().open(tx, PROJECT, SessionBody(state="s", match=True))
    tx.commit()

    [row] = tx.rows["auth_sessions"]
    assert row["token_digest"] == digest(new.token)
    assert new.token not in new.session.session_id
    assert 10 <= row["match_number"] <= 99
    assert row["expires_at_ms"] == NOW_MS + 600_000
    assert shop.counted("begun") == 1
    assert new.token in shop.sign_in().links(new)["messenger_a"]


@pytest.mark.parametrize(
    ("body", "refusal"),
    [
        ({"channel": "pigeon"}, ValidationFailed),
        ({"callback_url": "https://evil.example/back"}, InvalidUrl),
    ],
)
async def test_what_is_wrong_takes_no_slot(body: dict[str, Any], refusal: type[Exception]) -> None:
    tx = FakeTx(answers=[[]])
    with pytest.raises(refusal):
        await Auth().sign_in().open(tx, PROJECT, SessionBody(**body))

    assert tx.rows == {}


async def test_a_project_and_an_address_open_so_many_sessions_an_hour() -> None:
    sign_in = Auth(AuthSettings(sessions_per_hour=5, sessions_per_hour_per_address=2)).sign_in()
    client = Client(ip="203.0.113.7")

    with pytest.raises(RateLimitProject, match="of this project"):
        await sign_in.open(FakeTx(answers=slot(used=5)), PROJECT, SessionBody())
    with pytest.raises(RateLimitProject, match="for this address"):
        answers = [*slot(), *slot(used=2)]
        await sign_in.open(FakeTx(answers=answers), PROJECT, SessionBody(client=client))


async def test_what_can_be_no_id_is_not_looked_up() -> None:
    shop = Auth()

    with pytest.raises(NotFound):
        await shop.sign_in().get(PROJECT, "ses_short")
    shop.core.db.answers.append([])
    with pytest.raises(NotFound):
        await shop.sign_in().get(PROJECT, SESSION_ID)
    assert len(shop.core.db.statements) == 1


async def test_a_real_sign_in_is_no_trial_whatever_its_state_says() -> None:
    sign_in = Auth().sign_in()
    trial, real = pending(state=TRIAL), pending(state=TRIAL, callback_url="https://shop.example/b")

    found = await sign_in.get_trial(FakeTx(answers=[[row_of(trial)]]), PROJECT, SESSION_ID)
    assert found == trial
    for other in (real, pending(state="mine")):
        with pytest.raises(NotFound):
            await sign_in.get_trial(FakeTx(answers=[[row_of(other)]]), PROJECT, SESSION_ID)


# ---- waiting ---------------------------------------------------------------------------------------


async def test_a_wait_ends_with_the_answer() -> None:
    shop = Auth()
    sign_in, db = shop.sign_in(), shop.core.db
    denied = pending(stored_status="denied")
    db.answers += [[row_of(pending())], [row_of(denied)], [row_of(denied)]]
    waiting = asyncio.create_task(sign_in.wait(PROJECT, SESSION_ID, 60))

    async def is_asked() -> bool:
        return bool(db.statements)

    await until(is_asked)
    async with db.transaction() as tx:
        await sign_in.deny(tx, pending(), "messenger_a")

    async with asyncio.timeout(5):
        assert await waiting == denied
    assert shop.counted("cancelled", "messenger_a") == 1


async def test_nobody_waits_for_a_service_that_stops() -> None:
    shop = Auth()
    sign_in = shop.sign_in()
    shop.core.db.answers += [[row_of(pending())]] * 2
    waiting = asyncio.create_task(sign_in.wait(PROJECT, SESSION_ID, 60))

    async def is_asked() -> bool:
        return bool(shop.core.db.statements)

    await until(is_asked)
    sign_in.cancel_waits()

    async with asyncio.timeout(5):
        assert await waiting == pending()


# ---- the Yes ---------------------------------------------------------------------------------------


async def test_a_yes_subscribes_is_an_event_and_costs_a_credit_also_of_who_has_none() -> None:
    shop = Auth()
    shop.core.billing.refused.add("auth.confirmed")
    tx = FakeTx(answers=[[row_of(confirmed(subscriber_id=None))], 1])
    done = await shop.confirmations().confirm(
        tx, pending(), "messenger_a", ANNA, "c1", proves="account"
    )

    assert done is not None
    [person] = shop.core.subscribers.everybody
    assert (person.user_id, person.source, person.chat_id) == ("7", "auth", "c1")
    assert "auth.completed" in shop.core.events.names
    [charge] = shop.core.billing.charges
    assert (charge.operation, charge.resource_id) == ("auth.confirmed", SESSION_ID)
    assert tx.statements[0][1]["code_expires_at_ms"] == NOW_MS + 300_000


async def test_a_yes_that_comes_too_late_changes_nothing() -> None:
    shop = Auth()
    done = await shop.confirmations().confirm(
        FakeTx(answers=[[]]), pending(), "messenger_a", ANNA, "c1", proves="account"
    )

    assert done is None
    assert shop.core.subscribers.everybody == []
    assert (shop.core.events.names, shop.core.billing.charges) == ([], [])


@pytest.mark.parametrize(("asked_for", "picked"), [(47, None), (47, 48), (None, 47)])
async def test_another_number_than_the_pages_is_no_yes(
    asked_for: int | None, picked: int | None
) -> None:
    sign_in, tx = Auth().sign_in(), FakeTx()
    session = pending(match_number=asked_for)

    assert await sign_in.confirm(tx, session, "messenger_a", ANNA, "c1", number=picked) is None
    assert tx.statements == []


async def test_a_yes_is_of_the_person_by_the_bot_that_asked_them() -> None:
    shop = Auth()
    shop.core.subscribers.person("sub_7")
    session, parts = confirmed(subscriber_id="sub_7"), shop.confirmations()

    assert await parts.is_of(FakeTx(), session, "messenger_a", ANNA)
    assert not await parts.is_of(FakeTx(), session, "messenger_b", ANNA)
    assert not await parts.is_of(FakeTx(), session, "messenger_a", ChannelUser("8", "Anna"))
    assert not await parts.is_of(FakeTx(), pending(), "messenger_a", ANNA)


def test_a_code_is_shown_while_it_can_be_exchanged() -> None:
    sign_in, code = Auth().sign_in(), issued()
    session = confirmed(code)

    assert sign_in.code_of(session, NOW_MS) == code.code
    assert sign_in.code_of(session, NOW_MS + 300_000) is None
    assert sign_in.code_of(pending(), NOW_MS) is None
    assert sign_in.code_of(replace(session, stored_status="consumed"), NOW_MS) is None


# ---- the exchange ----------------------------------------------------------------------------------


async def test_of_two_with_the_same_code_the_first_has_it() -> None:
    shop, code = Auth(), issued()
    shop.core.subscribers.person("sub_1")
    used = confirmed(code, stored_status="consumed")
    tx = FakeTx(answers=[[row_of(used)], [row_of(used)]])
    presented = Presented(PROJECT, [code.hash])
    first, second = await shop.exchange().exchange(tx, [presented, presented])
    tx.commit()

    assert isinstance(first, tuple)
    assert (first[0], first[1].subscriber_id) == (used, "sub_1")
    assert isinstance(second, AuthCodeUsed)
    assert shop.counted("exchanged", "messenger_a") == 1


@pytest.mark.parametrize(
    ("known", "refusal"),
    [
        ([], AuthCodeInvalid),
        ([confirmed(code_hash="h", stored_status="consumed")], AuthCodeUsed),
        ([confirmed(code_hash="h", code_expires_at_ms=0)], AuthCodeExpired),
    ],
)
async def test_a_refusal_says_why_the_code_does_not_work(
    known: list[Any], refusal: type[Exception]
) -> None:
    tx = FakeTx(answers=[[], [row_of(each) for each in known]])
    [outcome] = await Auth().exchange().exchange(tx, [Presented(PROJECT, ["h"])])

    assert isinstance(outcome, refusal)


@pytest.mark.parametrize("proven", ["account", None])
async def test_a_code_that_proves_less_is_refused_beside_one_that_asks_for_nothing(
    proven: str | None,
) -> None:
    shop, code = Auth(), issued()
    shop.core.subscribers.person("sub_1")
    row = row_of(confirmed(code, proves=proven))
    refused, given = await shop.exchange().exchange(
        FakeTx(answers=[[row], [row]]),
        [Presented(PROJECT, [code.hash], ["phone"]), Presented(PROJECT, [code.hash])],
    )

    assert isinstance(refused, AuthCodeInvalid)
    assert isinstance(given, tuple)


async def test_codes_are_consumed_in_one_order_whoever_asks_first() -> None:
    tx = FakeTx(answers=[[], []])
    presented = [Presented(PROJECT, ["b", "a"]), Presented("prj_0", ["c"])]
    await Auth().exchange().exchange(tx, presented)

    assert tx.statements[0][1]["keys"] == f'[["prj_0","c"],["{PROJECT}","a"],["{PROJECT}","b"]]'


async def test_a_site_exchanges_the_code_that_its_session_shows() -> None:
    shop, code = Auth(), issued()
    person = shop.core.subscribers.person("sub_1")
    shop.core.db.answers += [[row_of(confirmed(code, stored_status="consumed"))]]
    session, found = await shop.sign_in().verify(PROJECT, code.code)

    assert (session.session_id, found) == (SESSION_ID, person)
    assert code.hash in str(shop.core.db.statements[0][1])
    assert code.code not in str(shop.core.db.statements)


async def test_a_sign_in_is_counted_when_it_is_committed() -> None:
    registry = CollectorRegistry()
    metrics = SignInMetrics(registry=registry, label=lambda bot: f"label of {bot}")
    rolled_back, committed = FakeTx(), FakeTx()
    for tx in (rolled_back, committed):
        metrics.count_on_commit(tx, "confirmed", "messenger_a")
    committed.commit()

    name, labels = "msgsvc_auth_sign_ins_total", {"channel": "label of messenger_a"}
    assert registry.get_sample_value(name, {"outcome": "confirmed", **labels}) == 1
    assert registry.get_sample_value(name, {"outcome": "exchanged", "channel": ""}) == 0
